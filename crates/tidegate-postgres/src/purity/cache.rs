//! Caches which names of a database are untrusted.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::RwLock;
use tidegate_sql::statement::UntrustedNames;
use tidegate_sql::{DatabaseName, Executor, Result, Statement};
use tokio::time::{Instant, timeout};

use super::query::PurityQuery;
use super::untrusted_names::{UntrustedSets, find};

/// The age at which the untrusted names are read again, if statements run in the database.
const REFRESH: Duration = Duration::from_millis(400);
/// How long the cached names may be used. A definition that was changed outside of this node takes
/// effect after this time at the latest.
const VALID_FOR: Duration = Duration::from_secs(1);
/// The pause after a query, as a multiple of the query's duration.
const PAUSE_FACTOR: u32 = 4;
/// The delay before the next query after a failure.
const RETRY: Duration = Duration::from_secs(1);
/// How many statements must run within [`VALID_FOR`] before the names are read. Without valid names
/// a reset follows each statement, and this number of resets costs PostgreSQL as much CPU time as
/// reading the names.
const BUSY: u32 = 4;
/// How long a request waits for a query of the names. If the query takes longer, the statement runs
/// on a login connection.
const WAIT: Duration = Duration::from_millis(500);
/// The time limit of a query.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The untrusted names of a database, and the data that decides whether they are still valid.
#[derive(Debug, Default)]
pub(crate) struct PurityCache {
    found: RwLock<CachedNames>,
    querying: AtomicBool,
    /// Counts statements that have ended. The count starts again from zero at [`BUSY`].
    statements: AtomicU32,
    /// Held by the request that waits for a query. Other requests wait for the lock and share the
    /// result.
    waiting: tokio::sync::Mutex<()>,
    /// Counts statements that ended on this node and may have changed a definition.
    ddl_count: AtomicU64,
    /// How many statements that may change a definition are running on this node. Transactions with
    /// such a statement count until they end.
    ddl_running: AtomicU64,
}

#[derive(Debug, Default)]
struct CachedNames {
    names: UntrustedSets,
    fingerprint: String,
    /// The version of the names; 0 if no names have been read. Each query that finds another
    /// fingerprint increases it by 1.
    version: u64,
    /// The value of [`PurityCache::ddl_count`] before the most recent reading of the names.
    ddl_count: u64,
    queried: Option<Instant>,
    /// When the next query may start.
    next_query: Option<Instant>,
    /// When a query that a request waited for most recently failed or took longer than [`WAIT`].
    failed: Option<Instant>,
    /// The time at which [`PurityCache::statements`] started from zero.
    counted_from: Option<Instant>,
}

/// Caches whether a statement mentions a name of one set of [`UntrustedSets`], for one version of
/// the names. The value is twice the version, plus 1 if the statement mentions a name.
#[derive(Debug, Default)]
pub(crate) struct MentionCache(AtomicU64);

