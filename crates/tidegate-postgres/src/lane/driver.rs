//! The task that moves a lane's bytes.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval};

use super::crowd::Lane;
use super::open::Due;

/// How often a lane is looked after.
const TICK: Duration = Duration::from_millis(10);
/// A lane that had nothing to do for so many ticks gives its connection back.
const IDLE: u32 = 3;
/// A lane gives its connection back after this time, so that it can be reset and replaced.
const LIFE: Duration = Duration::from_secs(10);

/// Drives a lane until it ends.
pub(super) async fn drive(lane: Arc<Lane>) {
    let mut watch = Watch {
        began: Instant::now(),
        idle: 0,
    };
    let mut tick = interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut send = false;
    loop {
        let due = {
            let mut now = std::mem::take(&mut send);
            let due = poll_fn(|cx| match &mut lane.state.lock().open {
                Some(open) => open.poll(std::mem::take(&mut now), cx),
                None => Poll::Ready(Due::End),
            });
            tokio::select! {
                biased;
                due = due => Some(due),
                _ = tick.tick() => None,
            }
        };
        match due {
            // Every task that is ready runs first, so that what it asks goes along.
            Some(Due::Gather) => {
                tokio::task::yield_now().await;
                send = true;
            }
            Some(Due::End) => break,
            None if watch.is_over(&lane) => break,
            None => {}
        }
    }
    lane.close();
}

/// When a lane has to end.
struct Watch {
    began: Instant,
    /// For how many ticks it has had nothing to do.
    idle: u32,
}

impl Watch {
    fn is_over(&mut self, lane: &Lane) -> bool {
        let mut state = lane.state.lock();
        let now = Instant::now();
        let old = now - self.began > LIFE;
        let Some(open) = &state.open else {
            return true;
        };
        if open.is_stuck(now) {
            return true;
        }
        let (idle, missed) = (open.is_idle(), open.is_missed());
        self.idle = if idle { self.idle + 1 } else { 0 };
        state.closing |= old || missed;
        idle && (state.closing || self.idle >= IDLE)
    }
}
