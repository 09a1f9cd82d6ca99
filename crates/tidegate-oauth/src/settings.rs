//! Settings of an issuer.

use std::time::Duration;

use crate::{BuiltinClients, RateLimits, Result};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Settings of an issuer.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Settings of sign-in, with the issuer's URL as it appears in tokens (RFC 8414, section 2).
    pub identity: tidegate_identity::Settings,
    /// Lifetimes.
    pub lifetimes: Lifetimes,
    /// Rate limits.
    pub limits: RateLimits,
    /// The built-in clients; none by default.
    pub builtin: BuiltinClients,
    /// The capacity of the cache of verified tokens, about 1 KB each. Half of it certainly stays
    /// cached.
    pub token_cache: usize,
}

impl Settings {
    /// The defaults for an issuer at this URL; the errors of [`tidegate_identity::Settings::new`].
    pub fn new(issuer: &str) -> Result<Self> {
        Ok(Self {
            identity: tidegate_identity::Settings::new(issuer)?,
            lifetimes: Lifetimes::default(),
            limits: RateLimits::default(),
            builtin: BuiltinClients::default(),
            token_cache: 32_768,
        })
    }

    /// The issuer's URL, without a trailing slash.
    pub fn issuer(&self) -> &str {
        self.identity.address()
    }
}

/// Lifetimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// An access token.
    pub access_token: Duration,
    /// A session that is not refreshed.
    pub session_idle: Duration,
    /// A session in any case.
    pub session: Duration,
    /// Tolerated clock skew between two nodes.
    pub leeway: Duration,
    /// An authorization code.
    pub authorization_code: Duration,
    /// A device code and its user code.
    pub device_code: Duration,
    /// The minimum time between two polls of a device.
    pub device_interval: Duration,
    /// An active signing key, until it is rotated automatically.
    pub key_active: Duration,
    /// How long a key is published before it may sign.
    pub key_notice: Duration,
    /// The audit log.
    pub audit: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            access_token: HOUR,
            session_idle: 30 * DAY,
            session: 90 * DAY,
            leeway: MINUTE / 2,
            authorization_code: MINUTE,
            device_code: HOUR / 2,
            device_interval: Duration::from_secs(5),
            key_active: 90 * DAY,
            key_notice: HOUR,
            audit: 365 * DAY,
        }
    }
}

impl Lifetimes {
    /// How long an access token of an ended session could still be valid: its lifetime, the clock
    /// skew, and the denylist overlap.
    pub(crate) fn denial(&self) -> Duration {
        self.access_token + self.leeway + DENYLIST_OVERLAP
    }
}

/// How far each denylist refresh reads back before the previous one, for slow transactions and for
/// nodes whose clock is behind.
pub(crate) const DENYLIST_OVERLAP: Duration = Duration::from_mins(2);
