//! Makes room in PostgreSQL's lock table when it is full.
//!
//! All databases of the cluster share the lock table (PostgreSQL, `max_locks_per_transaction`). A
//! transaction that creates thousands of tables can fill it. When the table is full, no transaction
//! can write, and no login succeeds. PostgreSQL does not limit the locks of one session.
//!
//! The guard is a connection that holds two kinds of locks: the locks that it needs to find the
//! session with the most locks, and a reserve. When the table is full, the guard releases the
//! reserve and terminates the session with the most locks. PostgreSQL cannot terminate a session
//! while the session parses a very long query string. Until the session ends, the service's
//! statements use the room that the released reserve has left.

use std::sync::Arc;
use std::time::Duration;

use tidegate_wire::backoff::{Backoff, Jitter};
use tidegate_wire::{Config, ConnectError};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};
use tracing::{debug, warn};

use super::connect::{CONTROL, connect};
use crate::role_mark::ROLE_MARK;

/// The maximum number of attempts at a statement that finds the table full.
pub(super) const TRIES: u32 = 5;
/// The maximum wait between two attempts at a statement that found the table full.
const WAIT: Duration = Duration::from_secs(2);
/// The time limit of one check of the lock table.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause after each requested check, and before another attempt to begin a transaction.
const PAUSE: Duration = Duration::from_millis(50);
/// The interval at which the guard tries to take the reserve again after it has released it.
const RESERVE_RETRY: Duration = Duration::from_secs(1);
/// How long one transaction of the guard stays open. Longer transactions would trigger monitoring
/// alarms for sessions that are idle in a transaction.
const MAX_TRANSACTION: Duration = Duration::from_mins(1);
/// The longest delay between attempts to connect.
const MAX_RECONNECT_DELAY: Duration = Duration::from_secs(5);

/// The catalogs that PostgreSQL reads to parse and plan a check if the session's caches are empty.
/// Other sessions can invalidate the caches by changing many definitions. While the table is full,
/// a catalog can be read only if the session already holds a lock on it. The planner also locks the
/// indexes of the relations that it plans to read. The list has the views `pg_roles` and `pg_stats`
/// instead of the catalogs `pg_authid` and `pg_statistic`, because only superusers may read these
/// catalogs. Every role may read the views, and reading a view also locks its catalog.
const CATALOGS: [&str; 30] = [
    "pg_aggregate",
    "pg_am",
    "pg_amop",
    "pg_amproc",
    "pg_attrdef",
    "pg_attribute",
    "pg_auth_members",
    "pg_cast",
    "pg_class",
    "pg_collation",
    "pg_constraint",
    "pg_conversion",
    "pg_database",
    "pg_db_role_setting",
    "pg_index",
    "pg_inherits",
    "pg_language",
    "pg_namespace",
    "pg_opclass",
    "pg_operator",
    "pg_opfamily",
    "pg_proc",
    "pg_range",
    "pg_rewrite",
    "pg_roles",
    "pg_shdescription",
    "pg_statistic_ext",
    "pg_stats",
    "pg_tablespace",
    "pg_type",
];

/// Takes 64 locks, which fails if the table is full. The probe is needed because the error of a
/// user's statement does not prove that the table is full: any user can raise the same error.
const PROBE: &str = "SAVEPOINT probe; \
    SELECT pg_catalog.count(pg_catalog.pg_try_advisory_xact_lock( \
        pg_catalog.pg_backend_pid(), entry)) FROM pg_catalog.generate_series(1, 64) entry";
const END_PROBE: &str = "ROLLBACK TO SAVEPOINT probe; RELEASE SAVEPOINT probe";
/// Takes the reserve: as many entries of the lock table as four sessions may use on average, 256 by
/// default. Fails if fewer entries are free.
const RESERVE: &str = "SAVEPOINT reserve; \
    SELECT pg_catalog.count(pg_catalog.pg_try_advisory_xact_lock( \
        pg_catalog.pg_backend_pid(), 64 + entry)) FROM pg_catalog.generate_series(1, \
        4 * pg_catalog.current_setting('max_locks_per_transaction')::pg_catalog.int4) entry";
