//! The measured duration of logins.

use std::time::Duration;

/// The duration that is assumed before the first measurement. For a login PostgreSQL starts a
/// process, loads its caches and checks the password, which takes 7 to 9 ms of CPU time. For
/// comparison, a read by key on an open connection takes 0.04 ms.
const ASSUMED: Duration = Duration::from_millis(8);
/// The lower bound of a measurement. Shorter measurements count as this value.
const MIN_MEASURED: Duration = Duration::from_millis(2);
/// The upper bound of a measurement. Longer measurements count as this value. The bound limits
/// [`LoginTime`], and therefore how long requests of a role wait until the role gets another
/// connection while the server is overloaded.
const MAX_MEASURED: Duration = Duration::from_millis(50);

/// A moving average of login times. The pool opens a further connection of a role only after the
/// role's requests have waited for at least this time in total
/// ([`needs_login`](super::role::Role::needs_login)). The average grows when PostgreSQL is busy,
/// and the pool then opens fewer connections.
pub(super) struct LoginTime(Duration);

impl Default for LoginTime {
    fn default() -> Self {
        Self(ASSUMED)
    }
}

impl LoginTime {
    pub(super) fn measured(&mut self, time: Duration) {
        self.0 = (self.0 * 7 + time.clamp(MIN_MEASURED, MAX_MEASURED)) / 8;
    }

    pub(super) fn get(&self) -> Duration {
        self.0
    }
}
