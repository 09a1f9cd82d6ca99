//! The place of a multiplexed connection.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_pool::Key;
use tokio::time::Instant;

use super::group::Counts;
use super::queue::{Asked, Queue};
use crate::session::task::Task;

/// How long a slot whose connection failed stays empty.
const REST: Duration = Duration::from_millis(100);

/// A place for a multiplexed connection.
#[derive(Default)]
pub(super) struct Slot {
    pub(super) state: Mutex<State>,
}

/// The state of a slot.
#[derive(Default)]
pub(super) struct State {
    /// There while the connection is open.
    pub(super) queue: Option<Queue>,
    /// Takes no more pipelines.
    pub(super) closing: bool,
    /// Its connection is being opened, or driven.
    claimed: bool,
    /// Stays empty until then.
    rests_until: Option<Instant>,
}

impl Slot {
    /// Queues a pipeline on the connection, if there is one.
    pub(super) fn take(&self, tasks: &[Task<'_>]) -> Asked {
        let mut state = self.state.lock();
        let closing = state.closing;
        match &mut state.queue {
            Some(queue) if !closing => queue.take(tasks),
            _ => Asked::Full,
        }
    }

    /// Whether a connection may be opened for it.
    pub(super) fn is_empty(&self, now: Instant) -> bool {
        let state = self.state.lock();
        !state.claimed && state.rests_until.is_none_or(|until| until <= now)
    }
}

/// The right to drive the connection of a slot. Dropping it empties the slot; requests that still
/// wait get no answer.
pub(super) struct Claim {
    slot: Arc<Slot>,
    counts: Arc<Counts>,
    key: Key,
    failed: bool,
}

impl Claim {
    /// Claims a slot, unless it is taken or the role has as many connections as it may.
    pub(super) fn new(slot: &Arc<Slot>, counts: &Arc<Counts>, key: Key) -> Option<Self> {
        let mut state = slot.state.lock();
        if state.claimed || !counts.open_one(&key) {
            return None;
        }
        state.claimed = true;
        Some(Self {
            slot: slot.clone(),
            counts: counts.clone(),
            key,
            failed: true,
        })
    }

    pub(super) fn slot(&self) -> &Slot {
        &self.slot
    }

    /// Closes the queue, and returns it. After a failure the slot stays empty for a while.
    pub(super) fn close(&mut self, failed: bool) -> Option<Queue> {
        self.failed = failed;
        self.slot.state.lock().queue.take()
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let empty = State {
            rests_until: self.failed.then(|| Instant::now() + REST),
            ..State::default()
        };
        let state = std::mem::replace(&mut *self.slot.state.lock(), empty);
        // Requests that still wait are woken, which must not happen under the lock.
        drop(state);
        self.counts.close_one(&self.key);
    }
}
