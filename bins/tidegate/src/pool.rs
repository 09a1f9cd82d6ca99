//! The pooled connections of users, and their metrics.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use tidegate_catalog::{DdlCounter, DdlVisibility};
use tidegate_pool::{Counters, Pool, WAIT_BOUNDS};
use tidegate_postgres::{
    Authentication, Authenticators, Postgres, Replicas, ReplicatedExecutor, UserExecutor,
};
use tidegate_server::text_format::{begin_family, escape, write_metric};
use tidegate_server::{MetricsSource, Probe};
use tidegate_service::ServiceConnections;
use tidegate_sql::{BoxFuture, DatabaseName, Executor};

use crate::cli_error::Result;
use crate::service::{self, Service};
use crate::settings::Settings;
use crate::{connector, ports, replicas};

/// The executor of the service and the pool of its users' connections. Clones refer to the same
/// pool.
#[derive(Clone)]
pub(crate) struct UserPool {
    postgres: Postgres,
    control: Arc<ServiceConnections>,
    authenticators: Arc<Authenticators>,
    replicas: Option<Arc<Replicas>>,
}

impl UserPool {
    /// Opens a pool of at most `capacity` connections.
    pub(crate) fn open(service: &Service, settings: &Settings, capacity: usize) -> Result<Self> {
        let limits = service::pool_settings(capacity, settings);
        let connector = connector::connector(service, service.server.version)?;
        let pool = Pool::new(connector, limits, ports::jitter());
        let control = service.control.clone();
        let authenticators = Arc::new(Authenticators::new(control.clone()));
        let passwords = service.passwords.clone();
        let users = UserExecutor::new(pool)
            .with_authentication(authenticators.clone())
            .with_claims_keys(move |database, generation| {
                passwords.claims_key(database.as_str(), generation)
            });
        let postgres = Postgres::new(users, control.clone());
        let decisions: Arc<dyn Authentication> = authenticators.clone();
        let replicas = replicas::open(service, settings, capacity, &decisions)?;
        Ok(Self {
            postgres,
            control,
            authenticators,
            replicas,
        })
    }

    /// The executor of users' statements. It runs reads on replicas if the settings name replicas.
    pub(crate) fn executor(&self) -> Arc<dyn Executor> {
        match &self.replicas {
            Some(replicas) => Arc::new(ReplicatedExecutor::new(
                self.postgres.clone(),
                replicas.clone(),
            )),
            None => self.primary(),
        }
    }

    /// The executor that uses the primary only.
    pub(crate) fn primary(&self) -> Arc<dyn Executor> {
        Arc::new(self.postgres.clone())
    }

    /// The replicas; `None` if the settings name none.
    pub(crate) fn replicas(&self) -> Option<&Arc<Replicas>> {
        self.replicas.as_ref()
    }

    /// The executors of users' statements on the replicas.
    fn replica_executors(&self) -> impl Iterator<Item = &UserExecutor> {
        let replicas = self.replicas.iter();
        replicas.flat_map(|replicas| replicas.user_executors())
    }

    /// Notifies the pool that PostgreSQL is reachable. The pool then opens connections immediately,
    /// and does not wait for the circuit breaker's next attempt.
    pub(crate) fn resume(&self) {
        self.postgres.user_executor().pool().resume();
    }

    /// Changes the limit on connections. Returns how many open connections exceed the limit. The
    /// pool closes these connections when their requests return them. The pools of the replicas get
    /// the same limit, because a standby allows at least as many connections as its primary.
    pub(crate) fn set_capacity(&self, capacity: usize) -> usize {
        for users in self.replica_executors() {
            users.set_capacity(capacity);
        }
        self.postgres.user_executor().set_capacity(capacity)
    }

    /// The number of connections that the pool of the primary holds.
    pub(crate) fn held(&self) -> usize {
        self.postgres.user_executor().pool().stats().held
    }

