#![doc = include_str!("../README.md")]

mod catalog_reads;
mod claims;
pub mod cluster_status;
mod connect;
mod ddl_notifications;
mod deadline;
mod error;
mod kept_connection;
mod limits;
mod lock_table;
mod notifications;
mod open;
mod registration;
mod retryable_sink;
mod role_mark;
mod service_manager;
mod service_pool;
mod session;
mod standby_terminator;
mod tls;
mod transaction;
mod value;
mod wal_server;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_sql::{
    BoundStatement, BoxFuture, Completion, DatabaseName, Description, Error, Executor, Mode,
    Principal, QueryOptions, Result, RowSink, Transaction,
};
use tokio::sync::broadcast;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::warn;

pub use claims::{ClaimsFunctions, ClaimsState, claims_state, install_claims};
pub use ddl_notifications::{
    DECIDE_SQL, DdlNotification, ListenEnd, event_trigger_source, install_event_trigger,
};
pub use kept_connection::{KeptConnection, KeptConnectionError};
pub use limits::{Limits, shared_connections};
pub use notifications::{CHANNEL, Notification};
pub use open::{open, open_as_user, open_stream};
pub use registration::{NodeDemand, NodeIdentity, NodeRegistration, NodeShare};
pub use role_mark::ROLE_MARK;
pub use standby_terminator::StandbyTerminator;
pub use wal_server::{PrimaryWal, StandbyFault, StandbyWal, WrittenWal};

use tidegate_wire::backoff::Jitter;
use tidegate_wire::{
    Backend, BackendTerminator, Config, ConnectError, SESSIONS, TerminateOutcome,
    is_lock_table_full,
};

use catalog_reads::CatalogReads;
use connect::{CATALOG, CONTROL};
use deadline::{deadline, within};
use limits::Permits;
use lock_table::LockTable;
use retryable_sink::RetryableSink;
use service_pool::{ServiceCircuitBreaker, ServicePool};
use transaction::ServiceTransaction;

/// The limit on connections to the catalog of one database.
const CATALOG_CONNECTIONS: usize = 2;
/// How long a connection to a catalog may be idle.
const CATALOG_IDLE: Duration = Duration::from_secs(30);
/// The time limit for terminating a backend.
const TERMINATE: Duration = Duration::from_secs(5);
/// The maximum number of notifications that are stored for a slow receiver. A receiver that lags
/// further behind misses notifications.
const NOTIFICATIONS: usize = 256;

/// Runs the service's own statements in PostgreSQL: [`Principal::Control`] and
/// [`Principal::Catalog`].
///
/// Control statements run as the administrator in the control database. Catalog statements run as
/// the administrator in a tenant's database, with an empty `search_path`, and in read-only
/// transactions unless a transaction in [`Mode::ReadWrite`] is opened. The columns of all results
/// are in binary format.
pub struct ServiceConnections {
    config: Arc<Config>,
    circuit_breaker: Arc<ServiceCircuitBreaker>,
    main: ServicePool,
    /// The pool for terminating backends. It is separate from `main`, so that a termination never
    /// waits for other work.
    termination: ServicePool,
    catalogs: Mutex<HashMap<DatabaseName, ServicePool>>,
    catalog_reads: CatalogReads,
    permits: Permits,
    notifications: broadcast::Sender<Notification>,
    lock_table: LockTable,
    tasks: [AbortHandle; 2],
}

