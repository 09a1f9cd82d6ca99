//! The change log of a node, if several nodes share one reader for each database.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use parking_lot::Mutex;
use tidegate_changelog::{
    Captured, ChangeLog, Demand, Lineage, LogError, LogPosition, LogResult, LogStart, LogStream,
    SharedLog,
};
use tidegate_sql::DatabaseName;
use tokio::task::JoinHandle;

use crate::connection;
use crate::database::Head;
use crate::joined::Joined;
use crate::settings::BusSettings;
use crate::shared::{PRESENCE_TIMEOUT, SharedBus};
use crate::status::{BusStatus, DatabaseRole};
use crate::stream::BusStream;

/// The number of times that a stream waits again for a reader, if PostgreSQL no longer has the
/// changes that the stream needs.
const ATTEMPTS: usize = 3;

/// A change log in which one node reads each database for all nodes. Streams get their changes over
/// the bus. `release` and `abandon` do nothing while another node uses the database. `retain` also
/// determines how far the reader in this process confirms the log. All other operations are those
/// of the wrapped change log.
pub struct Bus {
    shared: Arc<SharedBus>,
    databases: Mutex<HashMap<DatabaseName, Weak<Joined>>>,
    connection: JoinHandle<()>,
}

impl Bus {
    /// Creates the bus, which connects in the background. Must be called on a tokio runtime.
    pub fn new(log: Arc<dyn SharedLog>, settings: BusSettings) -> Self {
        let shared = Arc::new(SharedBus::new(log, settings));
        let connection = tokio::spawn(connection::keep(Arc::downgrade(&shared)));
        Self {
            shared,
            databases: Mutex::default(),
            connection,
        }
    }

    /// The state of the bus.
    pub fn status(&self) -> BusStatus {
        let joined: Vec<_> = self
            .databases
            .lock()
            .values()
            .filter_map(Weak::upgrade)
            .collect();
        let role = |joined: &Arc<Joined>| DatabaseRole {
            database: joined.database.name.clone(),
            reads: joined.database.reads.load(Ordering::Relaxed),
        };
        let mut databases: Vec<_> = joined.iter().map(role).collect();
        databases.sort_by(|one, other| one.database.as_str().cmp(other.database.as_str()));
        let counters = &self.shared.counters;
        BusStatus {
            connected: self.shared.connected().is_some(),
            problem: self.shared.problem.lock().clone(),
            databases,
            sent: counters.sent.load(Ordering::Relaxed),
            unsent: counters.unsent.load(Ordering::Relaxed),
            received: counters.received.load(Ordering::Relaxed),
            refused: counters.refused.load(Ordering::Relaxed),
            from_store: counters.from_store.load(Ordering::Relaxed),
            from_slot: counters.from_slot.load(Ordering::Relaxed),
        }
    }

    fn join(&self, name: &DatabaseName) -> Arc<Joined> {
        let mut databases = self.databases.lock();
        databases.retain(|_, joined| joined.strong_count() > 0);
        if let Some(joined) = databases.get(name).and_then(Weak::upgrade) {
            return joined;
        }
        let joined = Arc::new(Joined::new(name.clone(), self.shared.clone()));
        databases.insert(name.clone(), Arc::downgrade(&joined));
        joined
    }

    fn joined(&self, name: &DatabaseName) -> Option<Arc<Joined>> {
        self.databases.lock().get(name).and_then(Weak::upgrade)
    }

