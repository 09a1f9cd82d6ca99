//! The task that does the I/O of a multiplexed connection.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::debug;

use super::connection::Multiplexed;
use super::send_queue::SendQueue;
use super::slot::SlotClaim;

/// How often a connection is checked.
const TICK: Duration = Duration::from_millis(10);
/// After this many idle ticks the connection is returned to the pool.
const IDLE: u32 = 10;

/// Why the driver woke up.
enum WakeUp {
    /// Pipelines were queued. They are sent after other tasks have had a chance to queue theirs.
    Gather,
    /// The connection is due for a check.
    Check,
    /// The connection failed.
    Failed,
}

/// Why a connection stops being multiplexed.
#[derive(Debug, PartialEq, Eq)]
enum CloseReason {
    Idle,
    Wanted,
    Stuck,
    Failed,
}

/// Drives a connection until it stops being multiplexed.
pub(super) async fn drive(mut claim: SlotClaim, mut wire: Multiplexed) {
    let mut idle = 0;
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = loop {
        let moved = poll_fn(|cx| {
            if wire.poll(&claim.slot().state, cx).is_ready() {
                return Poll::Ready(WakeUp::Failed);
            }
            let mut state = claim.slot().state.lock();
            match state.queue.as_mut().map(|queue| queue.watch(cx.waker())) {
                Some(true) => Poll::Ready(WakeUp::Gather),
                Some(false) => Poll::Pending,
                None => Poll::Ready(WakeUp::Failed),
            }
        });
        let due = tokio::select! {
            biased;
            due = moved => due,
            _ = tick.tick() => WakeUp::Check,
        };
        match due {
            WakeUp::Gather => {
                let_others_run().await;
                if let Some(queue) = &mut claim.slot().state.lock().queue {
                    wire.load(queue);
                }
            }
            WakeUp::Check => {
                if let Some(end) = check(&claim, &wire, &mut idle) {
                    break end;
                }
            }
            WakeUp::Failed => break CloseReason::Failed,
        }
    };
    debug!(?end, "multiplexed connection closed");
    let failed = matches!(end, CloseReason::Stuck | CloseReason::Failed);
    wire.end(claim.close(failed));
}

/// Runs all tasks that are ready, so that their pipelines go out in the same write. A task that
/// yields is queued after those that are ready, but before those that sockets make ready next. A
/// task that wakes itself is queued after the latter too.
async fn let_others_run() {
    tokio::task::yield_now().await;
    let mut behind = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut behind, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Whether the connection has to stop, and why. `idle` counts idle ticks in a row.
fn check(claim: &SlotClaim, wire: &Multiplexed, idle: &mut u32) -> Option<CloseReason> {
    if wire.is_stuck(Instant::now()) {
        return Some(CloseReason::Stuck);
    }
    let wanted = wire.is_wanted();
    let mut state = claim.slot().state.lock();
    let is_idle = wire.is_idle() && state.queue.as_ref().is_none_or(SendQueue::is_empty);
    *idle = if is_idle { *idle + 1 } else { 0 };
    state.closing |= wanted;
    match (is_idle, state.closing) {
        (true, true) => Some(CloseReason::Wanted),
        (true, false) if *idle >= IDLE => Some(CloseReason::Idle),
        _ => None,
    }
}
