//! Timestamps, and the port for the current time.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A point in time: milliseconds since 1970-01-01T00:00:00Z.
///
/// Tokens contain whole seconds (RFC 7519, section 2, `NumericDate`); records contain milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The time `milliseconds` after the epoch.
    pub const fn from_millis(milliseconds: i64) -> Self {
        Self(milliseconds)
    }

    /// The time `seconds` after the epoch, saturating.
    pub const fn from_seconds(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000))
    }

    /// Milliseconds since the epoch.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Whole seconds since the epoch, rounded down, as used in tokens.
    pub const fn seconds(self) -> i64 {
        self.0.div_euclid(1_000)
    }

    /// Adds a duration, saturating.
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(millis_of(duration)))
    }

    /// Subtracts a duration, saturating.
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(millis_of(duration)))
    }

    /// The time elapsed since `earlier`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Duration {
        let millis = self.0.saturating_sub(earlier.0).max(0);
        Duration::from_millis(millis.unsigned_abs())
    }
}

fn millis_of(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl From<SystemTime> for Timestamp {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => Self(millis_of(after)),
            Err(before) => Self(-millis_of(before.duration())),
        }
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.seconds(), self.0.rem_euclid(1_000))
    }
}

/// The port for the current time. Functions that return a [`SystemTime`] implement it, so a binary
/// passes `SystemTime::now`. A test passes a [`ManualClock`].
pub trait Clock: Send + Sync {
    /// The current time.
    fn now(&self) -> Timestamp;
}

impl<F: Fn() -> SystemTime + Send + Sync> Clock for F {
    fn now(&self) -> Timestamp {
        self().into()
    }
}

/// A clock for tests. It moves only when a test advances it.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock whose current time is `now`.
    pub fn new(now: Timestamp) -> Self {
        Self(AtomicI64::new(now.millis()))
    }

    /// Moves the clock forward.
    pub fn advance(&self, duration: Duration) {
        self.0.fetch_add(millis_of(duration), Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}