const END_RESERVE: &str = "ROLLBACK TO SAVEPOINT reserve; RELEASE SAVEPOINT reserve";

/// Passes requests for checks to the guard. A statement that finds the lock table full requests a
/// check.
pub(super) struct LockTable {
    requested: Arc<Notify>,
    /// The number of requested checks that have ended.
    checks: watch::Sender<u64>,
}

impl LockTable {
    pub(super) fn new() -> Self {
        Self {
            requested: Arc::default(),
            checks: watch::Sender::new(0),
        }
    }

    /// Requests a check without waiting for it.
    pub(super) fn request(&self) {
        self.requested.notify_one();
    }

    /// Requests a check and waits until it has ended, at most [`WAIT`].
    pub(super) async fn request_and_wait(&self) {
        let mut checks = self.checks.subscribe();
        self.request();
        // The statement is retried even after a timeout.
        let _ = timeout(WAIT, checks.changed()).await;
    }

    /// Runs the guard while the future is polled: keeps its connection open, and checks the lock
    /// table on request.
    pub(super) fn guard(
        &self,
        config: Arc<Config>,
        jitter: Jitter,
    ) -> impl Future<Output = ()> + Send + use<> {
        let (requested, checks) = (self.requested.clone(), self.checks.clone());
        async move {
            let mut backoff = Backoff::new(jitter);
            loop {
                if let Err(error) = serve_checks(&config, &requested, &checks).await {
                    debug!(%error, "the guard of the lock table has no connection");
                }
                tokio::time::sleep(backoff.fail().min(MAX_RECONNECT_DELAY)).await;
            }
        }
    }
}

/// The guard's state between checks.
#[derive(Default)]
struct ReserveState {
    /// Whether the open transaction holds the reserve.
    has_reserve: bool,
    /// The process id of the most recently terminated backend, so that its termination is logged
    /// only once.
    terminated: Option<String>,
}

