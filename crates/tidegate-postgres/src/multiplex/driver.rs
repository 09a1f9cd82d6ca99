//! The task that does the I/O of a multiplexed connection.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::debug;

use super::connection::Multiplexed;
use super::send_queue::SendQueue;
use super::slot::SlotClaim;

/// The interval of the checks of a connection.
const TICK: Duration = Duration::from_millis(10);
/// A connection that is idle at this many checks in a row is returned to the pool.
const IDLE: u32 = 10;

/// Why the driver woke up.
enum WakeUp {
    /// Pipelines were queued. Before the driver sends them, it lets other tasks run, so that they
    /// can queue theirs.
    Gather,
    /// The connection is due for a check.
    Check,
    Failed,
}

/// Why a connection stops being multiplexed.
#[derive(Debug, PartialEq, Eq)]
enum CloseReason {
    /// The connection had no pipeline at the last [`IDLE`] checks.
    Idle,
    /// The pool needs the connection for another request or wants to close it, or a reset is due.
    Wanted,
    /// The first pipeline runs or waits for too long; see [`Multiplexed::is_stuck`].
    Stuck,
    Failed,
}

/// Drives a connection until it stops being multiplexed.
pub(super) async fn drive(mut claim: SlotClaim, mut connection: Multiplexed) {
    let mut idle = 0;
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = loop {
        let activity = poll_fn(|cx| {
            if connection.poll(&claim.slot().state, cx).is_ready() {
                return Poll::Ready(WakeUp::Failed);
            }
            let mut state = claim.slot().state.lock();
            match state.queue.as_mut().map(|queue| queue.watch(cx.waker())) {
                Some(true) => Poll::Ready(WakeUp::Gather),
                Some(false) => Poll::Pending,
                None => Poll::Ready(WakeUp::Failed),
            }
        });
        let wake_up = tokio::select! {
            // I/O comes before the timer. Otherwise the connection could look stuck although a
            // response has arrived.
            biased;
            wake_up = activity => wake_up,
            _ = tick.tick() => WakeUp::Check,
        };
        match wake_up {
            WakeUp::Gather => {
                // Other tasks are often about to queue pipelines. All of them are then sent in one
                // write.
                let_others_run().await;
                if let Some(queue) = &mut claim.slot().state.lock().queue {
                    connection.load(queue);
                }
            }
            WakeUp::Check => {
                if let Some(end) = check(&claim, &connection, &mut idle) {
                    break end;
                }
            }
            WakeUp::Failed => break CloseReason::Failed,
        }
    };
    debug!(?end, "multiplexed connection closed");
    let failed = matches!(end, CloseReason::Stuck | CloseReason::Failed);
    connection.end(claim.close(failed));
}

/// Lets all ready tasks run, so that their pipelines are sent in the same write. `yield_now` lets
/// the tasks run that are ready now. In the meantime, sockets may make more tasks ready. Therefore
/// this task then wakes itself once more, and runs after those tasks too.
async fn let_others_run() {
    tokio::task::yield_now().await;
    let mut woken = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut woken, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Returns the reason why the connection has to stop being multiplexed; `None` if it may continue.
/// `idle` counts how many checks in a row have found no pipeline. Stops accepting pipelines if the
/// pool wants the connection or a reset is due.
fn check(claim: &SlotClaim, connection: &Multiplexed, idle: &mut u32) -> Option<CloseReason> {
    if connection.is_stuck(Instant::now()) {
        return Some(CloseReason::Stuck);
    }
    let wanted = connection.is_wanted() || connection.is_periodic_reset_due();
    let mut state = claim.slot().state.lock();
    let is_idle = connection.is_idle() && state.queue.as_ref().is_none_or(SendQueue::is_empty);
    *idle = if is_idle { *idle + 1 } else { 0 };
    state.closing |= wanted;
    match (is_idle, state.closing) {
        (true, true) => Some(CloseReason::Wanted),
        (true, false) if *idle >= IDLE => Some(CloseReason::Idle),
        _ => None,
    }
}
