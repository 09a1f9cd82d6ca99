//! The status of a database's feed, for operators.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidegate_changelog::LogPosition;
use tidegate_sql::DatabaseName;

use crate::database::database_feed::DatabaseFeed;
use crate::dispatch::queue::QueueDepth;
use crate::metrics::StreamLag;

/// The status of a database's feed. The counters start at zero with the first subscription to the
/// database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseStatus {
    /// The database.
    pub database: DatabaseName,
    /// Whether the feed's stream is open.
    pub live: bool,
    /// The position up to which the changes of all committed transactions have been dispatched.
    pub reached: LogPosition,
    /// How many bytes the change log contained after `reached` when the end of the log was most
    /// recently read. While the stream is open, the end is read every
    /// [`crate::FeedSettings::retention_interval`].
    pub lag_bytes: u64,
    /// The time since the end of the log was first found to be beyond `reached`; zero if the stream
    /// has reached the most recently read end of the log.
    pub lag: Duration,
    /// The number of subscriptions.
    pub subscriptions: usize,
    /// How many events are in the queues of connections.
    pub queued_events: usize,
    /// How many bytes of events are in the queues of connections.
    pub queued_bytes: usize,
    /// How many events were queued.
    pub events: u64,
    /// How many gaps were reported to subscriptions.
    pub resyncs: u64,
    /// How many connections were closed because their clients did not read.
    pub slow_consumers: u64,
}

impl DatabaseStatus {
    pub(crate) fn of(database: &DatabaseFeed) -> Self {
        let state = database.stream.state();
        let subscribers = database.hub.subscribers();
        // All subscriptions of a connection share one queue, so it is counted only once.
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
