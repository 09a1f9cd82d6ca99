//! Attempt counters, which prevent guessing of secrets.
//!
//! An attempt is counted before anything is verified, in one atomic step, so parallel attempts
//! cannot exceed the limit together. A successful attempt is refunded, unless the limit applies to
//! successful attempts too, such as sent messages.

use std::net::IpAddr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;

use crate::{SecretHash, Timestamp, UserKey};

/// Identifies an attempt counter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AttemptKey {
    /// The kind of counter: a name of at most 16 characters.
    pub scope: &'static str,
    /// Identifies the user, address, browser or text whose attempts are counted: at most 64 ASCII
    /// characters.
    pub subject: String,
}

impl AttemptKey {
    /// The counter of a user. The name is hashed, because it comes from the request: it may be
    /// long, and the user need not exist.
    pub fn of_user(scope: &'static str, key: &UserKey) -> Self {
        Self::of_text(scope, &format!("{}\0{}", key.database, key.name))
    }

    /// The counter of a text, which is hashed.
    pub fn of_text(scope: &'static str, text: &str) -> Self {
        let subject = URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, text.as_bytes()));
        Self { scope, subject }
    }

    /// The counter of an IPv4 address, or of the /64 network of an IPv6 address. Such a network
    /// usually belongs to one customer of a provider.
    pub fn of_address(scope: &'static str, address: IpAddr) -> Self {
        let subject = match address.to_canonical() {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => {
                let [a, b, c, d, ..] = v6.segments();
                format!("{a:x}:{b:x}:{c:x}:{d:x}::/64")
            }
        };
        Self { scope, subject }
    }

    /// The counter of a signed-in browser.
    pub fn of_browser(scope: &'static str, id: SecretHash) -> Self {
        let subject = id.to_base64url();
        Self { scope, subject }
    }
}

/// A rate limit: how many attempts are allowed, and how long the wait after them is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptLimit {
    /// The number of attempts allowed in a window. The last of these attempts starts the wait.
    pub count: u32,
    /// The length of a window, which starts with its first attempt.
    pub window: Duration,
    /// The wait after the last allowed attempt. Each further attempt doubles the wait.
    pub first_delay: Duration,
    /// The maximum wait between two attempts.
    pub longest_delay: Duration,
    /// How long the counter is stored after a wait, so that the next wait can be longer.
    pub memory: Duration,
}

impl AttemptLimit {
    /// A limit of `count` attempts in a window. Beyond them, one attempt a minute is allowed.
    pub const fn steady(count: u32, window: Duration) -> Self {
        let minute = Duration::from_mins(1);
        Self {
            count,
            window,
            first_delay: minute,
            longest_delay: minute,
            memory: Duration::ZERO,
        }
    }

    /// A limit of `count` attempts in a window, then a wait as long as the window.
    pub const fn strict(count: u32, window: Duration) -> Self {
        Self {
            count,
            window,
            first_delay: window,
            longest_delay: window,
            memory: Duration::ZERO,
        }
    }

    /// A limit of `count` attempts in 15 minutes, then growing waits of 30 seconds to 15 minutes.
    pub const fn growing(count: u32) -> Self {
        let quarter = Duration::from_mins(15);
        Self {
            count,
            window: quarter,
            first_delay: Duration::from_secs(30),
            longest_delay: quarter,
            memory: quarter,
        }
    }

    /// A limit of one attempt, for a link that can be used once. The attempt marks the link as
    /// used. Further attempts are refused for `memory`.
    pub const fn once(memory: Duration) -> Self {
        Self {
            count: 1,
            window: memory,
            first_delay: memory,
            longest_delay: memory,
            memory,
        }
    }

    /// A limit that no attempt reaches. An attempt is refused only during a wait that another
    /// limit, such as [`once`](Self::once), has started on the same counter.
    pub const fn unreached(window: Duration) -> Self {
        Self {
            // The largest value of an integer in PostgreSQL.
            count: i32::MAX.cast_unsigned(),
            window,
            first_delay: Duration::ZERO,
            longest_delay: Duration::ZERO,
            memory: Duration::ZERO,
        }
    }
}

/// An attempt counter as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptCounter {
    /// The number of attempts counted in this window.
    pub count: u32,
    /// The time before which no attempt is allowed; `None` if attempts are allowed.
    pub open_at: Option<Timestamp>,
    /// When the counter is reset.
    pub expires_at: Timestamp,
}

/// The result of counting an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptOutcome {
    /// The attempt is counted and may proceed.
    Allowed,
    /// The attempt is not counted and must not proceed, because there were too many.
    Refused {
        /// When the next attempt is allowed.
        until: Timestamp,
    },
}

impl AttemptCounter {
    /// Counts an attempt at `now`. `before` is the stored counter, `None` if none is stored.
    /// Returns the counter to store and the result. Every implementation of
    /// [`IdentityStore::count_attempt`](crate::IdentityStore::count_attempt) must compute the same.
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
