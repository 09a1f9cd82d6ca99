//! [`ChangeLog`] for servers whose WAL cannot be decoded. Triggers write each change into a table,
//! the outbox. Streams read the outbox in the order of commits.
//!
//! The outbox costs writers of captured tables more than logical decoding does. It needs only the
//! privilege to create a schema and triggers (docs/adr/0009-outbox.md).

mod capture;
mod health;
mod layout;
mod locked_work;
mod open;
mod partitions;
mod pgoutput;
mod reader;
mod readers;
mod record_text;
mod release;
mod removal;
mod retain;
mod schema;
mod session;
mod status;
mod stream;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate_changelog::{
    Captured, ChangeLog, Demand, LogError, LogPosition, LogResult, LogStart, LogStream,
};
use tidegate_postgres::Credentials;
use tidegate_sql::DatabaseName;
use tidegate_wire::Config;

use crate::capture_session::{CaptureSession, Logins};

pub use removal::OutboxRemoval;
pub use status::{OutboxReader, OutboxStatus};

/// The settings of the outbox.
#[derive(Clone, Debug)]
pub struct OutboxSettings {
    /// The maximum number of bytes of changes that the outbox keeps for subscribers that resume.
    pub retention: u64,
    /// The maximum time for which triggers keep writing after the last node has stopped. If a node
    /// starts after the triggers have stopped, it reports a gap to its subscribers.
    pub lease: Duration,
    /// The shortest and the longest poll interval. The interval is the shortest after a change was
    /// read, and grows while nothing is read.
    pub poll_intervals: (Duration, Duration),
    /// The timeout for a lock on a table. Writers of the table may have to wait as long as this.
    pub lock_timeout: Duration,
    /// The id of the node. It is part of the `application_name` of the sessions of the node's
    /// streams. `None` if the node has no id.
    pub node: Option<u32>,
}

impl Default for OutboxSettings {
    fn default() -> Self {
        Self {
            retention: 256 << 20,
            lease: Duration::from_mins(10),
            poll_intervals: (Duration::from_millis(5), Duration::from_millis(80)),
            lock_timeout: Duration::from_millis(250),
            node: None,
        }
    }
}

/// The outboxes of a cluster's databases.
#[derive(Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
}

struct Shared {
    logins: Logins,
    settings: OutboxSettings,
    /// For each database, the positions that this node's streams have confirmed. Changes after the
    /// lowest of them are not deleted.
    streams: Mutex<HashMap<DatabaseName, Vec<Weak<AtomicU64>>>>,
}

impl Shared {
    /// Registers a stream that starts at `start`. Returns the variable in which the stream stores
    /// the position that it has confirmed. The stream is registered until the variable is dropped.
    fn register(&self, database: &DatabaseName, start: LogPosition) -> Arc<AtomicU64> {
        let confirmed = Arc::new(AtomicU64::new(start.0));
        let mut streams = self.streams.lock();
        let streams = streams.entry(database.clone()).or_default();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&confirmed));
        confirmed
    }

    /// The lowest position that a stream of this node has confirmed; `None` if there is no stream.
    /// The streams need no changes before it.
    fn confirmed(&self, database: &DatabaseName) -> Option<LogPosition> {
        let streams = self.streams.lock();
        let live = streams.get(database)?.iter().filter_map(Weak::upgrade);
        let lowest = live.map(|stream| stream.load(Ordering::Acquire)).min();
        lowest.map(LogPosition)
    }
}

impl Outbox {
    /// Creates the outboxes' change log. `admin` is the login of the administrator, who owns the
    /// outboxes. `owners` provides the credentials of the databases' owners, who own most tables.
    pub fn new(
        admin: Config,
        owners: Option<Arc<dyn Credentials>>,
        settings: OutboxSettings,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                logins: Logins {
                    admin,
                    owners,
                    lock_timeout: settings.lock_timeout,
                },
                settings,
                streams: Mutex::default(),
            }),
        }
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("hosts", &self.shared.logins.admin.addresses())
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ChangeLog for Outbox {
    async fn open(
        &self,
        database: &DatabaseName,
        start: LogStart,
    ) -> LogResult<Box<dyn LogStream>> {
        let stream = open::open(&self.shared, database, start).await?;
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
        let admin = CaptureSession::admin(&self.shared.logins, database).await?;
        admin.check(&partitions::Table, relation, reported).await
    }

    fn health_query(&self) -> &'static str {
        health::HEALTH_QUERY
    }

    async fn release(&self, database: &DatabaseName, kept: &[u32]) -> LogResult<()> {
        release::release(&self.shared, database, kept).await
    }

    async fn retain(&self, database: &DatabaseName, keep: LogPosition) -> LogResult<LogPosition> {
        retain::retain(&self.shared, database, keep).await
    }

    async fn abandon(&self, database: &DatabaseName) -> LogResult<()> {
        release::abandon(&self.shared, database).await
    }
}

/// Converts a number in the outbox's tables to a position. Such a number is never negative.
fn position(number: i64) -> LogPosition {
    LogPosition(number.unsigned_abs())
}

/// Converts a position to its number in the outbox's tables.
fn number(position: LogPosition) -> i64 {
    i64::try_from(position.0).unwrap_or(i64::MAX)
}

/// The error for an internal query that returned an unexpected result.
fn unreadable(what: &'static str) -> LogError {
    LogError::Internal(what.into())
}
