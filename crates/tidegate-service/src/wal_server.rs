//! Reads the positions up to which servers have written or replayed the WAL.

use tidegate_sql::{DatabaseName, WalPosition};
use tidegate_wire::{Config, ConnectError};
use tokio_postgres::types::PgLsn;
use tokio_postgres::{Client, Row, Statement};

use super::error;
use super::open::open_stream;

/// Selects the end of the WAL, and the end of the part that is flushed to disk. A commit that did
/// not wait for the disk (`synchronous_commit = off`) may lie after the flushed part.
const WRITTEN: &str =
    "SELECT pg_catalog.pg_current_wal_insert_lsn(), pg_catalog.pg_current_wal_flush_lsn()";
/// Selects the position up to which a standby has replayed the WAL; NULL if the server is no
/// standby.
const REPLAYED: &str = "SELECT CASE WHEN pg_catalog.pg_is_in_recovery() \
    THEN pg_catalog.pg_last_wal_replay_lsn() END";
const CLUSTER: &str = "SELECT system_identifier FROM pg_catalog.pg_control_system()";

/// A connection of the administrator that reads the positions of the primary.
#[derive(Debug)]
pub struct PrimaryWal(WalConnection);

/// A connection that reads the position of a standby. The login is that of the standby's entry in
/// `replica_urls`.
#[derive(Debug)]
pub struct StandbyWal(WalConnection);

/// Why a server cannot be used as a standby for reads.
#[derive(Debug, thiserror::Error)]
pub enum StandbyFault {
    /// The server cannot be reached.
    #[error(transparent)]
    Connection(#[from] ConnectError),
    /// The server does not answer in time.
    #[error("it does not answer")]
    Silent,
    /// The server takes writes, for example because it was promoted.
    #[error("it is no standby")]
    NoStandby,
    /// The server belongs to another cluster.
    #[error("it is a server of another cluster")]
    OtherCluster,
}

/// The positions of the primary.
#[derive(Clone, Copy, Debug)]
pub struct WrittenWal {
    /// The end of the WAL. The part after `flushed` may not be on disk yet.
    pub inserted: WalPosition,
    /// The end of the part that is on disk and may be sent to standbys.
    pub flushed: WalPosition,
}

impl PrimaryWal {
    /// Opens a connection, which counts in [`Config::streams`].
    ///
    /// # Errors
    ///
    /// If no connection can be opened.
    pub async fn open(config: &Config) -> Result<Self, ConnectError> {
        let database = &config.control_database;
        Ok(Self(WalConnection::open(config, database, WRITTEN).await?))
    }

    /// Reads the current positions. Concurrent calls are sent without waiting for each other's
    /// results.
    ///
    /// # Errors
    ///
    /// If the connection is lost, or the server is no primary any more.
    pub async fn written(&self) -> Result<WrittenWal, ConnectError> {
        let row = self.0.read().await?;
        Ok(WrittenWal {
            inserted: position(&row, 0)?.unwrap_or_default(),
            flushed: position(&row, 1)?.unwrap_or_default(),
        })
    }

    /// The number that all servers of the cluster share (`system_identifier`).
    pub fn cluster(&self) -> i64 {
        self.0.cluster
    }
}

impl StandbyWal {
    /// Opens a connection to the database in the URL of `config`. `cluster` is
    /// [`PrimaryWal::cluster`] of the primary.
    ///
    /// # Errors
    ///
    /// If no connection can be opened, or the server is of another cluster.
    pub async fn open(config: &Config, cluster: i64) -> Result<Self, StandbyFault> {
        let database = &config.admin_database;
        let connection = WalConnection::open(config, database, REPLAYED).await?;
        if connection.cluster != cluster {
            return Err(StandbyFault::OtherCluster);
        }
        Ok(Self(connection))
    }

    /// Reads the position up to which the standby has replayed the WAL.
    ///
    /// # Errors
    ///
    /// If the connection is lost, or the server is no standby.
    pub async fn replayed(&self) -> Result<WalPosition, StandbyFault> {
        let row = self.0.read().await?;
        position(&row, 0)?.ok_or(StandbyFault::NoStandby)
    }
}

#[derive(Debug)]
struct WalConnection {
    client: Client,
    query: Statement,
    cluster: i64,
}

impl WalConnection {
    async fn open(
        config: &Config,
        database: &DatabaseName,
        query: &str,
    ) -> Result<Self, ConnectError> {
        let client = open_stream(config, database).await?;
        let cluster = client.query_one(CLUSTER, &[]).await.map_err(failed)?;
        Ok(Self {
            cluster: cluster.try_get(0).map_err(failed)?,
            query: client.prepare(query).await.map_err(failed)?,
            client,
        })
    }

    async fn read(&self) -> Result<Row, ConnectError> {
        let row = self.client.query_one(&self.query, &[]).await;
        row.map_err(failed)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: tokio_postgres::Error) -> ConnectError {
    error::of_connection(&error)
}

fn position(row: &Row, column: usize) -> Result<Option<WalPosition>, ConnectError> {
    let position: Option<PgLsn> = row.try_get(column).map_err(failed)?;
    Ok(position.map(|position| WalPosition(position.into())))
}
