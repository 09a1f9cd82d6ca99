//! Logs the queries of a feed, and holds back the result of one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_feed::Feed;
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, Description, Error, Executor, Mode, Principal,
    QueryOptions, Result, RowSink, Transaction,
};
use tokio::sync::{Notify, OwnedRwLockWriteGuard, RwLock};
use tokio::time::{sleep, timeout};

use crate::fixture::{Fixture, LogSource, Setup, executor, node_with};

/// A word that occurs only in the query for privileges.
pub(crate) const PRIVILEGES: &str = "has_table_privilege";

/// A word that occurs only in the poll of the catalog and in the query for the health of a capture.
const HEALTH: &str = match crate::SOURCE {
    LogSource::Log => "prrelid",
    LogSource::Outbox => "tgenabled",
};

/// A word that occurs only in the query for types.
pub(crate) const TYPES: &str = "rngsubtype";

/// The deadline for the events that a test waits for.
const DEADLINE: Duration = Duration::from_secs(30);

/// The statements that a feed has run, each with whether it ran as a user.
#[derive(Clone, Default)]
pub(crate) struct QueryLog {
    statements: Arc<Mutex<Vec<(bool, String)>>>,
    /// The word of the query whose next result is to be held back.
    holds: Arc<Mutex<Option<&'static str>>>,
    /// Write-locked while the result is to be held back.
    gate: Arc<RwLock<()>>,
    held: Arc<Notify>,
    /// How many transactions and statements of users are still to fail, as in an outage.
    failures: Arc<AtomicUsize>,
}

impl QueryLog {
    /// A fixture with a log of its feed's queries.
    pub(crate) async fn fixture(name: &str, setup: &Setup) -> (Fixture, Self) {
        let mut fixture = Fixture::with(name, setup).await;
        let (feed, queries) = Self::node(setup);
        fixture.feed = feed;
        (fixture, queries)
    }

    /// A feed with a log of its queries.
    pub(crate) fn node(setup: &Setup) -> (Feed, Self) {
        let queries = Self::default();
        let executor = LoggingExecutor {
            inner: executor(setup),
            queries: queries.clone(),
        };
        (node_with(setup, Arc::new(executor)), queries)
    }

    /// How many statements contained a word.
    pub(crate) fn count(&self, word: &str) -> usize {
        let queries = self.statements.lock();
        queries
            .iter()
            .filter(|(_, text)| text.contains(word))
            .count()
    }

    /// How many statements have run, including those that begin and end transactions.
    pub(crate) fn statements(&self) -> usize {
        self.statements.lock().len()
    }

    /// Waits until the catalog has been polled this many times from now on.
    pub(crate) async fn polled(&self, times: usize) {
        let polls = || self.count(HEALTH);
        let wanted = polls() + times;
        let polled = async {
            while polls() < wanted {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let polled = timeout(DEADLINE, polled).await;
        polled.expect("the catalog is not polled");
    }

    /// Holds back the result of the next poll until the returned guard is dropped.
    pub(crate) async fn hold_poll(&self) -> OwnedRwLockWriteGuard<()> {
        self.hold_query(HEALTH).await
    }

    /// Holds back the result of the next query that contains a word, until the returned guard is
    /// dropped.
    pub(crate) async fn hold_query(&self, word: &'static str) -> OwnedRwLockWriteGuard<()> {
        let gate = self.gate.clone().write_owned().await;
        *self.holds.lock() = Some(word);
        gate
    }

    /// Waits until the result of a query is held back.
    pub(crate) async fn held(&self) {
        let held = timeout(DEADLINE, self.held.notified()).await;
        held.expect("the query to hold back is not run");
    }

    /// How many statements ran as a user.
    pub(crate) fn run_as_users(&self) -> usize {
        self.statements
            .lock()
            .iter()
            .filter(|(user, _)| *user)
            .count()
    }

    /// Lets the next transactions and statements of users fail, as if PostgreSQL were unreachable.
    pub(crate) fn fail_as_users(&self, times: usize) {
        self.failures.store(times, Ordering::Relaxed);
    }

    /// How many of these are still to fail.
    pub(crate) fn failures_left(&self) -> usize {
        self.failures.load(Ordering::Relaxed)
    }

    fn check_reachable(&self, is_user: bool) -> Result<()> {
        let one_less = |left: usize| left.checked_sub(1);
        let (order, failures) = (Ordering::Relaxed, &self.failures);
        if is_user && failures.fetch_update(order, order, one_less).is_ok() {
            return Err(Error::Unavailable {
                retry_after: Duration::ZERO,
                source: None,
            });
        }
        Ok(())
    }

    /// Waits while the result of one of these statements is held back.
    async fn pause(&self, texts: &[&str]) {
        let is_held = |word: &mut &str| texts.iter().any(|text| text.contains(*word));
        if self.holds.lock().take_if(is_held).is_some() {
            self.held.notify_one();
            drop(self.gate.read().await);
        }
    }

    fn log_begin_and_commit(&self, is_user: bool) {
        let both = ["BEGIN", "COMMIT"].map(|text| (is_user, text.to_owned()));
        self.statements.lock().extend(both);
    }

    fn log(&self, is_user: bool, statement: &BoundStatement) {
        let text = statement.statement.text().to_owned();
        self.statements.lock().push((is_user, text));
    }
}

struct LoggingExecutor {
    inner: Arc<dyn Executor>,
    queries: QueryLog,
}

impl Executor for LoggingExecutor {
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(async move {
            self.queries.log(is_user(who), statement);
            self.queries.check_reachable(is_user(who))?;
            let done = self.inner.query(who, statement, options, sink).await;
            self.queries.pause(&[statement.statement.text()]).await;
            done
        })
    }

    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        mode: Mode,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        Box::pin(async move {
            self.queries.check_reachable(is_user(who))?;
            let inner = self.inner.begin(who, mode, options).await?;
            self.queries.log_begin_and_commit(is_user(who));
            let (queries, is_user) = (self.queries.clone(), is_user(who));
            let transaction = LoggingTransaction {
                inner,
                queries,
                is_user,
                texts: Vec::new(),
            };
            Ok(Box::new(transaction) as Box<dyn Transaction>)
        })
    }

    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        self.inner.describe(who, statement, options)
    }
}

fn is_user(who: &Principal) -> bool {
    matches!(who, Principal::Role(_))
}

struct LoggingTransaction {
    inner: Box<dyn Transaction>,
    queries: QueryLog,
    is_user: bool,
    /// The statements of the transaction.
    texts: Vec<String>,
}

impl Transaction for LoggingTransaction {
    fn query<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        self.queries.log(self.is_user, statement);
        self.texts.push(statement.statement.text().to_owned());
        self.inner.query(statement, sink)
    }

    fn describe<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
    ) -> BoxFuture<'a, Result<Description>> {
        self.inner.describe(statement)
    }

    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        Box::pin(async move {
            self.inner.commit().await?;
            let texts: Vec<&str> = self.texts.iter().map(String::as_str).collect();
            self.queries.pause(&texts).await;
            Ok(())
        })
    }
}
