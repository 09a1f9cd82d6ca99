//! The bounded queue of events of one connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::event::cursor::Cursor;
use crate::event::item::{Delivery, Ended, Item};

/// The limits of a connection's queue.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// The maximum number of events and gaps in the queue.
    pub events: usize,
    /// The maximum bytes that the rows of all events in the queue may have together.
    pub bytes: usize,
    /// The time after which a full queue is closed if no item was taken out of it.
    pub stall_timeout: Duration,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            events: 1024,
            bytes: 4 << 20,
            stall_timeout: Duration::from_secs(5),
        }
    }
}

/// The sending side of a connection's queue.
#[derive(Clone, Debug)]
pub struct EventSender(Arc<Queue>);

/// The receiving side of a connection's queue.
#[derive(Debug)]
pub struct EventReceiver(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    state: Mutex<QueueState>,
    filled: Notify,
    drained: Notify,
    closed: AtomicBool,
    limits: QueueLimits,
}

#[derive(Debug)]
struct QueueState {
    items: VecDeque<Delivery>,
    events: usize,
    bytes: usize,
    /// The more recent of two times: when items were taken out of the queue, and when an event was
    /// pushed into the empty queue.
    last_activity: Instant,
    /// Everything up to this position was queued for all subscriptions that do not replay. `None`
    /// before the first event or gap.
    last: Option<Cursor>,
    /// The tags of the subscriptions that replay, each with the cursor that the replay has reached.
    replaying: Vec<(u64, Cursor)>,
}

impl QueueState {
    /// Records that everything up to a cursor was queued for a subscription.
    fn reach(&mut self, subscription: u64, cursor: Cursor) {
        let mut replaying = self.replaying.iter_mut();
        match replaying.find(|(replaying, _)| *replaying == subscription) {
            Some((_, position)) => *position = cursor,
            None => self.last = self.last.max(Some(cursor)),
        }
    }
}