    /// The databases in which statements have run, on the primary or a replica, with the number of
    /// statements.
    pub(crate) fn databases(&self) -> Vec<(DatabaseName, u64)> {
        let mut databases = self.postgres.user_executor().databases();
        for (database, statements) in self.replica_executors().flat_map(UserExecutor::databases) {
            match databases.iter_mut().find(|(known, _)| *known == database) {
                Some((_, count)) => *count += statements,
                None => databases.push((database, statements)),
            }
        }
        databases
    }

    /// Whether connections of users are open, to the primary or a replica.
    pub(crate) fn is_used(&self) -> bool {
        let mut replicas = self.replica_executors();
        self.held() > 0 || replicas.any(|users| users.pool().stats().held > 0)
    }

    /// Checks the logins of open connections after roles may have changed, see
    /// [`UserExecutor::check_logins`]. On replicas, does not check whether users may still share
    /// connections.
    pub(crate) async fn check_logins(&self) -> tidegate_sql::Result<()> {
        self.check_replica_logins().await?;
        self.postgres.user_executor().check_logins().await
    }

    /// Runs the checks that are due every second even if no role has changed: renews outdated
    /// decisions about shared connections, and checks the open logins of the primary and the
    /// replicas.
    pub(crate) async fn check_open_logins(&self) -> tidegate_sql::Result<()> {
        self.authenticators.decide_outdated().await;
        self.check_replica_logins().await?;
        self.postgres.user_executor().check_open_logins().await
    }

    async fn check_replica_logins(&self) -> tidegate_sql::Result<()> {
        for users in self.replica_executors() {
            users.check_open_logins().await?;
        }
        Ok(())
    }

    /// Invalidates the cached metadata of a database. Called when a definition in it may have
    /// changed.
    pub(crate) fn redefined(&self, database: &DatabaseName) {
        if let Some(replicas) = &self.replicas {
            replicas.redefined(database);
        }
        self.postgres.user_executor().redefined(database);
    }

    /// Invalidates this node's decision whether the users of a database share connections, see
    /// [`Authenticators::invalidate`].
    pub(crate) fn invalidate_authenticators(&self, database: &DatabaseName) {
        self.authenticators.invalidate(database);
    }