/// Guards a statement that may change a definition, from before it runs until it has ended. Every
/// statement counts as impure until the guard is dropped and the names have been read again.
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
    /// Whether `statement`, a read or a write with a pure text, may nevertheless run user-defined
    /// code because it mentions an untrusted name. Without valid names the result is `true`.
    pub(crate) fn is_impure(&self, statement: &Statement, cached: &MentionCache) -> bool {
        let found = self.found.read();
        if !self.is_valid(&found, Instant::now()) {
            return true;
        }
        if statement.calls_claims() && !found.names.claims {
            return true;
        }
        let untrusted = match statement.is_read() {
            true if statement.fills_rows() => &found.names.rows,
            true => &found.names.reads,
            false => &found.names.writes,
        };
        !untrusted.is_empty() && cached.mentions(statement.text(), untrusted, found.version)
    }

    /// Whether a statement may read a relation under row level security. PostgreSQL plans such a
    /// statement again when the role changes. The result is `false` if no names are cached.
    pub(crate) fn is_restricted(&self, statement: &Statement, cached: &MentionCache) -> bool {
        let found = self.found.read();
        let restricted = &found.names.restricted;
        !restricted.is_empty() && cached.mentions(statement.text(), restricted, found.version)
    }

    /// Whether all functions that a statement calls are safe. A safe function does not run a
    /// caller's value as SQL, and does not set a setting to such a value. Queries the database
    /// first if the cached names are not valid. Returns `false` if the names cannot be read in
    /// time, or if a statement that may change a definition is running on this node. A function
    /// that another node creates is noticed within a second.
    pub(crate) async fn calls_are_safe(
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

    /// Queries the database, unless another request has just queried it or a query has just failed.
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

    /// Delays the next query after a definition has changed, so that the statements of the next
    /// requests come first, and a series of changes causes only one query. Until that query every
    /// read counts as impure and is followed by a reset.
    fn postpone(&self) {
        let now = Instant::now();
        let mut found = self.found.write();
        // A query that is already postponed is not postponed again. Otherwise a series of changed
        // definitions would postpone it forever.
        if found.next_query.is_none_or(|next_query| next_query <= now) {
            found.next_query = Some(now + REFRESH);
        }
    }

    /// Whether a query is due. If a query is due, marks it as running; the calling function must
    /// then start it.
    fn begin_query_if_due(&self, now: Instant) -> bool {
        // A query cannot see the effect of a DDL statement that is still running, so it would have
        // to be repeated.
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

    /// Counts a statement that has ended. Returns a refresh if the names have to be read again and
    /// at least [`BUSY`] statements ran within [`VALID_FOR`]. The calling function must run the
    /// refresh.
    pub(crate) fn count(self: &Arc<Self>) -> Option<PurityRefresh> {
        if self.statements.fetch_add(1, Ordering::Relaxed) + 1 < BUSY {
            return None;
        }
        let now = Instant::now();
        self.statements.store(0, Ordering::Relaxed);
        let counted_from = self.found.write().counted_from.replace(now);
        let is_busy = counted_from.is_some_and(|counted_from| now < counted_from + VALID_FOR);
        (is_busy && self.begin_query_if_due(now)).then(|| PurityRefresh(self.clone()))
    }

    /// Queries the database in the background, on a connection of the service, if a query is due.
    fn refresh(self: &Arc<Self>, service: &Arc<dyn Executor>, database: &DatabaseName) {
        if self.begin_query_if_due(Instant::now()) {
            let (service, database) = (service.clone(), database.clone());
            tokio::spawn(PurityRefresh(self.clone()).run_on_service(service, database));
        }
    }

    /// Reads the names, on a connection of the service.
    async fn query(&self, service: &dyn Executor, database: &DatabaseName) -> Result<()> {
        let source = PurityQuery::new(service, database, deadline());
        self.query_if_changed(&source, source.fingerprint()).await
    }

    /// Reads the names, unless the fingerprint shows that they have not changed. The future
    /// `fingerprint` must not start to read before this function polls it; otherwise a changed
    /// definition could be missed.
    async fn query_if_changed(
        &self,
        source: &PurityQuery<'_>,
        fingerprint: impl Future<Output = Result<String>>,
    ) -> Result<()> {
        let ddl_count = self.ddl_count.load(Ordering::SeqCst);
        let began = Instant::now();
        let fingerprint = fingerprint.await?;
        let known = {
            let found = self.found.read();
            found.version > 0 && found.fingerprint == fingerprint
        };
        let untrusted = if known {
            None
        } else {
            Some(find(&source.definitions().await?))
        };
        let mut found = self.found.write();
        if let Some(untrusted) = untrusted {
            tracing::debug!(database = %source.database, ?untrusted, "read the untrusted names of the database");
            found.names = untrusted;
            found.fingerprint = fingerprint;
            found.version += 1;
        }
        found.ddl_count = ddl_count;
        found.queried = Some(began);
        found.next_query = Some(Instant::now() + began.elapsed() * PAUSE_FACTOR);
        Ok(())
    }
}

/// The deadline of a query that starts now.
fn deadline() -> Instant {
    Instant::now() + TIMEOUT
}

/// A due query for the untrusted names. While this value exists, no other query starts in the
/// background.
#[derive(Debug)]
pub(crate) struct PurityRefresh(Arc<PurityCache>);

impl PurityRefresh {
    /// Queries the database on connections of the service.
    pub(crate) async fn run_on_service(self, service: Arc<dyn Executor>, database: DatabaseName) {
        let outcome = self.0.query(&*service, &database).await;
        self.end(outcome, &database);
    }

    /// Reads the fingerprint on a connection of a role and, if the fingerprint has changed, the
    /// definitions on a connection of the service. `read` runs `fingerprint.sql` with the given
    /// deadline, and returns the role's connection to the pool.
    pub(crate) async fn run<F>(
        self,
        read: impl FnOnce(Instant) -> F,
        service: Arc<dyn Executor>,
        database: DatabaseName,
    ) where
        F: Future<Output = Result<String>>,
    {
        let deadline = deadline();
        let source = PurityQuery::new(&*service, &database, deadline);
        let outcome = self.0.query_if_changed(&source, read(deadline)).await;
        self.end(outcome, &database);
    }

    fn end(self, outcome: Result<()>, database: &DatabaseName) {
        if let Err(error) = outcome {
            tracing::debug!(%database, %error, "the untrusted names could not be read; every read is followed by a reset");
            self.0.found.write().next_query = Some(Instant::now() + RETRY);
        }
    }
}

impl Drop for PurityRefresh {
    fn drop(&mut self) {
        self.0.querying.store(false, Ordering::Release);
    }
}

impl MentionCache {
    /// Whether the text mentions one of `names`. The text is searched once for each version of the
    /// names.
    fn mentions(&self, text: &str, names: &UntrustedNames, version: u64) -> bool {
        let [no, yes] = [version * 2, version * 2 + 1];
        match self.0.load(Ordering::Relaxed) {
            known if known == no => false,
            known if known == yes => true,
            _ => {
                let mentioned = names.are_in(text);
                self.0
                    .store(if mentioned { yes } else { no }, Ordering::Relaxed);
                mentioned
            }
        }
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
        assert!(!purity.begin_query_if_due(began + VALID_FOR));
        drop(definition);
        assert!(!purity.begin_query_if_due(began));
        let postponed = purity.found.read().next_query.unwrap();
        // A second changed definition does not postpone the query again.
        drop(DdlGuard::begin(&purity));
        assert_eq!(purity.found.read().next_query, Some(postponed));
        assert!(purity.begin_query_if_due(postponed));
    }
}
