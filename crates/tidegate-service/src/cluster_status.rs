//! Reads the status of the cluster from PostgreSQL: the registered nodes, the change logs that they
//! read, and the positions up to which replicas have replayed the WAL.

use std::time::Duration;

use tidegate_wire::Config;
use tokio::time::timeout;
use tokio_postgres::Row;

use super::registration::IS_REGISTRATION;
use super::{KeptConnection, KeptConnectionError, PrimaryWal, StandbyFault, StandbyWal};

/// The time limit for asking a replica.
const REPLICA: Duration = Duration::from_secs(5);

/// A registered node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeStatus {
    /// The id of the process, eight hexadecimal digits.
    pub id: String,
    /// The version of the program.
    pub version: String,
    /// The address from which the node has connected; `None` for a Unix socket.
    pub address: Option<String>,
    /// When the node started, in seconds since 1970.
    pub since: i64,
    /// How many seconds ago the node most recently registered.
    pub seen: f64,
    /// How many connections the node has claimed. The other nodes leave this number of connections
    /// to the node, even if it has fewer open.
    pub claimed: i64,
    /// How many connections the node has open.
    pub connections: i64,
}

/// A stream that reads the changes of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaderStatus {
    /// The database.
    pub database: String,
    /// The id of the node that reads; `None` if the session's `application_name` does not contain
    /// it.
    pub node: Option<String>,
    /// The id of the backend process that serves the stream.
    pub process: i32,
    /// How many bytes of WAL the node has not confirmed yet; `None` for an outbox.
    pub lag: Option<i64>,
}

/// A replica.
#[derive(Debug)]
pub struct ReplicaStatus {
    /// The host and port.
    pub address: String,
    /// How many bytes of the primary's WAL the replica has not replayed yet.
    pub lag: Result<u64, StandbyFault>,
}

/// Reads the registered nodes, the oldest first. `control` is a connection to the control database.
///
/// # Errors
///
/// If the control database cannot be queried.
pub async fn nodes(control: &KeptConnection) -> Result<Vec<NodeStatus>, KeptConnectionError> {
    let query = format!(
        "SELECT n.part[3], n.part[4], pg_catalog.host(a.client_addr), n.part[7]::int8, \
                pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() - a.state_change)::float8, \
                n.part[5]::int8, n.part[6]::int8 \
         FROM pg_catalog.pg_stat_activity a \
         CROSS JOIN LATERAL (SELECT pg_catalog.string_to_array(a.application_name, ' ')) n (part) \
         WHERE {IS_REGISTRATION} ORDER BY n.part[7]::int8, n.part[3]"
    );
    let node = |row: &Row| NodeStatus {
        id: row.get(0),
        version: row.get(1),
        address: row.get(2),
        since: row.get(3),
        seen: row.get(4),
        claimed: row.get(5),
        connections: row.get(6),
    };
    let rows = control.query(&query, &[]).await?;
    Ok(rows.iter().map(node).collect())
}

/// Reads the list of streams: for each, the database and the node that reads its changes.
///
/// # Errors
///
/// If the control database cannot be queried.
pub async fn readers(control: &KeptConnection) -> Result<Vec<ReaderStatus>, KeptConnectionError> {
    let reader = |row: &Row| ReaderStatus {
        database: row.get(0),
        node: row.get(1),
        process: row.get(2),
        lag: row.get(3),
    };
    let rows = control.query(READERS, &[]).await?;
    Ok(rows.iter().map(reader).collect())
}

/// Asks a replica how far it has replayed the WAL.
pub async fn replica(primary: &PrimaryWal, config: &Config) -> ReplicaStatus {
    let lag = timeout(REPLICA, lag(primary, config)).await;
    ReplicaStatus {
        address: config.addresses(),
        lag: lag.unwrap_or(Err(StandbyFault::Silent)),
    }
}

async fn lag(primary: &PrimaryWal, config: &Config) -> Result<u64, StandbyFault> {
    let written = primary.written().await?;
    let standby = StandbyWal::open(config, primary.cluster()).await?;
    let replayed = standby.replayed().await?;
    Ok(written.flushed.0.saturating_sub(replayed.0))
}

/// Selects the readers. A stream of WAL has a temporary slot, or the retention slot if nodes share
/// the reader. An outbox is read in an ordinary session of the administrator. The role of this
/// session is compared too, because a user could give a session the same `application_name`.
const READERS: &str = "\
    SELECT s.database::text AS database, \
           pg_catalog.substring(w.application_name, '^tidegate reader ([0-9a-f]{8})$') AS node, \
           w.pid, pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_flush_lsn(), \
               coalesce(w.replay_lsn, s.confirmed_flush_lsn))::int8 AS lag \
    FROM pg_catalog.pg_replication_slots s \
    JOIN pg_catalog.pg_stat_replication w ON w.pid = s.active_pid \
    WHERE s.slot_name::text ~ '^tidegate_[0-9]+(_[0-9]+)?$' \
    UNION ALL \
    SELECT a.datname::text, \
           pg_catalog.substring(a.application_name, '^tidegate outbox reader ([0-9a-f]{8})$'), \
           a.pid, NULL \
    FROM pg_catalog.pg_stat_activity a \
    WHERE pg_catalog.starts_with(a.application_name, 'tidegate outbox reader') \
    AND a.usename = current_user \
    ORDER BY database, node";