impl ServiceConnections {
    /// Creates the pools. Starts two background tasks: one listens for notifications, and one makes
    /// room in PostgreSQL's lock table when it is full. Other connections are opened when they are
    /// needed. Must be called within a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`ConnectError::Tls`] if the certificates cannot be read.
    pub fn new(config: Arc<Config>, jitter: Jitter) -> Result<Self, ConnectError> {
        let circuit_breaker = Arc::new(ServiceCircuitBreaker::new(jitter.clone()));
        let database = &config.control_database;
        let pool =
            |size| ServicePool::new(&config, database, CONTROL, size, circuit_breaker.clone());
        let (main, termination) = (pool(Limits::default().control)?, pool(1)?);
        let (notifications, _) = broadcast::channel(NOTIFICATIONS);
        let lock_table = LockTable::new();
        let guarding = lock_table.guard(config.clone(), jitter.clone());
        let guard = tokio::spawn(guarding).abort_handle();
        let listening = notifications::listen(
            config.clone(),
            circuit_breaker.clone(),
            jitter,
            notifications.clone(),
        );
        let listener = tokio::spawn(listening).abort_handle();
        Ok(Self {
            config,
            circuit_breaker,
            main,
            termination,
            catalogs: Mutex::default(),
            catalog_reads: CatalogReads::default(),
            permits: Permits::new(Limits::default()),
            notifications,
            lock_table,
            tasks: [listener, guard],
        })
    }

    /// Changes the limits on connections. By default, connections to the databases of tenants are
    /// unlimited. If there are more connections than the new limits, idle connections are closed
    /// immediately. Connections in use are closed by a later call, when they are idle. Returns how
    /// many connections above the limits are left.
    pub fn set_limits(&self, limits: Limits) -> usize {
        let permits = self.permits.set(limits);
        let open = self.permits.trim(&self.catalogs.lock());
        // A pooled connection in use above a limit is in both counts, because it holds a permit and
        // is open in its pool. So the result is the larger count, and not the sum.
        permits.max(open + self.main.trim(limits.control))
    }

    /// How many service connections are open, including sessions of administration and the
    /// registration of the node.
    pub fn open_connections(&self) -> usize {
        // The number of tasks that hold a connection: one listens, one guards the lock table, and
        // one registers the node.
        const TASKS: usize = 3;
        let catalogs = self.catalogs.lock();
        let catalogs: usize = catalogs.values().map(|pool| pool.occupancy().0).sum();
        let pools = self.main.occupancy().0 + self.termination.occupancy().0 + catalogs;
        let sessions = SESSIONS.saturating_sub(self.config.sessions.available_permits());
        TASKS + pools + self.permits.listeners_in_use() + sessions + self.streams()
    }

    /// How many connections of [`open_stream`] are open. They read outboxes, or WAL positions.
    pub fn streams(&self) -> usize {
        self.config.streams.load(Ordering::Relaxed)
    }

    /// How many databases have had their catalogs read regularly in the last few seconds. These are
    /// mainly the databases that have subscribers.
    pub fn polled_databases(&self) -> usize {
        self.catalog_reads.polled(Instant::now())
    }

    /// Returns a receiver of the notifications that arrive after this call. A receiver that lags
    /// too far behind misses notifications, and must then invalidate its caches.
    pub fn notifications(&self) -> broadcast::Receiver<Notification> {
        self.notifications.subscribe()
    }

    /// Checks that the control database responds, for `/readyz`.
    ///
    /// # Errors
    ///
    /// If no connection can be opened, or the statement fails.
    pub async fn ping(&self) -> Result<()> {
        let session = self.session(&Principal::Control).await?;
        session.command("SELECT 1").await?;
        session.release();
        Ok(())
    }

    /// Closes the connections to a database, which is about to be dropped or renamed.
    pub fn close(&self, database: &DatabaseName) {
        if let Some(pool) = self.catalogs.lock().remove(database) {
            pool.close();
        }
    }

    async fn session(&self, who: &Principal) -> Result<session::ServiceSession> {
        match who {
            Principal::Control => {
                let permit = self.permits.control().await?;
                let session = self.main.session().await?;
                Ok(session.with_permits([Some(permit), None]))
            }
            Principal::Catalog(database) => {
                self.catalog_reads.record(database, Instant::now());
                // The permit of the database is acquired first, so that requests that wait for one
                // database do not hold permits that all databases share.
                let of_database = self.catalog(database)?.permit().await?;
                let of_catalogs = self.permits.lookup().await?;
                let session = self.catalog(database)?.session().await?;
                Ok(session.with_permits([Some(of_database), Some(of_catalogs)]))
            }
            Principal::Role(_) => Err(Error::internal(
                "statements of users do not run on the service's connections",
            )),
        }
    }

