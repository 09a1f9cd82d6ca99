//! The changes of servers whose log cannot be read: [`ChangeLog`] by triggers that write each
//! change into a table, the outbox, from where it is read in an order in which it is safe.
//!
//! It costs the writers of captured tables more than reading the log does, and needs nothing of
//! the server but the right to make a schema and triggers (docs/adr/0009-outbox.md).

mod capture;
mod image;
mod layout;
mod message;
mod open;
mod parted;
mod reader;
mod readers;
mod release;
mod removal;
mod retain;
mod retry;
mod schema;
mod session;
mod standing;
mod status;
mod stream;

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_changelog::{
    Captured, ChangeLog, Demand, LogError, LogPosition, LogResult, LogStart, LogStream,
};
use tidegate_postgres::Credentials;
use tidegate_sql::{BoxFuture, DatabaseName};
use tidegate_wire::Config;

use crate::actor::{Actor, Logins};

pub use removal::OutboxRemoval;
pub use status::{OutboxReader, OutboxStatus};

/// How the outbox is filled, read and kept.
#[derive(Clone, Debug)]
pub struct OutboxSettings {
    /// How many bytes of changes are kept for those that come back.
    pub retention: u64,
    /// For how long writers go on to fill the outbox when no node runs any more. A node that
    /// comes back later tells its subscribers of a gap.
    pub lease: Duration,
    /// How soon it is looked again whether there is something new: after something came, and
    /// after nothing has come for long.
    pub pace: (Duration, Duration),
    /// How long a lock on a table may be waited for at a time: meanwhile its writers wait too.
    pub lock_patience: Duration,
}

impl Default for OutboxSettings {
    fn default() -> Self {
        Self {
            retention: 256 << 20,
            lease: Duration::from_mins(10),
            pace: (Duration::from_millis(5), Duration::from_millis(80)),
            lock_patience: Duration::from_millis(250),
        }
    }
}

/// Reads the outboxes of a cluster's databases.
#[derive(Clone)]
pub struct Outbox {
    shared: Arc<Shared>,
}

struct Shared {
    logins: Logins,
    settings: OutboxSettings,
    /// How far the streams of this node are: what they have not read is not thrown away.
    streams: Mutex<HashMap<DatabaseName, Vec<Weak<AtomicU64>>>>,
}

impl Shared {
    /// Knows of a stream as long as it lives.
    fn register(&self, database: &DatabaseName, start: LogPosition) -> Arc<AtomicU64> {
        let confirmed = Arc::new(AtomicU64::new(start.0));
        let mut streams = self.streams.lock();
        let streams = streams.entry(database.clone()).or_default();
        streams.retain(|stream| stream.strong_count() > 0);
        streams.push(Arc::downgrade(&confirmed));
        confirmed
    }

    /// What no stream of this node needs any more is before this.
    fn confirmed(&self, database: &DatabaseName) -> Option<LogPosition> {
        let streams = self.streams.lock();
        let live = streams.get(database)?.iter().filter_map(Weak::upgrade);
        let lowest = live.map(|stream| stream.load(Ordering::Acquire)).min();
        lowest.map(LogPosition)
    }
}

impl Outbox {
    /// `admin` is the administrator's login, to whom outboxes belong; `owners` knows the logins of
    /// the databases' owners, who own most tables.
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
                    lock_patience: settings.lock_patience,
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
            .field("target", &self.shared.logins.admin.target)
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}

impl ChangeLog for Outbox {
    fn open<'a>(
        &'a self,
        database: &'a DatabaseName,
        start: LogStart,
    ) -> BoxFuture<'a, LogResult<Box<dyn LogStream>>> {
        Box::pin(async move {
            let stream = open::open(&self.shared, database, start).await?;
            Ok(Box::new(stream) as Box<dyn LogStream>)
        })
    }

    fn capture<'a>(
        &'a self,
        database: &'a DatabaseName,
        demand: &'a Demand,
    ) -> BoxFuture<'a, LogResult<Captured>> {
        Box::pin(capture::capture(&self.shared, database, demand))
    }

    fn partitions<'a>(
        &'a self,
        database: &'a DatabaseName,
        relation: u32,
        told: &'a [u32],
    ) -> BoxFuture<'a, LogResult<Option<LogPosition>>> {
        Box::pin(async move {
            let admin = Actor::admin(&self.shared.logins, database).await?;
            admin.look(&parted::Table, relation, told).await
        })
    }

    fn health_query(&self) -> &'static str {
        standing::STANDING
    }

    fn release<'a>(
        &'a self,
        database: &'a DatabaseName,
        kept: &'a [u32],
    ) -> BoxFuture<'a, LogResult<()>> {
        Box::pin(release::release(&self.shared, database, kept))
    }

    fn retain<'a>(
        &'a self,
        database: &'a DatabaseName,
        keep: LogPosition,
    ) -> BoxFuture<'a, LogResult<LogPosition>> {
        Box::pin(retain::retain(&self.shared, database, keep))
    }

    fn abandon<'a>(&'a self, database: &'a DatabaseName) -> BoxFuture<'a, LogResult<()>> {
        Box::pin(release::abandon(&self.shared, database))
    }
}

/// A position as the tables have it. None of them is negative.
fn position(number: i64) -> LogPosition {
    LogPosition(number.unsigned_abs())
}

/// A position for the tables.
fn number(position: LogPosition) -> i64 {
    i64::try_from(position.0).unwrap_or(i64::MAX)
}

/// The error of an answer of our own that cannot be read.
fn unreadable(what: &'static str) -> LogError {
    LogError::Internal(what.into())
}
