//! Settings.

use std::time::Duration;

use crate::{Error, RateLimits, Result};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Settings of an [`IdentityService`](crate::IdentityService).
#[derive(Clone, Debug)]
pub struct Settings {
    address: String,
    /// Lifetimes.
    pub lifetimes: Lifetimes,
    /// Rate limits.
    pub limits: RateLimits,
}

impl Settings {
    /// The defaults for a service at this URL, which email links begin with: `http` or `https`, a
    /// host, no query, no fragment; otherwise [`Error::Malformed`].
    pub fn new(address: &str) -> Result<Self> {
        let address = address.trim_end_matches('/');
        let host = address
            .strip_prefix("https://")
            .or_else(|| address.strip_prefix("http://"));
        let plain = address
            .bytes()
            .all(|b| b.is_ascii_graphic() && !b"?#\"\\<>@".contains(&b));
        if !plain || host.is_none_or(|host| host.is_empty() || host.starts_with('/')) {
            return Err(Error::Malformed {
                part: "issuer",
                expected: "an http or https address",
            });
        }
        Ok(Self {
            address: address.to_owned(),
            lifetimes: Lifetimes::default(),
            limits: RateLimits::default(),
        })
    }

    /// The service's URL, without a trailing slash.
    pub fn address(&self) -> &str {
        &self.address
    }
}

/// Lifetimes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// A browser session that is not used.
    pub browser_idle: Duration,
    /// A browser session in any case.
    pub browser: Duration,
    /// How recent a sign-in must be to link an account without entering the password.
    pub recent_sign_in: Duration,
    /// The link that confirms a sign-up.
    pub sign_up_link: Duration,
    /// The link that resets a password.
    pub reset_link: Duration,
    /// A login at an identity provider.
    pub provider_login: Duration,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            browser_idle: DAY,
            browser: 14 * DAY,
            recent_sign_in: 10 * MINUTE,
            sign_up_link: DAY,
            reset_link: HOUR,
            provider_login: 10 * MINUTE,
        }
    }
}
