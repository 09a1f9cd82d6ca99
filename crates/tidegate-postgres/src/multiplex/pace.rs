//! How long a statement takes, as far as it is known.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// A statement is quick that takes no longer on a connection of its own, where others have the
/// processors too.
const QUICK: Duration = Duration::from_millis(2);
/// How long a statement is not multiplexed that kept others waiting: twice as long each time, so
/// many times. Short at first, because on a busy machine it may not be the cause.
const AWAY: (Duration, u32) = (Duration::from_secs(1), 4);
/// What a slow answer weighs, where one that is not takes back 1; and what is too much.
const SLOWNESS: (u32, u32) = (16, 64);
/// After so long without a fault the earlier ones are forgotten.
const FORGIVEN: Duration = Duration::from_mins(1);
/// What is assumed of a statement that was not multiplexed yet.
const ASSUMED: u32 = 50_000;
/// With each measurement that is longer, what is known grows by one part in so many. The least of
/// many measurements says how long a statement takes; the others how busy the machine is.
const GROWTH: u32 = 128;

/// How long a statement takes at best: how much longer it takes now and then says more about the
/// others on the machine.
#[derive(Debug)]
pub(crate) struct Pace {
    /// On a connection of its own, in nanoseconds; 0 when that is not known.
    alone: AtomicU32,
    /// On a multiplexed connection, from the end of the one before, in nanoseconds.
    served: AtomicU32,
    /// In milliseconds since `born`, until when it is not multiplexed.
    away_until: AtomicU64,
    /// How often in a row it did not do well.
    strikes: AtomicU32,
    /// Grows with each slow answer and shrinks with the others.
    slowness: AtomicU32,
    born: Instant,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            alone: AtomicU32::new(0),
            served: AtomicU32::new(ASSUMED),
            away_until: AtomicU64::new(0),
            strikes: AtomicU32::new(0),
            slowness: AtomicU32::new(0),
            born: Instant::now(),
        }
    }
}

impl Pace {
    /// It took so long on a connection of its own.
    pub(crate) fn took(&self, time: Duration) {
        learn(&self.alone, time);
    }

    /// It took so long on a multiplexed connection.
    pub(super) fn was_served(&self, time: Duration) {
        let slowness = self.slowness.load(Ordering::Relaxed);
        self.slowness
            .store(slowness.saturating_sub(1), Ordering::Relaxed);
        learn(&self.served, time);
    }

    /// It took longer there than reads should. Now and then the machine is the cause.
    pub(super) fn was_slow(&self, now: Instant) {
        let (each, most) = SLOWNESS;
        let slowness = self.slowness.load(Ordering::Relaxed) + each;
        self.slowness.store(slowness % most, Ordering::Relaxed);
        if slowness >= most {
            tracing::debug!("statement is often slow on multiplexed connections");
            self.keep_away(now + AWAY.0);
        }
    }

    fn keep_away(&self, until: Instant) {
        let until = u64::try_from((until - self.born).as_millis()).unwrap_or(u64::MAX);
        self.away_until.fetch_max(until, Ordering::Relaxed);
    }

    /// It kept others waiting, wrote, or returned too much.
    pub(super) fn stay_away(&self, now: Instant) {
        let (first, doublings) = AWAY;
        let behaved = (now - self.born).checked_sub(self.away_until());
        if behaved.is_none() {
            return;
        }
        if behaved > Some(FORGIVEN) {
            self.strikes.store(0, Ordering::Relaxed);
        }
        let strikes = self.strikes.fetch_add(1, Ordering::Relaxed);
        self.keep_away(now + first * (1 << strikes.min(doublings)));
    }

    /// Whether it may be multiplexed.
    pub(super) fn is_quick(&self, now: Instant) -> bool {
        let alone = self.alone.load(Ordering::Relaxed);
        alone > 0
            && Duration::from_nanos(alone.into()) <= QUICK
            && now - self.born >= self.away_until()
    }

    fn away_until(&self) -> Duration {
        Duration::from_millis(self.away_until.load(Ordering::Relaxed))
    }

    /// How long a multiplexed connection is expected to take for it.
    pub(super) fn expected(&self) -> Duration {
        Duration::from_nanos(self.served.load(Ordering::Relaxed).into())
    }
}

/// Takes a measurement; one that another thread takes meanwhile may be lost.
fn learn(known: &AtomicU32, time: Duration) {
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
            let pace = Pace::default();
            pace.took(Duration::from_micros(200));
            for read in 0..1000 {
                if read % often == 0 {
                    pace.was_slow(Instant::now());
                } else {
                    pace.was_served(Duration::from_micros(10));
                }
            }
            pace.is_quick(Instant::now())
        };
        assert!(is_quick_after(100));
        assert!(!is_quick_after(10));
    }

    #[tokio::test(start_paused = true)]
    async fn a_statement_is_quick_when_it_was_and_comes_back_after_a_while() {
        let pace = Pace::default();
        let is_quick = || pace.is_quick(Instant::now());
        assert!(!is_quick(), "nothing is known of it");
        pace.took(Duration::from_micros(200));
        assert!(is_quick());
        for _ in 0..1000 {
            pace.took(Duration::from_millis(50));
        }
        assert!(!is_quick());
        pace.took(Duration::from_micros(200));
        assert!(is_quick(), "it was the others on the machine");
        pace.stay_away(Instant::now());
        assert!(!is_quick());
        tokio::time::advance(AWAY.0).await;
        assert!(is_quick());
        pace.stay_away(Instant::now());
        tokio::time::advance(AWAY.0).await;
        assert!(!is_quick(), "the second time it is twice as long");
        tokio::time::advance(AWAY.0).await;
        assert!(is_quick());
    }
}
