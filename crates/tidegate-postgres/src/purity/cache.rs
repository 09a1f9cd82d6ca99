//! Caches which names of a database are untrusted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tidegate_sql::statement::UntrustedNames;
use tidegate_sql::{DatabaseName, Executor, QueryOptions, Result, Statement};
use tokio::time::{Instant, timeout};

use super::query::PurityQuery;
use super::untrusted_names::{UntrustedSets, find};

/// The age at which the names are read again, if statements run.
const REFRESH: Duration = Duration::from_millis(400);
/// How long the cached names may be used. A definition from outside this node takes effect after this
/// time at the latest.
const VALID_FOR: Duration = Duration::from_secs(1);
/// The pause after a query, as a multiple of its duration.
const PAUSE_FACTOR: u32 = 4;
/// The pause after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// How long a caller waits for the query. If it fails, the statement runs on a login connection.
const WAIT: Duration = Duration::from_millis(500);
/// The time limit of a query.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The untrusted names of a database, and when they are valid.
#[derive(Debug, Default)]
pub(crate) struct PurityCache {
    found: RwLock<CachedNames>,
    querying: AtomicBool,
    /// Held while a caller waits for a query; other callers share it.
    waiting: tokio::sync::Mutex<()>,
    /// Counts statements on this node that may have changed a definition and have ended.
    ddl_count: AtomicU64,
    /// How many such statements are running.
    ddl_running: AtomicU64,
}

#[derive(Debug, Default)]
struct CachedNames {
    names: UntrustedSets,
    fingerprint: String,
    /// Counts the sets of names that were read, from 1.
    version: u64,
    /// [`PurityCache::ddl_count`] before the names were read, and the time of that.
    ddl_count: u64,
    queried: Option<Instant>,
    /// When the next query may start.
    next_query: Option<Instant>,
    /// When a caller last waited in a query that failed.
    failed: Option<Instant>,
}

/// The cached result for one statement: impure or not, and for which version of the names.
#[derive(Debug, Default)]
pub(crate) struct CachedPurity(AtomicU64);

/// Guards a statement that may change a definition, from before it runs until it has ended. Until
/// then, and until the names have been read again, every read counts as impure.
#[derive(Debug)]
pub(crate) struct DdlGuard(Arc<PurityCache>);

impl DdlGuard {
    pub(crate) fn begin(purity: &Arc<PurityCache>) -> Self {
        purity.ddl_running.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(purity))
    }
}

impl Drop for DdlGuard {
    fn drop(&mut self) {
        self.0.ddl_count.fetch_add(1, Ordering::SeqCst);
        self.0.ddl_running.fetch_sub(1, Ordering::SeqCst);
        self.0.postpone();
    }
}

impl PurityCache {
    /// Whether a read or write whose text is pure may run user-defined code. It may if the cached
    /// names are not valid.
    pub(crate) fn is_impure(&self, statement: &Statement, purity: &CachedPurity) -> bool {
        let found = self.found.read();
        if !self.is_valid(&found, Instant::now()) {
            return true;
        }
        let suspects = if statement.is_read() {
            &found.names.reads
        } else {
            &found.names.writes
        };
        !suspects.is_empty() && purity.of(statement.text(), suspects, found.version)
    }

    /// Whether a statement may read under row level security, so that PostgreSQL plans it again
    /// when the role changes. `false` if that is not known.
    pub(crate) fn is_restricted(&self, statement: &Statement, purity: &CachedPurity) -> bool {
        let found = self.found.read();
        let restricted = &found.names.restricted;
        !restricted.is_empty() && purity.of(statement.text(), restricted, found.version)
    }

    /// Whether a statement calls no function that could pass a caller's value to SQL or to a
    /// setting. Queries the database first if the cached names are not valid. A function that is
    /// made elsewhere counts within a second.
    pub(crate) async fn may_call(
        self: &Arc<Self>,
        statement: &Statement,
        service: &Arc<dyn Executor>,
        database: &DatabaseName,
    ) -> bool {
        if self.ddl_running.load(Ordering::SeqCst) > 0 {
            return false;
        }
        if !self.has_valid() {
            let waiting = timeout(WAIT, self.query_for_caller(service, database));
            if waiting.await.is_err() {
                self.found.write().failed = Some(Instant::now());
                self.refresh(service, database);
            }
        }
        let found = self.found.read();
        self.is_valid(&found, Instant::now()) && !found.names.calls.are_in(statement.text())
    }

    /// Queries the database, unless another caller has done so or it failed just now.
    async fn query_for_caller(&self, service: &Arc<dyn Executor>, database: &DatabaseName) {
        let _waiting = self.waiting.lock().await;
        let failed = self.found.read().failed;
        if self.has_valid() || failed.is_some_and(|failed| failed.elapsed() < RETRY) {
            return;
        }
        if let Err(error) = self.query(&**service, database).await {
            tracing::debug!(%database, %error, "the untrusted names of the database could not be read");
            self.found.write().failed = Some(Instant::now());
        }
    }