    async fn open_stream(&self, name: &DatabaseName, start: LogStart) -> LogResult<BusStream> {
        let joined = self.join(name);
        // Subscribe before reading the reader's position, so that no message after that position is
        // missed.
        let live = joined.database.live.subscribe();
        let mut attempts = ATTEMPTS;
        // A new reader begins at the start of the retention window, so its position is not the end
        // of the log. The stream therefore waits until the reader has reached the current end.
        // Advancing the slot to the end instead may take minutes, and no node could become the
        // reader in that time.
        let least = match start {
            LogStart::Now => self.shared.log.end(name).await?,
            LogStart::At { .. } | LogStart::Earliest => LogPosition(0),
        };
        loop {
            let head = match start {
                LogStart::Earliest => None,
                LogStart::Now | LogStart::At { .. } => joined.database.head(least).await,
            };
            if let Some(begin) = head.and_then(|head| begin(head, start)) {
                return Ok(BusStream::new(joined, begin, live, None));
            }
            match self.shared.log.open(name, start).await {
                Ok(local) => {
                    let begin = (local.lineage().clone(), local.start());
                    return Ok(BusStream::new(joined, begin, live, Some(local)));
                }
                // JetStream may have the changes that PostgreSQL no longer has. The stream can read
                // them once there is a reader.
                Err(LogError::Gone) if attempts > 0 && self.shared.connected().is_some() => {
                    attempts -= 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether another node needs the captures and the slot of a database.
    fn is_shared(&self, name: &DatabaseName) -> bool {
        self.shared.has_others(name)
    }
}

/// The log and the position at which a stream over the bus begins. `None` if the reader has not
/// reached `start`, or if its log does not continue the log of `start`. Also `None` for `Earliest`,
/// because the bus does not know the start of the retention window.
fn begin(head: Head, start: LogStart) -> Option<(Lineage, LogPosition)> {
    match start {
        LogStart::Earliest => None,
        LogStart::Now => Some((head.lineage, head.complete)),
        LogStart::At { log, position } => {
            let is_reached = position <= head.complete && head.lineage.contains(log, position);
            is_reached.then_some((head.lineage, position))
        }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus")
            .field("settings", &self.shared.settings)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl ChangeLog for Bus {
    async fn open(
        &self,
        database: &DatabaseName,
        start: LogStart,
    ) -> LogResult<Box<dyn LogStream>> {
        let stream = self.open_stream(database, start).await?;
        Ok(Box::new(stream))
    }

    async fn capture(&self, database: &DatabaseName, demand: &Demand) -> LogResult<Captured> {
        self.shared.log.capture(database, demand).await
    }

    async fn partitions(
        &self,
        database: &DatabaseName,
        relation: u32,
        truncations: &[u32],
    ) -> LogResult<Option<LogPosition>> {
        self.shared
            .log
            .partitions(database, relation, truncations)
            .await
    }

    fn health_query(&self) -> &'static str {
        self.shared.log.health_query()
    }

    /// Does nothing while another node uses the database, because the last node releases the
    /// captures.
    async fn release(&self, database: &DatabaseName, kept: &[u32]) -> LogResult<()> {
        if self.is_shared(database) {
            return Ok(());
        }
        self.shared.log.release(database, kept).await
    }

    async fn retain(&self, database: &DatabaseName, keep: LogPosition) -> LogResult<LogPosition> {
        let end = self.shared.log.retain(database, keep).await?;
        if let Some(joined) = self.joined(database)
            && let Some(head) = joined.database.last_head()
        {
            let least = end.0.saturating_sub(self.shared.settings.retention);
            let keep = keep.0.max(least).min(head.complete.0);
            joined.database.keep.fetch_max(keep, Ordering::Relaxed);
        }
        Ok(end)
    }

    /// Drops the retention window only if no other node uses the database, because all nodes share
    /// the slot. If another node has reported its use recently, waits for `PRESENCE_TIMEOUT` first,
    /// because that node may have stopped using the database. That node then counts only if it
    /// reports its use again during the wait. The change log does not drop a slot that is being
    /// read.
    async fn abandon(&self, database: &DatabaseName) -> LogResult<()> {
        if self.is_shared(database) {
            tokio::time::sleep(PRESENCE_TIMEOUT).await;
        }
        if self.is_shared(database) {
            return Ok(());
        }
        self.shared.log.abandon(database).await
    }
}
