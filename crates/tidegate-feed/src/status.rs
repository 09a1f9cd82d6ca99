//! What an operator watches of a database's feed.

use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tidegate_sql::DatabaseName;
use tidegate_sql::log::LogPosition;

use crate::database::Database;
use crate::meter::Lag;
use crate::queue::Backlog;

/// How a database's feed is. Counters begin with the feed's first subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseStatus {
    /// The database.
    pub database: DatabaseName,
    /// Whether its stream is open.
    pub live: bool,
    /// Everything that committed before this has been handed out.
    pub reached: LogPosition,
    /// How many bytes of log were behind that when the log's end was last looked at, which is
    /// every [`crate::Settings::retain`] while the stream is open.
    pub lag_bytes: u64,
    /// For how long there has been something behind it that is not handed out.
    pub lag: Duration,
    /// How many subscriptions there are.
    pub subscriptions: usize,
    /// How many events wait in the queues of the subscriptions' connections.
    pub queued_events: usize,
    /// How many bytes these have.
    pub queued_bytes: usize,
    /// How many events were queued.
    pub events: u64,
    /// How many gaps subscriptions were told of.
    pub resyncs: u64,
    /// How many connections were cut because they did not read.
    pub slow_consumers: u64,
}

impl DatabaseStatus {
    pub(crate) fn of(database: &Database) -> Self {
        let state = database.stream.borrow().clone();
        let subscribers = database.subscribers();
        // Subscriptions of one connection share its queue.
        let queues: HashMap<usize, Backlog> = subscribers
            .iter()
            .map(|one| (one.outbox.address(), one.outbox.backlog()))
            .collect();
        let Lag { bytes, time } = database.meter.lag(state.reached);
        let meter = &database.meter;
        Self {
            database: database.name.clone(),
            live: state.live,
            reached: state.reached,
            lag_bytes: bytes,
            lag: time,
            subscriptions: subscribers.len(),
            queued_events: queues.values().map(|queue| queue.events).sum(),
            queued_bytes: queues.values().map(|queue| queue.bytes).sum(),
            events: meter.events.load(Relaxed),
            resyncs: meter.resyncs.load(Relaxed),
            slow_consumers: meter.cut.load(Relaxed),
        }
    }
}
