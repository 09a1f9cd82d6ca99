//! Records the recent requests of each tenant for its owner: counts for each second, and the most
//! recent slow or failed statements. Each node records its own requests, in memory.

mod outline;

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;
use tidegate_sql::DatabaseName;

/// The number of seconds for which requests are counted.
const SECONDS: usize = 300;
/// The same number as [`SECONDS`], for calculations with times in seconds since 1970.
const WINDOW: i64 = 300;
/// The maximum number of statements that are stored for each tenant.
const STATEMENTS: usize = 50;
/// A statement is slow if it takes at least this long.
const SLOW: Duration = Duration::from_secs(1);
/// The largest number of tenants whose requests are recorded. When this number is reached, tenants
/// without requests in the last [`SECONDS`] seconds are removed to make room for a new tenant. If
/// no tenant can be removed, the requests of the new tenant are not recorded.
const TENANTS: usize = 1_000;
/// The status that is recorded for a request whose client disconnected before the response. It does
/// not count as an error.
pub const CLIENT_LEFT: u16 = 499;
/// The size in bytes of the largest request body that is kept in memory until its request has
/// ended.
pub const LONGEST_BODY: usize = 16 * 1024;

/// The recent requests of all tenants.
#[derive(Debug, Default)]
pub struct Activity(Mutex<HashMap<DatabaseName, TenantActivity>>);

/// A request that has ended.
#[derive(Debug)]
pub struct Finished<'a> {
    /// When the request ended, in milliseconds since 1970.
    pub at: i64,
    /// How long the request took.
    pub took: Duration,
    /// The status of the response; [`CLIENT_LEFT`] if there was no response.
    pub status: u16,
    /// The path of the request's route.
    pub route: &'static str,
    /// The role that the request ran as.
    pub role: &'a str,
    /// The code of the first error in the response; `None` without an error.
    pub error: Option<&'static str>,
    /// The SQLSTATE of the first error, if PostgreSQL reported it.
    pub sqlstate: Option<&'a str>,
    /// The request's body, if it contains a statement; empty if the body was too long to be stored.
    pub body: Option<&'a Bytes>,
}

/// A statement that was slow or failed.
#[derive(Clone, Debug, Serialize)]
pub struct RecentStatement {
    /// When the statement ended, in milliseconds since 1970.
    #[serde(skip)]
    pub at: i64,
    route: &'static str,
    role: String,
    milliseconds: u64,
    status: u16,
    error: Option<&'static str>,
    sqlstate: Option<String>,
    /// The statement's text without values. `None` if the body was too long to be stored, or if its
    /// text could not be parsed.
    statement: Option<String>,
}

/// The recent requests of a tenant.
#[derive(Debug)]
struct TenantActivity {
    /// The number of requests and errors in each second; the index is the second modulo
    /// [`SECONDS`].
    counts: Box<[(u32, u32); SECONDS]>,
    /// The newest second for which counts are stored, in seconds since 1970.
    last: i64,
    statements: VecDeque<RecentStatement>,
}

/// The recent requests of a tenant, as its owner sees them. The counts are ordered from the oldest
/// second to the newest, the statements from the newest to the oldest.
#[derive(Debug, Default)]
pub struct RecentRequests {
    /// The number of requests in each second.
    pub requests: Vec<u32>,
    /// The number of failed requests in each second.
    pub errors: Vec<u32>,
    /// The statements that were slow or failed.
    pub statements: Vec<RecentStatement>,
}

impl Activity {
    /// Counts a request. Stores its statement if it was slow or failed.
    pub fn record(&self, database: &DatabaseName, finished: &Finished<'_>) {
        let second = finished.at.div_euclid(1_000);
        let failed =
            (finished.status >= 400 && finished.status != CLIENT_LEFT) || finished.error.is_some();
        let worth_keeping = finished.body.is_some() && (failed || finished.took >= SLOW);
        let remembered = worth_keeping.then(|| RecentStatement::of(finished));
        let mut tenants = self.lock();
        if !tenants.contains_key(database) {
            if tenants.len() >= TENANTS {
                tenants.retain(|_, tenant| second - tenant.last < WINDOW);
            }
            if tenants.len() >= TENANTS {
                return;
            }
            tenants.insert(database.clone(), TenantActivity::new(second));
        }
        if let Some(tenant) = tenants.get_mut(database) {
            tenant.count(second, failed);
            tenant.keep(remembered);
        }
    }

