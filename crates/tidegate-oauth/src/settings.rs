//! What an operator may choose.

use std::time::Duration;

use crate::{Error, Limits, Result};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// How an issuer behaves.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The issuer's address as it stands in every token (RFC 8414, section 2), without a slash at
    /// its end.
    pub(crate) issuer: String,
    /// How long things live.
    pub lifetimes: Lifetimes,
    /// How many attempts are allowed.
    pub limits: Limits,
    /// How many accepted tokens are remembered.
    pub token_cache: usize,
}

impl Settings {
    /// The defaults for an issuer at this address: `http` or `https`, a host, no query and no
    /// fragment. [`Error::Malformed`] else.
    pub fn new(issuer: &str) -> Result<Self> {
        let issuer = issuer.trim_end_matches('/');
        let host = issuer
            .strip_prefix("https://")
            .or_else(|| issuer.strip_prefix("http://"));
        let plain = issuer
            .bytes()
            .all(|b| b.is_ascii_graphic() && !b"?#\"\\<>@".contains(&b));
        if !plain || host.is_none_or(|host| host.is_empty() || host.starts_with('/')) {
            return Err(Error::Malformed {
                part: "issuer",
                expected: "an http or https address",
            });
        }
        Ok(Self {
            issuer: issuer.to_owned(),
            lifetimes: Lifetimes::default(),
            limits: Limits::default(),
            token_cache: 10_000,
        })
    }

    /// The issuer's address.
    pub fn issuer(&self) -> &str {
        &self.issuer
    }
}

/// How long things live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// An access token.
    pub access_token: Duration,
    /// A session that nobody refreshes.
    pub session_idle: Duration,
    /// A session however busy it is.
    pub session: Duration,
    /// How far the clocks of two nodes may be apart.
    pub leeway: Duration,
    /// An authorization code.
    pub authorization_code: Duration,
    /// A device code and its user code.
    pub device_code: Duration,
    /// The pause that a device makes between two polls.
    pub device_interval: Duration,
    /// A browser session that nobody uses.
    pub browser_idle: Duration,
    /// A browser session however busy it is.
    pub browser: Duration,
    /// How long ago a person may have signed in who links an account elsewhere without showing
    /// the password once more.
    pub fresh_sign_in: Duration,
    /// The link that confirms a sign-up.
    pub sign_up_link: Duration,
    /// The link with which somebody chooses a new password.
    pub reset_link: Duration,
    /// A browser's trip to an identity provider and back.
    pub social_trip: Duration,
    /// A signing key in use, until the next one takes over by itself.
    pub key_active: Duration,
    /// How long a key is published before it signs.
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
            browser_idle: DAY,
            browser: 14 * DAY,
            fresh_sign_in: 10 * MINUTE,
            sign_up_link: DAY,
            social_trip: 10 * MINUTE,
            reset_link: HOUR,
            key_active: 90 * DAY,
            key_notice: HOUR,
            audit: 365 * DAY,
        }
    }
}

impl Lifetimes {
    /// How long an access token of an ended session could still pass: its life, the clocks apart,
    /// and some more for a commit that takes its time.
    pub(crate) fn denial(&self) -> Duration {
        self.access_token + self.leeway + DENYLIST_OVERLAP
    }
}

/// How far each look at the denylist reaches back behind the one before it, for ends whose
/// transaction took its time and for nodes whose clock is behind.
pub(crate) const DENYLIST_OVERLAP: Duration = Duration::from_mins(2);
