//! Counting attempts at secrets, so that nobody can try them out.
//!
//! An attempt is counted before anything is verified, in one atomic step, so that parallel attempts
//! cannot slip past the limit together; a success gives its count back.

use std::time::Duration;

use crate::Timestamp;

/// What is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttemptKey {
    /// The kind of counter.
    pub scope: AttemptScope,
    /// Whose it is: at most 64 characters of ASCII, made by this crate.
    pub subject: String,
}

/// The kinds of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptScope {
    /// Passwords tried for one user name of one tenant, whether it exists or not.
    Account,
    /// Failures that come from one address (for IPv6 from one /64).
    Address,
    /// Wrong secrets for one client from one address.
    Client,
    /// Guest sessions opened from one address.
    Guest,
    /// Device codes asked for from one address.
    Device,
    /// Wrong user codes that come from one address, or from one signed-in browser.
    UserCode,
    /// Codes tried as the second factor of one user.
    SecondFactor,
    /// Accounts made from one address.
    SignUp,
    /// Letters asked for in the name of one user, or from one address.
    Letter,
    /// Uses of the link of one letter.
    Link,
}

impl AttemptScope {
    /// The name in a store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Account => "account",
            Self::Address => "address",
            Self::Client => "client",
            Self::Guest => "guest",
            Self::Device => "device",
            Self::UserCode => "user_code",
            Self::SecondFactor => "second_factor",
            Self::SignUp => "sign_up",
            Self::Letter => "letter",
            Self::Link => "link",
        }
    }
}

/// How many attempts are allowed, and how long the caller waits after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptLimit {
    /// Attempts allowed in a window; the wait begins with the last of them.
    pub count: u32,
    /// The window, from its first attempt.
    pub window: Duration,
    /// The wait after the last allowed attempt. Each attempt after it doubles the wait.
    pub first_delay: Duration,
    /// The longest wait.
    pub longest_delay: Duration,
    /// How long after a wait the counter still remembers, so that the waits can grow.
    pub memory: Duration,
}

/// A counter as a store keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptCounter {
    /// Attempts in this window.
    pub count: u32,
    /// No attempt is allowed before this moment, if there is one.
    pub open_at: Option<Timestamp>,
    /// When the counter starts again from nothing.
    pub expires_at: Timestamp,
}

/// What counting an attempt gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The attempt is counted and may go on.
    Allowed,
    /// Too many: the attempt is not counted and must not go on before this moment.
    Refused {
        /// When the next attempt is allowed.
        until: Timestamp,
    },
}

impl AttemptCounter {
    /// Counts an attempt at `now`: the rule of [`Store::count_attempt`](crate::Store::count_attempt)
    /// as a function from the counter before to the counter after and the answer.
    pub fn count(before: Option<Self>, limit: &AttemptLimit, now: Timestamp) -> (Self, Counted) {
        let counter = before
            .filter(|counter| now < counter.expires_at)
            .unwrap_or(Self {
                count: 0,
                open_at: None,
                expires_at: now.plus(limit.window),
            });
        match counter.open_at {
            Some(until) if now < until => (counter, Counted::Refused { until }),
            _ => (counter.counted(limit, now), Counted::Allowed),
        }
    }

    fn counted(self, limit: &AttemptLimit, now: Timestamp) -> Self {
        let count = self.count.saturating_add(1);
        let Some(excess) = count.checked_sub(limit.count) else {
            return Self {
                count,
                open_at: None,
                ..self
            };
        };
        let doubled = limit
            .first_delay
            .saturating_mul(2_u32.saturating_pow(excess.min(31)));
        let open_at = now.plus(doubled.min(limit.longest_delay));
        let expires_at = self.expires_at.max(open_at.plus(limit.memory));
        Self {
            count,
            open_at: Some(open_at),
            expires_at,
        }
    }

    /// Takes one attempt back that turned out right, and with it the wait that it may have begun.
    pub fn give_back(self) -> Self {
        Self {
            count: self.count.saturating_sub(1),
            open_at: None,
            ..self
        }
    }
}