    /// The recent requests of a tenant. `now` is in milliseconds since 1970.
    pub fn recent(&self, database: &DatabaseName, now: i64) -> RecentRequests {
        let second = now.div_euclid(1_000);
        let mut tenants = self.lock();
        let tenant = tenants.get_mut(database).map(|tenant| {
            tenant.advance(second);
            &*tenant
        });
        let counts = (second - WINDOW + 1..=second)
            .map(|of| tenant.map_or((0, 0), |tenant| tenant.counts[index_of(of)]));
        let (requests, errors) = counts.unzip();
        let statements = tenant.map(|tenant| tenant.statements.iter().rev().cloned().collect());
        RecentRequests {
            requests,
            errors,
            statements: statements.unwrap_or_default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DatabaseName, TenantActivity>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TenantActivity {
    fn new(second: i64) -> Self {
        Self {
            counts: Box::new([(0, 0); SECONDS]),
            last: second,
            statements: VecDeque::new(),
        }
    }

    /// Moves the window forward to `second`. The elements of `counts` for the new seconds still
    /// hold the counts of seconds that have left the window, so they are set to 0.
    fn advance(&mut self, second: i64) {
        let passed = (second - self.last).clamp(0, WINDOW);
        for ahead in 0..passed {
            self.counts[index_of(second - ahead)] = (0, 0);
        }
        self.last = self.last.max(second);
    }

    fn count(&mut self, second: i64, failed: bool) {
        self.advance(second);
        if self.last - second >= WINDOW {
            return;
        }
        let (requests, errors) = &mut self.counts[index_of(second)];
        *requests = requests.saturating_add(1);
        *errors = errors.saturating_add(u32::from(failed));
    }

    fn keep(&mut self, remembered: Option<RecentStatement>) {
        let Some(remembered) = remembered else {
            return;
        };
        if self.statements.len() == STATEMENTS {
            self.statements.pop_front();
        }
        self.statements.push_back(remembered);
    }
}

fn index_of(second: i64) -> usize {
    usize::try_from(second.rem_euclid(WINDOW)).unwrap_or_default()
}

impl RecentStatement {
    fn of(finished: &Finished<'_>) -> Self {
        // If PostgreSQL (SQLSTATE 42601) or Tidegate could not parse the text, the values in it
        // cannot be found and removed.
        let is_parsed = finished.sqlstate != Some("42601")
            && !finished.error.is_some_and(|code| code.contains("PARSE"));
        let body = finished.body.filter(|body| is_parsed && !body.is_empty());
        Self {
            at: finished.at,
            route: finished.route,
            role: finished.role.to_owned(),
            milliseconds: u64::try_from(finished.took.as_millis()).unwrap_or(u64::MAX),
            status: finished.status,
            error: finished.error,
            sqlstate: finished.sqlstate.map(str::to_owned),
            statement: body.and_then(|body| outline::of_body(body)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(at: i64, status: u16, body: Option<&Bytes>) -> Finished<'_> {
        Finished {
            at,
            took: Duration::from_millis(5),
            status,
            route: "/api/v4/sql",
            role: "demo/alice",
            error: None,
            sqlstate: None,
            body,
        }
    }

    #[test]
    fn requests_are_counted_by_the_second() {
        let activity = Activity::default();
        let demo = DatabaseName::new("demo");
        for (at, status) in [(10_000, 200), (10_999, 500), (12_000, 200)] {
            activity.record(&demo, &finished(at, status, None));
        }
        let recent = activity.recent(&demo, 13_500);
        assert_eq!(recent.requests[SECONDS - 4..], [2, 0, 1, 0]);
        assert_eq!(recent.errors[SECONDS - 4..], [1, 0, 0, 0]);
        let later = activity.recent(&demo, 13_500 + 1_000 * 300);
        assert_eq!(later.requests, [0; SECONDS]);
        let other = activity.recent(&DatabaseName::new("other"), 13_500);
        assert_eq!(other.requests, [0; SECONDS]);
    }

    #[test]
    fn the_last_failed_and_slow_statements_are_kept_without_values() {
        let activity = Activity::default();
        let demo = DatabaseName::new("demo");
        let body = Bytes::from(r#"{"q":"select * from t where a = 'secret' and b = 42"}"#);
        activity.record(&demo, &finished(1, 200, Some(&body)));
        activity.record(&demo, &finished(1, CLIENT_LEFT, Some(&body)));
        assert!(activity.recent(&demo, 1).statements.is_empty());
        assert_eq!(activity.recent(&demo, 1).errors, [0; SECONDS]);
        for at in 0..60 {
            activity.record(&demo, &finished(at, 400, Some(&body)));
        }
        let slow = Finished {
            took: SLOW,
            ..finished(60, 200, Some(&body))
        };
        activity.record(&demo, &slow);
        let statements = activity.recent(&demo, 1).statements;
        assert_eq!(statements.len(), STATEMENTS);
        assert_eq!((statements[0].at, statements[0].milliseconds), (60, 1_000));
        let text = statements[0].statement.as_deref();
        assert_eq!(text, Some("select * from t where a = ? and b = ?"));
    }

    #[test]
    fn the_number_of_tenants_is_bounded() {
        let activity = Activity::default();
        for number in 0..TENANTS + 10 {
            let name = DatabaseName::new(format!("t{number}"));
            activity.record(&name, &finished(1_000, 200, None));
        }
        assert_eq!(activity.lock().len(), TENANTS);
        let new = DatabaseName::new("new");
        activity.record(&new, &finished(400_000, 200, None));
        assert_eq!(activity.lock().len(), 1, "the others are quiet");
    }
}