    fn catalog(&self, database: &DatabaseName) -> Result<ServicePool> {
        let mut catalogs = self.catalogs.lock();
        catalogs.retain(|name, pool| pool.expire(CATALOG_IDLE) || name == database);
        self.permits.make_room(&catalogs, database);
        if let Some(pool) = catalogs.get(database) {
            return Ok(pool.clone());
        }
        let circuit_breaker = self.circuit_breaker.clone();
        let pool = ServicePool::new(
            &self.config,
            database,
            CATALOG,
            CATALOG_CONNECTIONS,
            circuit_breaker,
        )
        .map_err(Error::internal)?;
        catalogs.insert(database.clone(), pool.clone());
        Ok(pool)
    }

    /// Runs a statement. Retries the statement if PostgreSQL's lock table was full and no row was
    /// returned.
    async fn run(
        &self,
        who: &Principal,
        statement: &BoundStatement,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        let mut sink = RetryableSink::new(sink);
        for _ in 1..lock_table::TRIES {
            match self.run_once(who, statement, &mut sink).await {
                Err(error) if is_lock_table_full(&error) && !sink.has_rows() => {
                    self.lock_table.request_and_wait().await;
                }
                done => return done,
            }
        }
        self.run_once(who, statement, &mut sink).await
    }

    async fn run_once(
        &self,
        who: &Principal,
        statement: &BoundStatement,
        sink: &mut dyn RowSink,
    ) -> Result<Completion> {
        let session = self.session(who).await?;
        let several = statement.sets.len() > 1;
        if several {
            session.begin(Mode::ReadWrite).await?;
        }
        let outcome = session.run(statement, sink).await;
        match outcome {
            Ok(completion) => {
                if several {
                    session.command("COMMIT").await?;
                }
                session.release();
                Ok(completion)
            }
            // Outside of a transaction a refused statement leaves nothing open, so the connection
            // can be reused.
            Err(error)
                if !several
                    && (matches!(error, Error::Rejected(_)) || is_lock_table_full(&error)) =>
            {
                session.release();
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn try_terminate(&self, backend: &Backend) -> Result<TerminateOutcome> {
        let session = self.termination.session().await?;
        let exists = session.terminate(backend).await?;
        session.release();
        Ok(if exists {
            TerminateOutcome::Requested
        } else {
            TerminateOutcome::Gone
        })
    }
}

impl Executor for ServiceConnections {
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>> {
        Box::pin(within(deadline(options), self.run(who, statement, sink)))
    }

    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        mode: Mode,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>> {
        let deadline = deadline(options);
        Box::pin(within(deadline, async move {
            let session = self.session(who).await?;
            session.begin(mode).await?;
            let transaction = ServiceTransaction::new(session, deadline);
            Ok(Box::new(transaction) as Box<dyn Transaction>)
        }))
    }

    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>> {
        Box::pin(within(deadline(options), async move {
            let session = self.session(who).await?;
            let described = session.describe(statement).await;
            if matches!(described, Ok(_) | Err(Error::Rejected(_))) {
                session.release();
            }
            described
        }))
    }
}

impl BackendTerminator for ServiceConnections {
    fn lock_table_is_full(&self) {
        self.lock_table.request();
    }

    fn terminate(&self, backend: Backend) -> BoxFuture<'_, TerminateOutcome> {
        Box::pin(async move {
            let terminating = within(
                Some(Instant::now() + TERMINATE),
                self.try_terminate(&backend),
            );
            let outcome = terminating.await.unwrap_or_else(|error| {
                warn!(?backend, %error, "a backend could not be terminated");
                TerminateOutcome::Unknown
            });
            if outcome == TerminateOutcome::Requested {
                warn!(
                    ?backend,
                    "terminated a backend that ignored a cancel request"
                );
            }
            outcome
        })
    }
}

impl Drop for ServiceConnections {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

impl fmt::Debug for ServiceConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceConnections")
            .field("hosts", &self.config.addresses())
            .finish_non_exhaustive()
    }
}
