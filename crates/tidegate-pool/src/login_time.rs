//! How long a login takes.

use std::time::Duration;

/// What is assumed before the first one. PostgreSQL starts a process, loads its caches and checks
/// the password: 7 to 9 ms of CPU, where a warm read by key takes 0.04 ms.
const ASSUMED: Duration = Duration::from_millis(8);
/// A faster one counts as this.
const SHORTEST: Duration = Duration::from_millis(2);
/// A slower one counts as this: on a server that is overloaded requests should still get a
/// connection more after a while.
const LONGEST: Duration = Duration::from_millis(50);

/// A moving average of the time that logins take. It grows when PostgreSQL is busy, so that the
/// pool then asks for fewer of them.
pub(super) struct LoginTime(Duration);

impl Default for LoginTime {
    fn default() -> Self {
        Self(ASSUMED)
    }
}

impl LoginTime {
    pub(super) fn measured(&mut self, time: Duration) {
        self.0 = (self.0 * 7 + time.clamp(SHORTEST, LONGEST)) / 8;
    }

    pub(super) fn get(&self) -> Duration {
        self.0
    }
}
