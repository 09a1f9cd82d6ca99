//! Settings of an [`IdentityService`](crate::IdentityService).

use std::time::Duration;

use crate::{Error, RateLimits, Result};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// Settings of an [`IdentityService`](crate::IdentityService).
#[derive(Clone, Debug)]
pub struct Settings {
    address: String,
    /// The lifetimes of browser sessions, links and logins.
    pub lifetimes: Lifetimes,
    /// The rate limits of sign-in and sign-up.
    pub limits: RateLimits,
}

impl Settings {
    /// The default settings of a service at this URL. Links in email messages begin with the URL.
    /// Fails with [`Error::Malformed`] unless the URL has the scheme `http` or `https`, a host, no
    /// query and no fragment.
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

/// The lifetimes of browser sessions, links and logins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetimes {
    /// The time after which an unused browser session expires.
    pub browser_idle: Duration,
    /// The maximum lifetime of a browser session.
    pub browser: Duration,
    /// How long after a sign-in the user can change credentials without entering the password.
    pub recent_sign_in: Duration,
    /// How long the link that confirms a sign-up is valid.
    pub sign_up_link: Duration,
    /// How long the link that resets a password is valid.
    pub reset_link: Duration,
    /// The maximum time from the display of a page to the use of a passkey on this page.
    pub passkey: Duration,
    /// How long the link that signs in by email is valid.
    pub email_sign_in: Duration,
    /// The maximum duration of a login at an identity provider.
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
            passkey: HOUR,
            email_sign_in: 15 * MINUTE,
            provider_login: 10 * MINUTE,
        }
    }
}
