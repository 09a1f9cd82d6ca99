//! The bounded queue of one connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::change::Operation;
use crate::cursor::Cursor;
use crate::selection::Flaw;

/// How much a connection may leave unread.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Events.
    pub events: usize,
    /// Bytes of events.
    pub bytes: usize,
    /// How long a full queue may stay untouched until the connection is cut.
    pub patience: Duration,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self {
            events: 1024,
            bytes: 4 << 20,
            patience: Duration::from_secs(5),
        }
    }
}

/// What a subscription is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The subscription, as its connection calls it.
    pub subscription: u64,
    /// What.
    pub item: Item,
}

/// Something that a subscription is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// From here on every commit is delivered. Comes once, before anything else.
    Acknowledged {
        /// The place behind which events come.
        cursor: Cursor,
    },
    /// A change.
    Event {
        /// Its place.
        cursor: Cursor,
        /// What happened.
        operation: Operation,
        /// The selected columns as a JSON object, shared with everybody who selects the same; null
        /// where one that must not be null cannot be shown.
        row: Bytes,
        /// What its forms could not show.
        flaws: Option<Arc<[Flaw]>>,
        /// The columns of the table's primary key, where the selection asks for them; nothing as
        /// long as they are what they were at the beginning.
        key: Option<Arc<[Box<str>]>>,
    },
    /// There is a gap: what is known of the table must be read again. Events go on behind it.
    Resync {
        /// Where they go on.
        cursor: Cursor,
        /// Why.
        reason: Resync,
    },
    /// Nothing comes any more.
    Ended(Ended),
}

/// Why there is a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resync {
    /// The cursor is older than what is kept, or the table was not captured then.
    Expired,
    /// The cursor is of another log: the database was restored or failed over.
    OtherLog,
    /// The connection to the log broke, and what happened meanwhile is not kept.
    Interrupted,
    /// The table was emptied by TRUNCATE.
    Truncated,
    /// Rows came or went with partitions of the table.
    Partitions,
    /// The log did not hold a value that the event has to show.
    Incomplete,
}

/// Why a subscription ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The role may not read the columns any more.
    NotAllowed,
    /// The table is gone.
    NoTable,
    /// The table was changed so that the subscription makes no sense any more.
    Changed {
        /// What changed, in words.
        problem: String,
    },
    /// The connection reads too slowly. It is the last thing that the connection is told.
    SlowConsumer {
        /// The place up to which every subscription of the connection has got everything.
        cursor: Option<Cursor>,
    },
    /// The node stops.
    Stopped,
}

/// Where events of a connection go in.
#[derive(Clone, Debug)]
pub struct Outbox(Arc<Queue>);

/// Where a connection takes its events out.
#[derive(Debug)]
pub struct Inbox(Arc<Queue>);

#[derive(Debug)]
struct Queue {
    state: Mutex<State>,
    filled: Notify,
    drained: Notify,
    closed: AtomicBool,
    limits: QueueLimits,
}

#[derive(Debug)]
struct State {
    items: VecDeque<Delivery>,
    events: usize,
    bytes: usize,
    /// When something was taken out, or went into an empty queue.
    touched: Instant,
    /// Everything up to here was queued, for all subscriptions but those that resume.
    last: Option<Cursor>,
    /// How far those are that resume.
    resuming: Vec<(u64, Cursor)>,
}

impl State {
    /// A subscription has got everything up to a place.
    fn reach(&mut self, subscription: u64, cursor: Cursor) {
        let mut resuming = self.resuming.iter_mut();
        match resuming.find(|(resuming, _)| *resuming == subscription) {
            Some((_, place)) => *place = cursor,
            None => self.last = self.last.max(Some(cursor)),
        }
    }
}

/// The queue of one connection.
pub fn queue(limits: QueueLimits) -> (Outbox, Inbox) {
    let state = State {
        items: VecDeque::new(),
        events: 0,
        bytes: 0,
        touched: Instant::now(),
        last: None,
        resuming: Vec::new(),
    };
    let queue = Arc::new(Queue {
        state: Mutex::new(state),
        filled: Notify::new(),
        drained: Notify::new(),
        closed: AtomicBool::new(false),
        limits,
    });
    (Outbox(queue.clone()), Inbox(queue))
}

/// The queue takes nothing now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is full.
    Full,
    /// Nobody reads it any more.
    Closed,
}