/// Creates the queue of a connection, which all subscriptions of the connection share.
pub fn event_queue(limits: QueueLimits) -> (EventSender, EventReceiver) {
    let state = QueueState {
        items: VecDeque::new(),
        events: 0,
        bytes: 0,
        last_activity: Instant::now(),
        last: None,
        replaying: Vec::new(),
    };
    let queue = Arc::new(Queue {
        state: Mutex::new(state),
        filled: Notify::new(),
        drained: Notify::new(),
        closed: AtomicBool::new(false),
        limits,
    });
    (EventSender(queue.clone()), EventReceiver(queue))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PushError {
    Full,
    Closed,
}

impl EventSender {
    /// Pushes an item. Fails if the queue was closed, or if the item is an event or a gap and the
    /// queue has no room.
    pub(crate) fn push(&self, delivery: Delivery) -> Result<(), PushError> {
        if self.is_closed() {
            return Err(PushError::Closed);
        }
        let (cursor, size) = match &delivery.item {
            Item::Event { cursor, row, .. } => (*cursor, row.len()),
            Item::Resync { cursor, .. } => (*cursor, 0),
            Item::Acknowledged { .. } | Item::Ended(_) => {
                self.push_unbounded(delivery);
                return Ok(());
            }
        };
        let mut state = self.0.state.lock();
        // An empty queue accepts one event even if the event alone exceeds the limits.
        let is_full =
            state.events >= self.0.limits.events || state.bytes + size > self.0.limits.bytes;
        if is_full && state.events > 0 {
            return Err(PushError::Full);
        }
        if state.items.is_empty() {
            state.last_activity = Instant::now();
        }
        state.events += 1;
        state.bytes += size;
        state.reach(delivery.subscription, cursor);
        state.items.push_back(delivery);
        drop(state);
        self.0.filled.notify_one();
        Ok(())
    }

    /// Pushes an item even if the queue is full. Use it only for items that are rare, because
    /// nothing else bounds their number.
    pub(crate) fn push_unbounded(&self, delivery: Delivery) {
        self.0.state.lock().items.push_back(delivery);
        self.0.filled.notify_one();
    }

    /// Waits until the queue is at most half full.
    ///
    /// # Errors
    ///
    /// [`PushError::Full`] if no item was taken out for [`QueueLimits::stall_timeout`];
    /// [`PushError::Closed`] if the queue was closed.
    pub(crate) async fn wait_for_room(&self) -> Result<(), PushError> {
        loop {
            // The future is created before the queue is checked, so that no notification in between
            // is missed.
            let drained = self.0.drained.notified();
            if self.is_closed() {
                return Err(PushError::Closed);
            }
            let deadline = {
                let state = self.0.state.lock();
                let LowWater { events, bytes } = self.low_water();
                if state.events <= events && state.bytes <= bytes {
                    return Ok(());
                }
                state.last_activity + self.0.limits.stall_timeout
            };
            if tokio::time::timeout_at(deadline, drained).await.is_err()
                && self.0.state.lock().last_activity + self.0.limits.stall_timeout <= Instant::now()
            {
                return Err(PushError::Full);
            }
        }
    }

    /// The depth at which a full queue has room again. It is half of the limits, so that a task
    /// that waited for room can then push many events.
    fn low_water(&self) -> LowWater {
        LowWater {
            events: self.0.limits.events / 2,
            bytes: self.0.limits.bytes / 2,
        }
    }

    /// Closes the queue of a connection whose client does not read, and pushes
    /// [`Ended::SlowConsumer`]. Returns whether the queue was open.
    pub(crate) fn close_slow(&self, subscription: u64) -> bool {
        if self.0.closed.swap(true, Ordering::AcqRel) {
            return false;
        }
        let cursor = self.complete_up_to();
        let item = Item::Ended(Ended::SlowConsumer { cursor });
        self.push_unbounded(Delivery { subscription, item });
        self.0.drained.notify_waiters();
        true
    }

    /// The cursor up to which everything was queued for every subscription, so that each can resume
    /// after it without a gap. `None` if no event or gap was queued and no subscription replays.
    fn complete_up_to(&self) -> Option<Cursor> {
        let state = self.0.state.lock();
        let replaying = state.replaying.iter().map(|(_, cursor)| *cursor);
        replaying.chain(state.last).min()
    }

    /// Records that a subscription starts to replay from a position.
    pub(crate) fn start_replay(&self, subscription: u64, cursor: Cursor) {
        self.0.state.lock().replaying.push((subscription, cursor));
    }

    /// Records that a subscription has caught up with the other subscriptions of the connection.
    pub(crate) fn finish_replay(&self, subscription: u64) {
        let mut state = self.0.state.lock();
        let mut replaying = state.replaying.iter();
        if let Some(at) = replaying.position(|(replaying, _)| *replaying == subscription) {
            let (_, cursor) = state.replaying.swap_remove(at);
            state.last = state.last.max(Some(cursor));
        }
    }

    /// Removes the replay position of a subscription that has ended. Items that were queued for the
    /// subscription stay in the queue.
    pub(crate) fn forget(&self, subscription: u64) {
        let mut state = self.0.state.lock();
        state
            .replaying
            .retain(|(replaying, _)| *replaying != subscription);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    /// Whether items were taken out, or an event was pushed into the empty queue, within the last
    /// 100 ms.
    pub(crate) fn is_being_read(&self) -> bool {
        self.0.state.lock().last_activity.elapsed() < Duration::from_millis(100)
    }

    /// The number of events in the queue.
    pub fn depth(&self) -> usize {
        self.queue_depth().events
    }

    pub(crate) fn queue_depth(&self) -> QueueDepth {
        let state = self.0.state.lock();
        QueueDepth {
            events: state.events,
            bytes: state.bytes,
        }
    }

    /// A number that identifies the connection among all connections whose queues still exist.
    pub(crate) fn connection_id(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// How many events a queue contains, and how many bytes their rows have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueDepth {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

/// The depth at which a queue has room again.
struct LowWater {
    events: usize,
    bytes: usize,
}

impl EventReceiver {
    /// Waits until the queue has items, and takes all of them, so that they can be written
    /// together. Returns `None` if the queue was closed and is empty.
    pub async fn next(&mut self) -> Option<Vec<Delivery>> {
        loop {
            let queue = self.0.clone();
            // The future is created before the queue is read, so that an item that is pushed in
            // between is noticed.
            let filled = queue.filled.notified();
            let taken = self.take();
            if !taken.is_empty() {
                return Some(taken);
            }
            if self.0.closed.load(Ordering::Acquire) {
                return None;
            }
            filled.await;
        }
    }

    fn take(&mut self) -> Vec<Delivery> {
        let mut state = self.0.state.lock();
        state.events = 0;
        state.bytes = 0;
        state.last_activity = Instant::now();
        let taken = state.items.drain(..).collect();
        if state.items.capacity() > 64 {
            state.items.shrink_to(16);
        }
        drop(state);
        self.0.drained.notify_waiters();
        taken
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.drained.notify_waiters();
    }
}
