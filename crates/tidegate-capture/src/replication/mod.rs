//! [`ChangeLog`] by logical decoding (PostgreSQL, "Logical Replication" and "Streaming Replication
//! Protocol").
//!
//! A database with subscribers has two publications. One publishes every operation of its tables,
//! the other only INSERT and TRUNCATE. A permanent replication slot, the *retention slot*, keeps
//! the log of the retention window. Each stream has a temporary slot, which is a copy of the
//! retention slot. Copying a slot, unlike creating one, does not wait for open transactions.
//! PostgreSQL drops a temporary slot when the connection of its node ends, for example after a
//! crash. If the nodes share one reader, the reader uses the retention slot itself. PostgreSQL lets
//! only one process at a time use a slot, so there cannot be two readers.

mod capture;
mod health;
mod invalidation_workaround;
mod lineage;
mod lock_backoff;
mod metadata;
mod missing_log;
mod partitions;
mod reader;
mod release;
mod removal;
mod replica_identity;
mod session;
mod slot;
mod status;
mod stream;
mod table_info;
mod tables;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate_changelog::{
    Captured, ChangeLog, Demand, LogError, LogPosition, LogResult, LogStart, LogStream, SharedLog,
};
use tidegate_postgres::Credentials;
use tidegate_service::KeptConnection;
use tidegate_sql::DatabaseName;
use tidegate_wire::Config;
use tokio::time::Instant;

use crate::capture_session::Logins;

pub use removal::{Removal, StreamingNode};
pub use status::{ClusterCapture, DatabaseCapture, PublicationStatus, RaisedIdentity, SlotStatus};

/// The publication that publishes every operation of its tables.
const EVERYTHING: &str = "tidegate";
/// The publication that publishes only INSERT and TRUNCATE of its tables.
const INSERTS: &str = "tidegate_inserts";

/// The settings of [`Replication`].
#[derive(Clone, Debug)]
pub struct ReplicationSettings {
    /// The maximum number of bytes of log that the retention slot keeps for subscribers that
    /// resume. With `None` there is no retention slot, and a broken stream cannot be resumed.
    pub retention: Option<u64>,
    /// The time limit for creating a slot. PostgreSQL waits for the end of the open transactions of
    /// the whole cluster before it creates a slot.
    pub slot_timeout: Duration,
    /// The timeout for locks that do not block readers and writers of a table. Locks that block
    /// them have shorter timeouts.
    pub lock_timeout: Duration,
    /// The minimum interval between two advances of a retention slot. Each advance needs a login. A
    /// slot that keeps more than `retention` is advanced without delay.
    pub advance_interval: Duration,
    /// The id of the node. It is part of the `application_name` of the sessions of the node's
    /// streams. `None` if the node has no id.
    pub node: Option<u32>,
}

impl Default for ReplicationSettings {
    fn default() -> Self {
        Self {
            retention: Some(256 << 20),
            slot_timeout: Duration::from_secs(20),
            lock_timeout: Duration::from_secs(2),
            advance_interval: Duration::from_mins(5),
            node: None,
        }
    }
}

/// The change logs of a cluster's databases.
#[derive(Clone)]
pub struct Replication {
    shared: Arc<Shared>,
}

struct Shared {
    /// The cluster, with the login that may replicate.
    reader: Config,
    logins: Logins,
    settings: ReplicationSettings,
    lock_backoff: lock_backoff::LockBackoff,
    /// The connection to the control database, for reading the state of slots.
    control: KeptConnection,
    /// The time at which this node last advanced the retention slot, for each database.
    advances: Mutex<HashMap<DatabaseName, Instant>>,
    missing_log: missing_log::MissingLog,
}

impl Shared {
    fn is_advance_due(&self, database: &DatabaseName) -> bool {
        let last = self.advances.lock().get(database).copied();
        last.is_none_or(|last| last.elapsed() >= self.settings.advance_interval)
    }