impl Outbox {
    /// Adds an event, if there is room.
    pub(crate) fn push(&self, delivery: Delivery) -> Result<(), Refused> {
        if self.is_closed() {
            return Err(Refused::Closed);
        }
        let (cursor, size) = match &delivery.item {
            Item::Event { cursor, row, .. } => (*cursor, row.len()),
            Item::Resync { cursor, .. } => (*cursor, 0),
            Item::Acknowledged { .. } | Item::Ended(_) => {
                self.tell(delivery);
                return Ok(());
            }
        };
        let mut state = self.0.state.lock();
        // One event that is larger than everything allowed must get through too.
        let full = state.events >= self.0.limits.events || state.bytes + size > self.0.limits.bytes;
        if full && state.events > 0 {
            return Err(Refused::Full);
        }
        if state.items.is_empty() {
            state.touched = Instant::now();
        }
        state.events += 1;
        state.bytes += size;
        state.reach(delivery.subscription, cursor);
        state.items.push_back(delivery);
        drop(state);
        self.0.filled.notify_one();
        Ok(())
    }

    /// Adds what must be told; there are only a few such things for each subscription.
    pub(crate) fn tell(&self, delivery: Delivery) {
        self.0.state.lock().items.push_back(delivery);
        self.0.filled.notify_one();
    }

    /// Waits until there may be room.
    ///
    /// # Errors
    /// [`Refused::Full`] when the connection has not taken anything for too long; then it is cut.
    pub(crate) async fn room(&self) -> Result<(), Refused> {
        loop {
            let drained = self.0.drained.notified();
            if self.is_closed() {
                return Err(Refused::Closed);
            }
            let deadline = {
                let state = self.0.state.lock();
                let Limits { events, bytes } = self.low_water();
                if state.events <= events && state.bytes <= bytes {
                    return Ok(());
                }
                state.touched + self.0.limits.patience
            };
            if tokio::time::timeout_at(deadline, drained).await.is_err()
                && self.0.state.lock().touched + self.0.limits.patience <= Instant::now()
            {
                return Err(Refused::Full);
            }
        }
    }

    /// Below this a queue counts as having room again.
    fn low_water(&self) -> Limits {
        Limits {
            events: self.0.limits.events / 2,
            bytes: self.0.limits.bytes / 2,
        }
    }

    /// Cuts a connection that does not read; says whether it was open.
    pub(crate) fn cut(&self, subscription: u64) -> bool {
        if self.0.closed.swap(true, Ordering::AcqRel) {
            return false;
        }
        let cursor = self.reached();
        let item = Item::Ended(Ended::SlowConsumer { cursor });
        self.tell(Delivery { subscription, item });
        self.0.drained.notify_waiters();
        true
    }

    /// The place up to which every subscription has got everything: whoever goes on behind it
    /// misses nothing, whichever subscription it is.
    fn reached(&self) -> Option<Cursor> {
        let state = self.0.state.lock();
        let resuming = state.resuming.iter().map(|(_, cursor)| *cursor);
        resuming.chain(state.last).min()
    }

    /// A subscription begins to catch up from a place.
    pub(crate) fn resume(&self, subscription: u64, cursor: Cursor) {
        self.0.state.lock().resuming.push((subscription, cursor));
    }

    /// A subscription has caught up with the others.
    pub(crate) fn resumed(&self, subscription: u64) {
        let mut state = self.0.state.lock();
        let mut resuming = state.resuming.iter();
        if let Some(at) = resuming.position(|(resuming, _)| *resuming == subscription) {
            let (_, cursor) = state.resuming.swap_remove(at);
            state.last = state.last.max(Some(cursor));
        }
    }

    /// A subscription is not there any more.
    pub(crate) fn forget(&self, subscription: u64) {
        let mut state = self.0.state.lock();
        state
            .resuming
            .retain(|(resuming, _)| *resuming != subscription);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Acquire)
    }

    /// Whether the connection has taken something lately.
    pub(crate) fn is_moving(&self) -> bool {
        self.0.state.lock().touched.elapsed() < Duration::from_millis(100)
    }

    /// How many events wait.
    pub fn depth(&self) -> usize {
        self.backlog().events
    }

    /// How much waits.
    pub(crate) fn backlog(&self) -> Backlog {
        let state = self.0.state.lock();
        Backlog {
            events: state.events,
            bytes: state.bytes,
        }
    }

    /// What tells this connection from others.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }
}

/// What waits in queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Backlog {
    pub(crate) events: usize,
    pub(crate) bytes: usize,
}

struct Limits {
    events: usize,
    bytes: usize,
}

impl Inbox {
    /// Takes everything that waits, at least one delivery: what is due together can be written
    /// together. `None` when the connection was cut and everything has been taken.
    pub async fn next(&mut self) -> Option<Vec<Delivery>> {
        loop {
            let queue = self.0.clone();
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
        state.touched = Instant::now();
        let taken = state.items.drain(..).collect();
        if state.items.capacity() > 64 {
            state.items.shrink_to(16);
        }
        drop(state);
        self.0.drained.notify_waiters();
        taken
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.0.closed.store(true, Ordering::Release);
        self.0.drained.notify_waiters();
    }
}
