//! Loads privileges for many subscriptions together.
//!
//! Many subscriptions that start at the same time must not cause one query each. While a query runs
//! on a database, new requests wait. The next query covers up to [`MAX_BATCH`] pairs of role and
//! table. Each request gets the result of a query that started after the request, so no result is
//! outdated.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::{DatabaseName, Executor, Login};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::{Instant, sleep, timeout_at};

use crate::access::privilege_query::{self, MAX_BATCH, RoleTable};
use crate::access::privileges::{PrivilegeOutcome, Privileges};
use crate::catalog_query::CatalogReader;
use crate::error::{Error, Result};
use crate::settings::FeedSettings;

/// The pause before the next query on a database that was busy.
const PAUSE: Duration = Duration::from_millis(100);

/// Queries privileges. At most one query runs at a time for each database.
pub(crate) struct PrivilegeLoader {
    executor: Arc<dyn Executor>,
    /// The requests that wait for the next query, by database. A database has an entry while its
    /// query task runs.
    waiting: Mutex<HashMap<DatabaseName, PendingReplies>>,
    /// Limits the number of databases in which privileges are queried at the same time.
    permits: Semaphore,
    /// The time limit that is reported in [`Error::Timeout`].
    subscribe_timeout: Duration,
}

/// The requests that wait for a reply, by role and table. A request is represented by the channel
/// for its reply.
type PendingReplies = HashMap<RoleTable, Vec<oneshot::Sender<PrivilegeOutcome>>>;

impl PrivilegeLoader {
    pub(crate) fn new(executor: Arc<dyn Executor>, settings: &FeedSettings) -> Self {
        Self {
            executor,
            waiting: Mutex::default(),
            permits: Semaphore::new(settings.privilege_queries.max(1)),
            subscribe_timeout: settings.subscribe_timeout,
        }
    }

    /// Loads the privileges of a role on a table, with a query that starts after this call.
    ///
    /// # Errors
    ///
    /// [`Error::NoTable`], [`Error::NoRole`], [`Error::Timeout`], [`Error::Privileges`], or
    /// [`Error::Internal`] if the definition of the table keeps changing or the query task has
    /// ended.
    pub(crate) async fn load(
        self: &Arc<Self>,
        login: &Login,
        relation: u32,
        deadline: Instant,
    ) -> Result<Arc<Privileges>> {
        let (reply, outcome) = oneshot::channel();
        let pair = (login.role.clone(), relation);
        if self.enqueue(&login.database, PendingReplies::from([(pair, vec![reply])])) {
            tokio::spawn(self.clone().run(login.database.clone()));
        }
        match timeout_at(deadline, outcome).await {
            Ok(Ok(outcome)) => outcome.into_result(),
            Ok(Err(_)) => Err(Error::Internal(
                "the task that queries privileges has ended".into(),
            )),
            Err(_) => Err(Error::Timeout {
                what: "reading the privileges of the role".to_owned(),
                limit: self.subscribe_timeout,
            }),
        }
    }

    /// Adds requests. Returns `true` if the database has no query task yet; the calling function
    /// must then start one.
    fn enqueue(&self, database: &DatabaseName, requests: PendingReplies) -> bool {
        let mut waiting = self.waiting.lock();
        let is_new = !waiting.contains_key(database);
        let all = waiting.entry(database.clone()).or_default();
        for (pair, replies) in requests {
            all.entry(pair).or_default().extend(replies);
        }
        is_new
    }

    /// Queries a database until no requests are left. Repeats requests that failed because the
    /// database was busy.
    async fn run(self: Arc<Self>, database: DatabaseName) {
        loop {
            let permit = self.permits.acquire().await;
            let Some(batch) = self.next_batch(&database) else {
                return;
            };
            let pairs = batch.keys().cloned().collect();
            let catalog = CatalogReader::new(self.executor.clone(), database.clone());
            let mut outcomes = privilege_query::query(&catalog, pairs).await;
            drop(permit);
            let mut retries = PendingReplies::new();
            for (pair, replies) in batch {
                match outcomes.remove(&pair).unwrap_or(PrivilegeOutcome::NoTable) {
                    PrivilegeOutcome::Failed(error) if is_busy(&error) => {
                        retries.insert(pair, replies);
                    }
                    // Sending fails if `load` no longer waits for the reply. This error can be
                    // ignored.
                    outcome => replies
                        .into_iter()
                        .for_each(|reply| drop(reply.send(outcome.clone()))),
                }
            }
            if !retries.is_empty() {
                self.enqueue(&database, retries);
                sleep(PAUSE).await;
            }
        }
    }

    /// Removes and returns the requests for the next query. Drops a request if its `load` no longer
    /// waits for the reply. Returns `None` if no request is left. The task must then end.
    fn next_batch(&self, database: &DatabaseName) -> Option<PendingReplies> {
        let mut waiting = self.waiting.lock();
        let all = waiting.get_mut(database)?;
        for replies in all.values_mut() {
            replies.retain(|reply| !reply.is_closed());
        }
        all.retain(|_, replies| !replies.is_empty());
        if all.is_empty() {
            waiting.remove(database);
            return None;
        }
        let batch: Vec<RoleTable> = all.keys().take(MAX_BATCH).cloned().collect();
        let taken = batch.into_iter().filter_map(|pair| all.remove_entry(&pair));
        Some(taken.collect())
    }
}

/// Whether the error means that all connections are in use or that the table is locked.
fn is_busy(error: &tidegate_sql::Error) -> bool {
    matches!(error, tidegate_sql::Error::PoolTimeout { .. }) || error.sqlstate() == Some("55P03")
}

impl fmt::Debug for PrivilegeLoader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivilegeLoader").finish_non_exhaustive()
    }
}
