//! Rate limits: which attempts are counted, and how many are allowed. The counters are in the store
//! and shared by all nodes.

mod counter;

use std::time::Duration;

use crate::UserKey;

pub use counter::{AttemptCounter, AttemptKey, AttemptLimit, AttemptOutcome};

/// Counts passwords tried for one user name of one tenant, whether the user exists or not.
const ACCOUNT: &str = "account";
/// Counts failed sign-ins from one address.
pub(crate) const ADDRESS: &str = "address";
/// Counts codes tried as the second factor of one user.
const SECOND_FACTOR: &str = "second_factor";
/// Counts sign-ups from one address.
pub(crate) const SIGN_UP: &str = "sign_up";
/// Counts email messages requested for one user, or from one address. The value is kept because
/// stored rows have it.
pub(crate) const EMAIL: &str = "letter";
/// Counts the people of one external issuer who are recorded.
pub(crate) const EXTERNAL_MEMBER: &str = "external_member";
/// Counts uses of one email link.
const LINK: &str = "link";

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// The rate limits of sign-in and sign-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// How many passwords may be tried for one user.
    pub account: AttemptLimit,
    /// How many sign-ins may fail from one address.
    pub address: AttemptLimit,
    /// How many second-factor codes may be tried for one user.
    pub second_factor: AttemptLimit,
    /// How many users may sign up from one address.
    pub sign_up: AttemptLimit,
    /// How many email messages are sent to one user.
    pub emails: AttemptLimit,
    /// How many email messages may be requested from one address.
    pub emails_per_address: AttemptLimit,
    /// How many people of one external issuer are recorded.
    pub external_members: AttemptLimit,
}

impl Default for RateLimits {
    /// Per user: 10 passwords or 5 second-factor codes in 15 minutes, then growing waits of 30
    /// seconds to 15 minutes; 5 email messages an hour.
    ///
    /// Per address: 30 failed sign-ins a minute; 60 sign-ups and 20 email messages an hour.
    ///
    /// Per external issuer of a tenant: 300 new records of people a minute.
    fn default() -> Self {
        Self {
            account: AttemptLimit::growing(10),
            address: AttemptLimit::steady(30, MINUTE),
            second_factor: AttemptLimit::growing(5),
            sign_up: AttemptLimit::steady(60, HOUR),
            emails: AttemptLimit::steady(5, HOUR),
            emails_per_address: AttemptLimit::steady(20, HOUR),
            external_members: AttemptLimit::steady(300, MINUTE),
        }
    }
}

/// The counter of passwords tried for a user.
pub(crate) fn account(key: &UserKey) -> AttemptKey {
    AttemptKey::of_user(ACCOUNT, key)
}

/// The counter of codes tried as a user's second factor.
pub(crate) fn second_factor(key: &UserKey) -> AttemptKey {
    AttemptKey::of_user(SECOND_FACTOR, key)
}

/// The counter of email messages to a user, whether the user exists or not.
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