    fn has_valid(&self) -> bool {
        self.is_valid(&self.found.read(), Instant::now())
    }

    fn is_valid(&self, found: &CachedNames, now: Instant) -> bool {
        found
            .queried
            .is_some_and(|queried| now < queried + VALID_FOR)
            && self.has_no_ddl_since(found)
    }

    fn has_no_ddl_since(&self, found: &CachedNames) -> bool {
        self.ddl_running.load(Ordering::SeqCst) == 0
            && self.ddl_count.load(Ordering::SeqCst) == found.ddl_count
    }

    /// Delays the next query after a definition, so that the database first answers what the next
    /// requests need, and so that more definitions can follow. Until then every read counts as
    /// impure and is followed by a reset.
    fn postpone(&self) {
        let now = Instant::now();
        let mut found = self.found.write();
        // A series of definitions must not postpone the query again and again.
        if found.next_query.is_none_or(|next_query| next_query <= now) {
            found.next_query = Some(now + REFRESH);
        }
    }

    /// Whether a query is due. If so, marks it as running, and the caller must start it.
    fn begins_query(&self, now: Instant) -> bool {
        // The effect of a definition that still runs is not visible yet.
        if self.ddl_running.load(Ordering::SeqCst) > 0 {
            return false;
        }
        let due = {
            let found = self.found.read();
            let old = found.queried.is_none_or(|queried| now >= queried + REFRESH);
            found.next_query.is_none_or(|next_query| now >= next_query)
                && (old || !self.has_no_ddl_since(&found))
        };
        due && !self.querying.swap(true, Ordering::AcqRel)
    }

    /// Queries the database in the background if that is due.
    pub(crate) fn refresh(self: &Arc<Self>, service: &Arc<dyn Executor>, database: &DatabaseName) {
        if !self.begins_query(Instant::now()) {
            return;
        }
        let (purity, service, database) = (self.clone(), service.clone(), database.clone());
        tokio::spawn(async move {
            let _guard = QueryingGuard(&purity.querying);
            if let Err(error) = purity.query(&*service, &database).await {
                tracing::debug!(%database, %error, "the untrusted names could not be read; every read is followed by a reset");
                purity.found.write().next_query = Some(Instant::now() + RETRY);
            }
        });
    }

    async fn query(&self, service: &dyn Executor, database: &DatabaseName) -> Result<()> {
        let ddl_count = self.ddl_count.load(Ordering::SeqCst);
        let began = Instant::now();
        let source = PurityQuery {
            service,
            database,
            options: options(began),
        };
        let fingerprint = source.fingerprint().await?;
        let known = {
            let found = self.found.read();
            found.version > 0 && found.fingerprint == fingerprint
        };
        let suspects = if known {
            None
        } else {
            Some(find(&source.definitions().await?))
        };
        let mut found = self.found.write();
        if let Some(suspects) = suspects {
            tracing::debug!(%database, ?suspects, "read the untrusted names of the database");
            found.names = suspects;
            found.fingerprint = fingerprint;
            found.version += 1;
        }
        found.ddl_count = ddl_count;
        found.queried = Some(began);
        found.next_query = Some(Instant::now() + began.elapsed() * PAUSE_FACTOR);
        Ok(())
    }
}

/// The time limit of a query that starts now.
fn options(began: Instant) -> QueryOptions {
    QueryOptions {
        deadline: Some((began + TIMEOUT).into_std()),
        ..QueryOptions::default()
    }
}

impl CachedPurity {
    /// Whether the text mentions an untrusted name. Searches once for each version of the names.
    fn of(&self, text: &str, suspects: &UntrustedNames, version: u64) -> bool {
        let [pure, impure] = [version * 2, version * 2 + 1];
        match self.0.load(Ordering::Relaxed) {
            known if known == pure => false,
            known if known == impure => true,
            _ => {
                let mentioned = suspects.are_in(text);
                let purity = if mentioned { impure } else { pure };
                self.0.store(purity, Ordering::Relaxed);
                mentioned
            }
        }
    }
}

/// Clears the flag of a running query on drop.
struct QueryingGuard<'a>(&'a AtomicBool);

impl Drop for QueryingGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_database_is_asked_some_time_after_a_definition_has_ended() {
        let purity = Arc::new(PurityCache::default());
        let began = Instant::now();
        let definition = DdlGuard::begin(&purity);
        assert!(!purity.begins_query(began + VALID_FOR));
        drop(definition);
        assert!(!purity.begins_query(began));
        let postponed = purity.found.read().next_query.unwrap();
        // Further definitions do not postpone it again.
        drop(DdlGuard::begin(&purity));
        assert_eq!(purity.found.read().next_query, Some(postponed));
        assert!(purity.begins_query(postponed));
    }
}
