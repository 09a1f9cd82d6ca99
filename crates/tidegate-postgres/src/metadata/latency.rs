//! An estimate of how long a statement takes.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// A statement is multiplexed only if it takes at most this time on a connection of its own.
const QUICK: Duration = Duration::from_millis(2);
/// How long the first suspension of a statement lasts. A suspended statement is not multiplexed.
/// Each further [`LatencyEstimate::suspend`] doubles the time. It is short at first, because a busy
/// machine may have caused the suspension.
const FIRST_SUSPENSION: Duration = Duration::from_secs(1);
/// How many times the time of a suspension can double.
const MAX_DOUBLINGS: u32 = 4;
/// The number that a slow response adds to [`LatencyEstimate::slowness`].
const SLOW_RESPONSE: u32 = 16;
/// The value of [`LatencyEstimate::slowness`] at which the statement is suspended.
const MAX_SLOWNESS: u32 = 64;
/// After this time without a suspension, the next suspension is as short as the first one.
const INCIDENT_MEMORY: Duration = Duration::from_mins(1);
/// The assumed time of a statement that was never multiplexed, in nanoseconds.
const ASSUMED: u32 = 50_000;
/// A measurement above the estimate raises the estimate by at most 1/128. The shortest of many
/// measurements shows how long a statement takes; longer measurements show how busy the machine is.
const GROWTH: u32 = 128;

/// The shortest observed times of a statement. Longer times depend more on the load of the machine
/// than on the statement.
#[derive(Debug)]
pub(crate) struct LatencyEstimate {
    /// The time on a connection that is not multiplexed, in nanoseconds; 0 if unknown.
    alone: AtomicU32,
    /// The time on a multiplexed connection since the end of the previous response, in nanoseconds.
    served: AtomicU32,
    /// The time until which the statement is not multiplexed, in milliseconds since `created`.
    suspended_until: AtomicU64,
    /// How many times in a row [`Self::suspend`] has suspended the statement. This number
    /// determines the length of the next suspension.
    incidents: AtomicU32,
    /// Rises by [`SLOW_RESPONSE`] with each slow response, and falls by 1 with every other one.
    slowness: AtomicU32,
    created: Instant,
}

impl Default for LatencyEstimate {
    fn default() -> Self {
        Self {
            alone: AtomicU32::new(0),
            served: AtomicU32::new(ASSUMED),
            suspended_until: AtomicU64::new(0),
            incidents: AtomicU32::new(0),
            slowness: AtomicU32::new(0),
            created: Instant::now(),
        }
    }
}

impl LatencyEstimate {
    /// Records the time of a run on a connection of its own.
    pub(crate) fn record_direct(&self, time: Duration) {
        record(&self.alone, time);
    }

    /// Records the time of a run on a multiplexed connection.
    pub(crate) fn record_multiplexed(&self, time: Duration) {
        let slowness = self.slowness.load(Ordering::Relaxed);
        self.slowness
            .store(slowness.saturating_sub(1), Ordering::Relaxed);
        record(&self.served, time);
    }

    /// Records a run on a multiplexed connection that was too slow. Only frequent slow runs suspend
    /// the statement, because rare slow runs are caused by the load of the machine.
    pub(crate) fn record_slow(&self, now: Instant) {
        let slowness = self.slowness.load(Ordering::Relaxed) + SLOW_RESPONSE;
        self.slowness
            .store(slowness % MAX_SLOWNESS, Ordering::Relaxed);
        if slowness >= MAX_SLOWNESS {
            tracing::debug!("statement is often slow on multiplexed connections");
            self.suspend_until(now + FIRST_SUSPENSION);
        }
    }

    fn suspend_until(&self, until: Instant) {
        let until = u64::try_from((until - self.created).as_millis()).unwrap_or(u64::MAX);
        self.suspended_until.fetch_max(until, Ordering::Relaxed);
    }

    /// Stops multiplexing the statement for a time (see [`FIRST_SUSPENSION`]), because it delayed
    /// others, tried to write, or returned too many rows.
    pub(crate) fn suspend(&self, now: Instant) {
        let since_suspension = (now - self.created).checked_sub(self.suspended_until());
        if since_suspension.is_none() {
            return;
        }
        if since_suspension > Some(INCIDENT_MEMORY) {
            self.incidents.store(0, Ordering::Relaxed);
        }
        let incidents = self.incidents.fetch_add(1, Ordering::Relaxed);
        self.suspend_until(now + FIRST_SUSPENSION * (1 << incidents.min(MAX_DOUBLINGS)));
    }

    /// Whether the statement may be multiplexed: it was measured on a connection of its own, is
    /// quick, and is not suspended.
    pub(crate) fn is_quick(&self, now: Instant) -> bool {
        let alone = self.alone.load(Ordering::Relaxed);
        alone > 0
            && Duration::from_nanos(alone.into()) <= QUICK
            && now - self.created >= self.suspended_until()
    }

    fn suspended_until(&self) -> Duration {
        Duration::from_millis(self.suspended_until.load(Ordering::Relaxed))
    }

    /// The expected time on a multiplexed connection.
    pub(crate) fn expected(&self) -> Duration {
        Duration::from_nanos(self.served.load(Ordering::Relaxed).into())
    }
}

/// Records a measurement. If two threads record at the same time, one measurement is lost, which
/// does no harm.
fn record(known: &AtomicU32, time: Duration) {
    let new = u32::try_from(time.as_nanos()).unwrap_or(u32::MAX).max(1);
    let old = known.load(Ordering::Relaxed);
    let bound = match old {
        0 => u32::MAX,
        _ => old.saturating_add(old / GROWTH + 1),
    };
    known.store(new.min(bound), Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_in_ten_is_too_often_slow_and_one_in_a_hundred_is_not() {
        let is_quick_after = |often: u32| {
            let latency = LatencyEstimate::default();
            latency.record_direct(Duration::from_micros(200));
            for read in 0..1000 {
                if read % often == 0 {
                    latency.record_slow(Instant::now());
                } else {
                    latency.record_multiplexed(Duration::from_micros(10));
                }
            }
            latency.is_quick(Instant::now())
        };
        assert!(is_quick_after(100));
        assert!(!is_quick_after(10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_statement_is_quick_when_it_was_and_comes_back_after_a_while() {
        let latency = LatencyEstimate::default();
        let is_quick = || latency.is_quick(Instant::now());
        assert!(!is_quick(), "nothing is known of it");
        latency.record_direct(Duration::from_micros(200));
        assert!(is_quick());
        for _ in 0..1000 {
            latency.record_direct(Duration::from_millis(50));
        }
        assert!(!is_quick());
        latency.record_direct(Duration::from_micros(200));
        assert!(is_quick(), "it was the others on the machine");
        latency.suspend(Instant::now());
        assert!(!is_quick());
        tokio::time::advance(FIRST_SUSPENSION).await;
        assert!(is_quick());
        latency.suspend(Instant::now());
        tokio::time::advance(FIRST_SUSPENSION).await;
        assert!(!is_quick(), "the second time it is twice as long");
        tokio::time::advance(FIRST_SUSPENSION).await;
        assert!(is_quick());
    }
}
