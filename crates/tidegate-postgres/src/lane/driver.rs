//! The task that moves a lane's bytes.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::debug;

use super::crowd::Claim;
use super::wire::Wire;

/// How often a lane is looked after.
const TICK: Duration = Duration::from_millis(10);
/// A lane that had nothing to do for so many ticks gives its connection back.
const IDLE: u32 = 3;
/// A lane gives its connection back after this time, so that it can be reset and replaced.
const LIFE: Duration = Duration::from_secs(10);

/// What the driver has to do.
enum Due {
    /// Reads have come: when those of others have come too, they are sent.
    Gather,
    /// Looking after the lane.
    Check,
    /// Nothing more can come of it.
    End,
}

/// Drives a lane until it ends.
pub(super) async fn drive(claim: Claim, mut wire: Wire) {
    let mut watch = Watch {
        began: Instant::now(),
        idle: 0,
    };
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let why = loop {
        let moved = poll_fn(|cx| {
            if wire.poll(&claim.lane().state, cx).is_ready() {
                return Poll::Ready(Due::End);
            }
            let mut state = claim.lane().state.lock();
            match state.intake.as_mut().map(|one| one.watch(cx.waker())) {
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
                if let Some(intake) = &mut claim.lane().state.lock().intake {
                    wire.load(intake);
                }
            }
            Due::Check => {
                if let Some(why) = watch.over(&claim, &wire) {
                    break why;
                }
            }
            Due::End => break "it broke",
        }
    };
    debug!(why, "a shared connection goes back");
    wire.end(claim.close());
}

/// Lets every task run that is ready, so that what it asks goes along. A task that yields comes
/// behind those that are ready, and before those that the sockets make ready then; one that wakes
/// itself comes behind these too.
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

/// When a lane has to end.
struct Watch {
    began: Instant,
    /// For how many ticks it has had nothing to do.
    idle: u32,
}

impl Watch {
    /// Why it has to, if it has.
    fn over(&mut self, claim: &Claim, wire: &Wire) -> Option<&'static str> {
        let now = Instant::now();
        if wire.is_stuck(now) {
            return Some("a read is stuck");
        }
        let (idle, missed) = (wire.is_idle(), wire.is_missed());
        let mut state = claim.lane().state.lock();
        self.idle = if idle { self.idle + 1 } else { 0 };
        state.closing |= missed || now - self.began > LIFE;
        match (idle, state.closing) {
            (true, true) => Some("it is old, or somebody waits"),
            (true, false) if self.idle >= IDLE => Some("nothing to do"),
            _ => None,
        }
    }
}
