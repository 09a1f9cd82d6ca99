//! The task that moves the bytes of a multiplexed connection.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::debug;

use super::connection::Multiplexed;
use super::queue::Queue;
use super::slot::Claim;

/// How often a connection is checked.
const TICK: Duration = Duration::from_millis(10);
/// A connection that had nothing to do for so many ticks is given back.
const IDLE: u32 = 10;

/// What the driver has to do.
enum Due {
    /// Pipelines have come: once those of other tasks have come too, they are sent.
    Gather,
    /// Checking the connection.
    Check,
    /// The connection failed.
    End,
}

/// Why a connection is not multiplexed any more.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Idle,
    Wanted,
    Stuck,
    Failed,
}

/// Drives a connection until it ends.
pub(super) async fn drive(mut claim: Claim, mut wire: Multiplexed) {
    let mut idle = 0;
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = loop {
        let moved = poll_fn(|cx| {
            if wire.poll(&claim.slot().state, cx).is_ready() {
                return Poll::Ready(Due::End);
            }
            let mut state = claim.slot().state.lock();
            match state.queue.as_mut().map(|queue| queue.watch(cx.waker())) {
                Some(true) => Poll::Ready(Due::Gather),
                Some(false) => Poll::Pending,
                None => Poll::Ready(Due::End),
            }
        });
        let due = tokio::select! {
            biased;
            due = moved => due,
            _ = tick.tick() => Due::Check,
        };
        match due {
            Due::Gather => {
                let_others_run().await;
                if let Some(queue) = &mut claim.slot().state.lock().queue {
                    wire.load(queue);
                }
            }
            Due::Check => {
                if let Some(end) = check(&claim, &wire, &mut idle) {
                    break end;
                }
            }
            Due::End => break End::Failed,
        }
    };
    debug!(?end, "multiplexed connection closed");
    let failed = matches!(end, End::Stuck | End::Failed);
    wire.end(claim.close(failed));
}

/// Lets every task run that is ready, so that the pipelines of those travel too. A task that yields
/// is queued behind those that are ready, and ahead of those that sockets make ready next; one that
/// wakes itself is queued behind these too.
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

/// Whether the connection has to end. `idle` counts the ticks without anything to do.
fn check(claim: &Claim, wire: &Multiplexed, idle: &mut u32) -> Option<End> {
    if wire.is_stuck(Instant::now()) {
        return Some(End::Stuck);
    }
    let wanted = wire.is_wanted();
    let mut state = claim.slot().state.lock();
    let is_idle = wire.is_idle() && state.queue.as_ref().is_none_or(Queue::is_empty);
    *idle = if is_idle { *idle + 1 } else { 0 };
    state.closing |= wanted;
    match (is_idle, state.closing) {
        (true, true) => Some(End::Wanted),
        (true, false) if *idle >= IDLE => Some(End::Idle),
        _ => None,
    }
}
