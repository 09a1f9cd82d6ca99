//! The slots of a group of requests. A slot holds at most one multiplexed connection.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_pool::PoolKey;
use tokio::time::Instant;

use super::counts::Counts;
use super::send_queue::{Enqueued, SendQueue};
use crate::statement::StatementTask;

/// How long a slot stays empty after its connection failed.
const FAILURE_DELAY: Duration = Duration::from_millis(100);

#[derive(Default)]
pub(super) struct ConnectionSlot {
    pub(super) state: Mutex<SlotState>,
}

#[derive(Default)]
pub(super) struct SlotState {
    /// The queue of the open connection; `None` while no connection is open.
    pub(super) queue: Option<SendQueue>,
    /// Whether the connection is about to stop being multiplexed and accepts no more pipelines.
    pub(super) closing: bool,
    /// Whether a task is opening or driving the slot's connection.
    claimed: bool,
    /// The time until which the slot stays empty because its previous connection failed; `None` if
    /// the previous connection did not fail, or if there was none.
    empty_until: Option<Instant>,
}

impl ConnectionSlot {
    /// Queues a pipeline on the connection of the slot. Returns [`Enqueued::Full`] if no connection
    /// is open, or if its backlog is not shorter than `limit`.
    pub(super) fn enqueue(&self, tasks: &[StatementTask<'_>], limit: Duration) -> Enqueued {
        let mut state = self.state.lock();
        let closing = state.closing;
        match &mut state.queue {
            Some(queue) if !closing => queue.enqueue(tasks, limit),
            _ => Enqueued::Full,
        }
    }

    /// The time that the pipelines on the connection are expected to take; `None` if no connection
    /// is open, or if it accepts no more pipelines now.
    pub(super) fn backlog(&self) -> Option<Duration> {
        let state = self.state.lock();
        let queue = state.queue.as_ref().filter(|_| !state.closing);
        queue.and_then(SendQueue::backlog)
    }

    pub(super) fn may_open(&self, now: Instant) -> bool {
        let state = self.state.lock();
        !state.claimed && state.empty_until.is_none_or(|until| until <= now)
    }
}

/// The right to open and drive the connection of a slot. Dropping the claim empties the slot, and
/// requests that still wait receive no rows.
pub(super) struct SlotClaim {
    slot: Arc<ConnectionSlot>,
    counts: Arc<Counts>,
    key: PoolKey,
    failed: bool,
}

impl SlotClaim {
    /// Claims a slot. Returns `None` if the slot is claimed already, or the role has reached its
    /// limit on multiplexed connections.
    pub(super) fn new(
        slot: &Arc<ConnectionSlot>,
        counts: &Arc<Counts>,
        key: PoolKey,
    ) -> Option<Self> {
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

    pub(super) fn slot(&self) -> &ConnectionSlot {
        &self.slot
    }

    /// Takes the queue out of the slot, which then accepts no more pipelines. `failed` says whether
    /// the connection failed. If it failed, the slot stays empty for [`FAILURE_DELAY`] after the
    /// claim is dropped.
    pub(super) fn close(&mut self, failed: bool) -> Option<SendQueue> {
        self.failed = failed;
        self.slot.state.lock().queue.take()
    }
}

impl Drop for SlotClaim {
    fn drop(&mut self) {
        let empty = SlotState {
            empty_until: self.failed.then(|| Instant::now() + FAILURE_DELAY),
            ..SlotState::default()
        };
        let state = std::mem::replace(&mut *self.slot.state.lock(), empty);
        // Dropping the queue wakes requests, which must not happen under the lock.
        drop(state);
        self.counts.close_one(&self.key);
    }
}
