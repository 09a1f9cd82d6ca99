//! Rate limits: which attempts are counted, and how many are allowed. The counters are in the store
//! and shared by all nodes.

mod counter;

use std::time::Duration;

use crate::UserKey;

pub use counter::{AttemptCounter, AttemptKey, AttemptLimit, AttemptOutcome};

/// Passwords tried for one user name of one tenant, whether it exists or not.
const ACCOUNT: &str = "account";
/// Failures from one address.
pub(crate) const ADDRESS: &str = "address";
/// Codes tried as the second factor of one user.
const SECOND_FACTOR: &str = "second_factor";
/// Sign-ups from one address.
pub(crate) const SIGN_UP: &str = "sign_up";
/// Email messages requested for one user, or from one address. The name is that of stored rows.
pub(crate) const EMAIL: &str = "letter";
/// Uses of one email link.
const LINK: &str = "link";

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// The rate limits of sign-in and sign-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// Passwords tried for one account.
    pub account: AttemptLimit,
    /// Failures from one address.
    pub address: AttemptLimit,
    /// Second-factor codes tried for one user.
    pub second_factor: AttemptLimit,
    /// Accounts made from one address.
    pub sign_up: AttemptLimit,
    /// Email messages to one user.
    pub emails: AttemptLimit,
    /// Email messages requested from one address.
    pub emails_per_address: AttemptLimit,
}

impl Default for RateLimits {
    /// 10 passwords per account in 15 minutes, then growing waits of 30 seconds to 15 minutes; the
    /// same after 5 second-factor codes. Per address: 30 failures a minute and 60 sign-ups an hour.
    /// 5 messages per user and 20 per address an hour.
    fn default() -> Self {
        Self {
            account: AttemptLimit::growing(10),
            address: AttemptLimit::steady(30, MINUTE),
            second_factor: AttemptLimit::growing(5),
            sign_up: AttemptLimit::steady(60, HOUR),
            emails: AttemptLimit::steady(5, HOUR),
            emails_per_address: AttemptLimit::steady(20, HOUR),
        }
    }
}

/// The counter of an account.
pub(crate) fn account(key: &UserKey) -> AttemptKey {
    AttemptKey::of_user(ACCOUNT, key)
}

/// The counter of a user's second factor.
pub(crate) fn second_factor(key: &UserKey) -> AttemptKey {
    AttemptKey::of_user(SECOND_FACTOR, key)
}

/// The counter of messages to a user, whether the user exists or not.
pub(crate) fn emails_to(key: &UserKey) -> AttemptKey {
    AttemptKey::of_user(EMAIL, key)
}

/// The counter of uses of an email link.
pub(crate) fn link(token: &str) -> AttemptKey {
    AttemptKey::of_text(LINK, token)
}

/// The counter of sign-up messages to an email address, in all tenants.
pub(crate) fn recipient(email: &str) -> AttemptKey {
    AttemptKey::of_text(EMAIL, &email.to_lowercase())
}
