//! Attempt counters, which prevent guessing of secrets.
//!
//! An attempt is counted before anything is verified, in one atomic step, so parallel attempts
//! cannot exceed the limit together. A successful attempt is refunded.

use std::time::Duration;

use crate::Timestamp;

/// Identifies a counter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttemptKey {
    /// The kind of counter.
    pub scope: AttemptScope,
    /// What is counted in this scope: at most 64 ASCII characters, made by this crate.
    pub subject: String,
}

/// The kinds of counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttemptScope {
    /// Passwords tried for one user name of one tenant, whether it exists or not.
    Account,
    /// Failures from one address (for IPv6, one /64).
    Address,
    /// Wrong secrets for one client from one address.
    Client,
    /// Guest sessions opened from one address.
    Guest,
    /// Device codes requested from one address.
    Device,
    /// Wrong user codes from one address, or from one signed-in browser.
    UserCode,
    /// Codes tried as the second factor of one user.
    SecondFactor,
    /// Sign-ups from one address.
    SignUp,
    /// Email messages requested for one user, or from one address.
    Email,
    /// Uses of one email link.
    Link,
}

impl AttemptScope {
    /// The name in a store. Stored names do not change, also where the variant's name has.
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
            Self::Email => "letter",
            Self::Link => "link",
        }
    }
}

/// A rate limit: how many attempts are allowed, and the wait after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptLimit {
    /// Attempts allowed in a window; the wait starts with the last of them.
    pub count: u32,
    /// The length of a window, which starts with its first attempt.
    pub window: Duration,
    /// The wait after the last allowed attempt. Each further attempt doubles it.
    pub first_delay: Duration,
    /// The longest wait.
    pub longest_delay: Duration,
    /// How long after a wait the counter is kept, so that waits can grow.
    pub memory: Duration,
}

/// A counter as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptCounter {
    /// Attempts in this window.
    pub count: u32,
    /// No attempt is allowed before this time, if set.
    pub open_at: Option<Timestamp>,
    /// When the counter is reset.
    pub expires_at: Timestamp,
}

/// The result of counting an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The attempt is counted and may proceed.
    Allowed,
    /// Too many attempts: this one is not counted and must not proceed.
    Refused {
        /// When the next attempt is allowed.
        until: Timestamp,
    },
}

impl AttemptCounter {
    /// Counts an attempt at `now`: the rule of
    /// [`Store::count_attempt`](crate::Store::count_attempt) as a pure function from the stored
    /// counter to the new one and the result.
    pub fn count(
        before: Option<Self>,
        limit: &AttemptLimit,
        now: Timestamp,
    ) -> (Self, AttemptOutcome) {
        let counter = before
            .filter(|counter| now < counter.expires_at)
            .unwrap_or(Self {
                count: 0,
                open_at: None,
                expires_at: now.plus(limit.window),
            });
        match counter.open_at {
            Some(until) if now < until => (counter, AttemptOutcome::Refused { until }),
            _ => (counter.counted(limit, now), AttemptOutcome::Allowed),
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

    /// Refunds one successful attempt, and cancels the wait that it may have started.
    pub fn refund(self) -> Self {
        Self {
            count: self.count.saturating_sub(1),
            open_at: None,
            ..self
        }
    }
}
