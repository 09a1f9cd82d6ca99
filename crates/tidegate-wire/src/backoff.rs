//! Delays between attempts to reach PostgreSQL.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(30);

/// A source of random numbers from 0 to 1, which make the delays of several nodes differ.
#[derive(Clone)]
pub struct Jitter(Arc<dyn Fn() -> f64 + Send + Sync>);

impl Jitter {
    /// Creates a jitter from a function that returns the numbers. Numbers outside of 0 to 1 are
    /// clamped.
    pub fn new(source: impl Fn() -> f64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(source))
    }

    /// No jitter: every delay has its full length.
    pub fn none() -> Self {
        Self::new(|| 1.0)
    }
}

impl fmt::Debug for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Jitter")
    }
}

/// Delays that double with each failure, from 100 ms to 30 s. A success resets them.
#[derive(Clone, Debug)]
pub struct Backoff {
    jitter: Jitter,
    failures: u32,
}

impl Backoff {
    /// A back-off before any failure.
    pub fn new(jitter: Jitter) -> Self {
        Self {
            jitter,
            failures: 0,
        }
    }

    /// Counts a failure. Returns the delay before the next attempt. The jitter shortens this delay
    /// by at most half.
    pub fn fail(&mut self) -> Duration {
        let step = FIRST_DELAY
            .saturating_mul(1_u32.checked_shl(self.failures).unwrap_or(u32::MAX))
            .min(MAX_DELAY);
        self.failures = (self.failures + 1).min(16);
        let spread = (self.jitter.0)().clamp(0.0, 1.0);
        step.mul_f64(0.5 + spread / 2.0)
    }

    /// Records a success, after which the delays begin with the shortest again.
    pub fn succeed(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap_and_a_success_starts_them_over() {
        let mut backoff = Backoff::new(Jitter::none());
        let delays: Vec<_> = (0..12).map(|_| backoff.fail().as_millis()).collect();
        let expected = [
            100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000, 30_000,
        ];
        assert_eq!(delays, expected);
        backoff.succeed();
        assert_eq!(backoff.fail(), FIRST_DELAY);
    }

    #[test]
    fn jitter_takes_at_most_half_of_a_delay() {
        let mut least = Backoff::new(Jitter::new(|| 0.0));
        assert_eq!(least.fail(), FIRST_DELAY / 2);
        let mut wild = Backoff::new(Jitter::new(|| 7.0));
        assert_eq!(wild.fail(), FIRST_DELAY);
    }
}