/// Keeps a transaction open, and runs the checks in it. The transaction holds all locks that a
/// check needs, so a check works while the table is full. The transaction holds no snapshot between
/// its statements. Returns when the connection has ended, or when a transaction cannot be started
/// although the table is not full.
async fn serve_checks(
    config: &Config,
    requested: &Notify,
    checks: &watch::Sender<u64>,
) -> Result<(), ConnectError> {
    let (client, connection) = connect(config, &config.control_database, CONTROL).await?;
    let mut ended = tokio::spawn(connection);
    let mut guard = ReserveState::default();
    loop {
        if let Err(error) = begin(&client).await {
            // The table is full. This connection is kept, because no login succeeds until there is
            // room again.
            if error.code() == Some(&SqlState::OUT_OF_MEMORY) {
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            // If the connection has ended, another one is opened, and nothing has to be reported.
            if !ended.is_finished() {
                warn!(%error, "cannot guard the lock table");
            }
            return Ok(());
        }
        // The ROLLBACK of `begin` has released the reserve.
        guard.has_reserve = false;
        let expired = tokio::time::sleep(MAX_TRANSACTION);
        tokio::pin!(expired);
        let mut is_ready = check_with_timeout(&client, &mut guard).await;
        while is_ready {
            tokio::select! {
                _ = &mut ended => return Ok(()),
                () = &mut expired => is_ready = false,
                () = tokio::time::sleep(RESERVE_RETRY), if !guard.has_reserve => {
                    is_ready = check_with_timeout(&client, &mut guard).await;
                }
                () = requested.notified() => {
                    is_ready = check_with_timeout(&client, &mut guard).await;
                    checks.send_modify(|checks| *checks += 1);
                    // One check serves all requests that arrive during the pause.
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

/// Runs a check with a time limit. Returns whether the transaction can be used for another check.
async fn check_with_timeout(client: &Client, guard: &mut ReserveState) -> bool {
    let outcome = timeout(CHECK_TIMEOUT, check(client, guard)).await;
    let is_ready = matches!(outcome, Ok(Ok(())));
    if !is_ready {
        warn!(?outcome, "lock table check failed");
    }
    is_ready
}

/// Ends the current transaction, starts the next one, and takes the locks that a check needs.
async fn begin(client: &Client) -> Result<(), tokio_postgres::Error> {
    let read = |catalog| format!("SELECT FROM pg_catalog.{catalog} LIMIT 0; ");
    let text = format!(
        "ROLLBACK; BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; {} {PROBE}; {END_PROBE}; {}",
        CATALOGS.map(read).concat(),
        terminate_sql("NULL::pg_catalog.int4")
    );
    client.simple_query(&text).await.map(drop)
}

/// Checks the lock table. If the table is full, releases the reserve and terminates the session
/// with the most locks.
async fn check(client: &Client, guard: &mut ReserveState) -> Result<(), tokio_postgres::Error> {
    if has_room(client, guard).await? {
        return Ok(());
    }
    for message in &client.simple_query(&terminate_sql("most.pid")).await? {
        if let SimpleQueryMessage::Row(row) = message
            && row.len() > 1
            && row.get(3) != guard.terminated.as_deref()
        {
            guard.terminated = row.get(3).map(str::to_owned);
            warn!(
                role = row.get(0),
                database = row.get(1),
                locks = row.get(2),
                process_id = row.get(3),
                "PostgreSQL's lock table is full; terminating the session that holds the most locks"
            );
        }
    }
    Ok(())
}

/// Whether the table has room besides the reserve. If it has room, takes the reserve unless it is
/// held. If it has no room, releases the reserve.
async fn has_room(
    client: &Client,
    guard: &mut ReserveState,
) -> Result<bool, tokio_postgres::Error> {
    let held = guard.has_reserve;
    let has_room = if held {
        let probed = client.simple_query(PROBE).await.is_ok();
        client.simple_query(END_PROBE).await?;
        probed
    } else {
        client.simple_query(RESERVE).await.is_ok()
    };
    if !has_room {
        client.simple_query(END_RESERVE).await?;
    }
    guard.has_reserve = has_room;
    Ok(has_room)
}

/// The query that terminates the session with the most locks, if it belongs to a user and holds
/// more than `max_locks_per_transaction` locks. `pid` is the SQL expression for the process to
/// terminate: `most.pid`, or NULL to terminate nothing. [`begin`] runs the query with NULL to have
/// the planner lock all relations that the query reads. The query uses no view, such as `pg_roles`,
/// because reading a view's rule can need the lock of a TOAST table. Sessions of superusers are
/// excluded, because superusers count as members of every role.
fn terminate_sql(pid: &str) -> String {
    format!(
        "SELECT pg_catalog.pg_stat_clear_snapshot(); \
         SELECT most.*, pg_catalog.pg_terminate_backend({pid}) FROM ( \
             SELECT pg_catalog.pg_get_userbyid(a.usesysid), d.datname, held.locks, a.pid \
             FROM ( \
                 SELECT l.pid, pg_catalog.count(*) AS locks FROM pg_catalog.pg_lock_status() l \
                 WHERE NOT l.fastpath GROUP BY l.pid) held \
             JOIN pg_catalog.pg_stat_get_activity(NULL) a ON a.pid = held.pid \
             JOIN pg_catalog.pg_database d ON d.oid = a.datid \
             JOIN pg_catalog.pg_shdescription m ON m.objoid = a.usesysid \
                 AND m.classoid = 'pg_catalog.pg_authid'::pg_catalog.regclass \
             WHERE a.backend_type = 'client backend' \
               AND NOT pg_catalog.pg_has_role(a.usesysid, 'pg_execute_server_program', 'MEMBER') \
               AND pg_catalog.starts_with(m.description, '{ROLE_MARK}') \
               AND held.locks > \
                   pg_catalog.current_setting('max_locks_per_transaction')::pg_catalog.int4 \
             ORDER BY held.locks DESC LIMIT 1) most"
    )
}
