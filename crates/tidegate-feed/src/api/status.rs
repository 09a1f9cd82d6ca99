//! The status of a database's feed, for operators.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidegate_changelog::LogPosition;
use tidegate_sql::DatabaseName;

use crate::database::database_feed::DatabaseFeed;
use crate::dispatch::queue::QueueDepth;
use crate::metrics::StreamLag;

/// The status of a database's feed. Counters begin with its first subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseStatus {
    /// The database.
    pub database: DatabaseName,
    /// Whether its stream is open.
    pub live: bool,
    /// Everything that committed before this was dispatched.
    pub reached: LogPosition,
    /// How many bytes of log came after that when the end of the log was last read, which is every
    /// [`crate::FeedSettings::retention_interval`] while the stream is open.
    pub lag_bytes: u64,
    /// For how long there has been log after it.
    pub lag: Duration,
    /// How many subscriptions there are.
    pub subscriptions: usize,
    /// How many events wait in the queues of connections.
    pub queued_events: usize,
    /// How many bytes of events wait in the queues of connections.
    pub queued_bytes: usize,
    /// How many events were queued.
    pub events: u64,
    /// How many gaps were reported to subscriptions.
    pub resyncs: u64,
    /// How many connections were closed because they did not read.
    pub slow_consumers: u64,
}

impl DatabaseStatus {
    pub(crate) fn of(database: &DatabaseFeed) -> Self {
        let state = database.stream.state();
        let subscribers = database.hub.subscribers();
        // Subscriptions of one connection share its queue.
        let queues: HashMap<usize, QueueDepth> = subscribers
            .iter()
            .map(|one| (one.sender.connection_id(), one.sender.queue_depth()))
            .collect();
        let StreamLag { bytes, time } = database.metrics.lag(state.reached);
        let metrics = &database.metrics;
        Self {
            database: database.name.clone(),
            live: state.live,
            reached: state.reached,
            lag_bytes: bytes,
            lag: time,
            subscriptions: subscribers.len(),
            queued_events: queues.values().map(|queue| queue.events).sum(),
            queued_bytes: queues.values().map(|queue| queue.bytes).sum(),
            events: metrics.events.load(Relaxed),
            resyncs: metrics.resyncs.load(Relaxed),
            slow_consumers: metrics.slow_consumers.load(Relaxed),
        }
    }
}