    /// Waits until no connection is in use and all cancelled statements have ended, even those on
    /// connections that the pool will close and not reuse.
    pub(crate) async fn wait_idle(&self) {
        const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);
        let users = || {
            self.replica_executors()
                .chain([self.postgres.user_executor()])
        };
        while users().any(|users| users.pool().stats().busy() > 0) {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Removes a database from the caches and closes the service connections to it.
    pub(crate) fn remove_database(&self, database: &str) {
        let database = DatabaseName::new(database);
        for users in self.replica_executors() {
            users.forget(&database);
        }
        self.postgres.user_executor().forget(&database);
        self.control.close(&database);
    }
}

impl DdlCounter for UserPool {
    fn count(&self, database: &DatabaseName, visibility: DdlVisibility) -> u64 {
        let users = self.postgres.user_executor();
        let uncounted = match visibility {
            DdlVisibility::Always => 0,
            DdlVisibility::Never => users.calls(database),
            DdlVisibility::Unknown => users.statements(database),
        };
        users.definitions(database).wrapping_add(uncounted)
    }
}

impl MetricsSource for UserPool {
    fn write(&self, text: &mut String) -> fmt::Result {
        let stats = self.postgres.user_executor().pool().stats();
        let of = |count: fn(&tidegate_pool::RoleStats) -> usize| {
            stats.roles.iter().map(count).sum::<usize>()
        };
        for (name, help, value) in [
            (
                "tidegate_pool_capacity",
                "Connections to PostgreSQL for users that this node may have open.",
                stats.capacity,
            ),
            (
                "tidegate_pool_waiting",
                "Requests that wait for a connection to PostgreSQL.",
                stats.waiting,
            ),
            (
                "tidegate_pool_reachable",
                "1 while PostgreSQL accepts connections, 0 otherwise.",
                usize::from(stats.reachable),
            ),
        ] {
            write_metric(text, (name, "gauge"), help, value)?;
        }
        let name = "tidegate_pool_connections";
        let help = "Connections to PostgreSQL for users, by state.";
        begin_family(text, name, "gauge", help)?;
        for (state, count) in [
            ("idle", of(|role| role.idle)),
            ("lent", of(|role| role.checked_out)),
            ("opening", of(|role| role.opening)),
            ("resetting", of(|role| role.resetting)),
            ("leaving", of(|role| role.closing)),
        ] {
            writeln!(text, "{name}{{state=\"{state}\"}} {count}")?;
        }
        let counters = &stats.counters;
        let shared = self.postgres.user_executor().multiplexed_requests();
        for (event, help, count) in events(counters, shared) {
            let name = format!("tidegate_pool_{event}_total");
            write_metric(text, (&name, "counter"), help, count)?;
        }
        waits(text, counters)?;
        sharing(text, &self.authenticators)
    }
}

/// Writes a metric with a value for each database about which this node has decided: 1 if its users
/// share connections, otherwise 0.
fn sharing(text: &mut String, authenticators: &Authenticators) -> fmt::Result {
    let name = "tidegate_shared_connections";
    let help = "1 where users share connections, 0 where each logs in; see the doctor.";
    begin_family(text, name, "gauge", help)?;
    for decision in authenticators.decisions() {
        let shares = u8::from(decision.objections.is_empty());
        let database = escape(decision.database.as_str());
        writeln!(text, "{name}{{database=\"{database}\"}} {shares}")?;
    }
    Ok(())
}

/// The events that are counted since the start of the process: for each, the name, the help text
/// and the count. `shared` is the count of the first event.
fn events(counters: &Counters, shared: u64) -> [(&'static str, &'static str, u64); 10] {
    [
        (
            "shared",
            "Reads that shared a connection with others of their session.",
            shared,
        ),
        (
            "reused",
            "Idle connections that were lent to a request at once.",
            counters.reused,
        ),
        ("opened", "Connections that were opened.", counters.opened),
        (
            "open_failed",
            "Attempts to open a connection that failed.",
            counters.open_failures,
        ),
        (
            "closed",
            "Connections that were closed, failed attempts to open one included.",
            counters.closed,
        ),
        (
            "evicted",
            "Idle connections that were closed to make room for another role.",
            counters.evicted,
        ),
        (
            "reset",
            "Session resets after requests that were started.",
            counters.resets,
        ),
        (
            "reset_failed",
            "Resets that failed, which closes the connection.",
            counters.reset_failures,
        ),
        (
            "timed_out",
            "Requests that got no connection within pool_timeout.",
            counters.timeouts,
        ),
        (
            "rejected",
            "Requests that were refused because the queue for connections was full.",
            counters.rejected,
        ),
    ]
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a metric of seconds needs no 53 bits"
)]
fn waits(text: &mut String, counters: &Counters) -> fmt::Result {
    let name = "tidegate_pool_wait_seconds";
    let help = "Seconds that requests waited for a connection to PostgreSQL.";
    begin_family(text, name, "histogram", help)?;
    let mut sum = 0;
    for (place, count) in counters.waits.iter().enumerate() {
        sum += count;
        match WAIT_BOUNDS.get(place) {
            Some(bound) => {
                writeln!(
                    text,
                    "{name}_bucket{{le=\"{}\"}} {sum}",
                    *bound as f64 / 1e3
                )?;
            }
            None => writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {sum}")?,
        }
    }
    let seconds = counters.waited_micros as f64 / 1e6;
    writeln!(text, "{name}_sum {seconds}\n{name}_count {sum}")
}

/// Reports on `/readyz` whether the control database is reachable.
pub(crate) struct ControlProbe(pub(crate) Arc<ServiceConnections>);

impl Probe for ControlProbe {
    fn name(&self) -> &'static str {
        "database"
    }

    fn is_ready(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { self.0.ping().await.is_ok() })
    }
}
