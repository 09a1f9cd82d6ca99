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
    /// The lifetimes of tokens, codes, sessions and keys.
    pub lifetimes: Lifetimes,
    /// The rate limits of the issuer's endpoints.
    pub limits: RateLimits,
    /// The built-in clients; none by default.
    pub builtin: BuiltinClients,
    /// The maximum number of verified tokens that are cached; each takes about 0.4 KB. When the
    /// cache is full, at least half of the tokens stay cached.
    pub token_cache: usize,
}

impl Settings {
    /// The default settings of an issuer at this URL. Errors: [`tidegate_identity::Settings::new`].
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

/// The lifetimes of tokens, codes, sessions and keys, and the tolerances that belong to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// How long an access token is valid.
    pub access_token: Duration,
    /// How long a session lives without a refresh.
    pub session_idle: Duration,
    /// How long a session lives at most, even if it is refreshed.
    pub session: Duration,
    /// Tolerated clock skew between two nodes.
    pub leeway: Duration,
    /// How long an authorization code is valid.
    pub authorization_code: Duration,
    /// How long a device code and its user code are valid.
    pub device_code: Duration,
    /// The minimum time between two polls of a device.
    pub device_interval: Duration,
    /// How long a signing key signs before it is rotated automatically.
    pub key_active: Duration,
    /// How long a key is published before it may sign.
    pub key_notice: Duration,
    /// How long an event is stored in the audit log.
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
    /// How long an ended session must stay in the denylist: the sum of the lifetime of its access
    /// tokens, the clock skew, and the overlap of two refreshes.
    pub(crate) fn denial(&self) -> Duration {
        self.access_token + self.leeway + DENYLIST_OVERLAP
    }
}

/// A denylist refresh also reads the sessions that ended at most this long before the previous
/// refresh. The previous refresh may have missed them, because a slow transaction or a slow clock
/// of another node can make the end of a session visible late.
pub(crate) const DENYLIST_OVERLAP: Duration = Duration::from_mins(2);