    fn record_advance(&self, database: &DatabaseName) {
        let mut advances = self.advances.lock();
        // An entry that is older than the interval has the same effect as no entry. Removing it
        // also forgets the databases that no longer have subscribers.
        advances.retain(|_, last| last.elapsed() < self.settings.advance_interval);
        advances.insert(database.clone(), Instant::now());
    }
}

impl Replication {
    /// Creates the change log. `reader` is the login for replication, `admin` that of the
    /// administrator. `owners` provides the credentials of the databases' owners, who own the
    /// publications and most tables.
    pub fn new(
        reader: Config,
        admin: Config,
        owners: Option<Arc<dyn Credentials>>,
        settings: ReplicationSettings,
    ) -> Self {
        let control = KeptConnection::new(&Arc::new(admin.clone()), &admin.control_database);
        Self {
            shared: Arc::new(Shared {
                control,
                advances: Mutex::default(),
                missing_log: missing_log::MissingLog::default(),
                reader,
                logins: Logins {
                    admin,
                    owners,
                    lock_timeout: settings.lock_timeout,
                },
                settings,
                lock_backoff: lock_backoff::LockBackoff::default(),
            }),
        }
    }
}

/// Checks that a login may replicate. Opens a connection in replication mode, runs
/// `IDENTIFY_SYSTEM` (PostgreSQL, "Streaming Replication Protocol"), and closes the connection.
///
/// # Errors
///
/// If the login may not replicate, or the server does not respond.
pub async fn identify(config: &Config) -> LogResult<()> {
    let mut session = session::ReplicationSession::open(config, &config.admin_database).await?;
    let response = session
        .run("IDENTIFY_SYSTEM", config.connect_timeout)
        .await?;
    if response.is_empty() {
        return Err(unreadable("the answer to IDENTIFY_SYSTEM"));
    }
    Ok(())
}

impl fmt::Debug for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replication")
            .field("hosts", &self.shared.reader.addresses())
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ChangeLog for Replication {
    async fn open(
        &self,
        database: &DatabaseName,
        start: LogStart,
    ) -> LogResult<Box<dyn LogStream>> {
        let stream = slot::open(&self.shared, database, start).await?;
        Ok(Box::new(stream))
    }

    async fn capture(&self, database: &DatabaseName, demand: &Demand) -> LogResult<Captured> {
        capture::capture(&self.shared, database, demand).await
    }

    async fn partitions(
        &self,
        database: &DatabaseName,
        relation: u32,
        reported: &[u32],
    ) -> LogResult<Option<LogPosition>> {
        partitions::check(&self.shared, (database, relation), reported).await
    }

    fn health_query(&self) -> &'static str {
        health::HEALTH_QUERY
    }

    async fn release(&self, database: &DatabaseName, kept: &[u32]) -> LogResult<()> {
        release::release(&self.shared, database, kept).await
    }

    async fn retain(&self, database: &DatabaseName, keep: LogPosition) -> LogResult<LogPosition> {
        slot::retain(&self.shared, database, keep).await
    }

    async fn abandon(&self, database: &DatabaseName) -> LogResult<()> {
        slot::abandon(&self.shared, database).await
    }
}

#[async_trait]
impl SharedLog for Replication {
    async fn open_reader(&self, database: &DatabaseName) -> LogResult<Option<Box<dyn LogStream>>> {
        let stream = reader::open(&self.shared, database).await?;
        Ok(stream.map(|stream| Box::new(stream) as Box<dyn LogStream>))
    }

    async fn close_reader(&self, database: &DatabaseName, age: Duration) -> LogResult<()> {
        reader::close(&self.shared, database, age).await
    }

    async fn end(&self, database: &DatabaseName) -> LogResult<LogPosition> {
        slot::end(&self.shared, database).await
    }
}

/// The error for an internal query that returned an unexpected result.
fn unreadable(what: &'static str) -> LogError {
    LogError::Internal(what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_of_the_contract_is_kept_where_nothing_is_set() {
        let retention = ReplicationSettings::default().retention;
        assert_eq!(retention, Some(256 * 1024 * 1024));
    }
}
