//! Rate limits: which attempts are counted, and how many are allowed. The counters are in the store
//! and shared by all nodes.

mod counter;

use std::time::Duration;

use crate::UserKey;

pub use counter::{AttemptCounter, AttemptKey, AttemptLimit, AttemptOutcome};

/// The scope of the counters for tried passwords. There is one counter for each tenant and user
/// name, whether the user exists or not.
const ACCOUNT: &str = "account";
/// The scope of the counters for failed sign-ins. There is one counter for each address.
pub(crate) const ADDRESS: &str = "address";
/// The scope of the counters for second-factor codes. There is one counter for each user.
const SECOND_FACTOR: &str = "second_factor";
/// The scope of the counters for sign-ups. There is one counter for each address.
pub(crate) const SIGN_UP: &str = "sign_up";
/// The scope of the counters for email messages. There is one counter for each user, one for each
/// recipient and one for each address that requests come from. The value must stay `letter`,
/// because stored rows contain it.
pub(crate) const EMAIL: &str = "letter";
/// The scope of the counters for email messages with a link that signs in. There is one counter for
/// each user. These messages have separate counters and a laxer limit, so that an attacker who
/// requests links cannot keep the user from getting a link. The laxer limit is safe, because a link
/// is valid only in the browser that requested it.
const SIGN_IN_EMAIL: &str = "sign_in_email";
/// The scope of the counters for user records that are created from tokens of an external issuer.
/// There is one counter for each external issuer of a tenant.
pub(crate) const EXTERNAL_MEMBER: &str = "external_member";
/// The scope of the counters for uses of a link or a passkey request. There is one counter for each
/// link and each passkey request.
const LINK: &str = "link";

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);

/// The rate limits of sign-in and sign-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimits {
    /// The limit on passwords that are tried for one user.
    pub account: AttemptLimit,
    /// The limit on failed sign-ins from one address.
    pub address: AttemptLimit,
    /// The limit on second-factor codes that are tried for one user.
    pub second_factor: AttemptLimit,
    /// The limit on sign-ups from one address.
    pub sign_up: AttemptLimit,
    /// The limit on email messages to one user, except those with a link that signs in.
    pub emails: AttemptLimit,
    /// The limit on email messages with a link that signs in, to one user.
    pub sign_in_emails: AttemptLimit,
    /// The limit on email messages that are requested from one address.
    pub emails_per_address: AttemptLimit,
    /// The limit on records that are created for people with tokens of one external issuer.
    pub external_members: AttemptLimit,
}

impl Default for RateLimits {
    /// For each user:
    ///
    /// - 10 passwords, and 5 second-factor codes, in 15 minutes. The waits after these attempts
    ///   grow from 30 seconds to 15 minutes.
    /// - 5 email messages in an hour, except those with a link that signs in. The wait is then an
    ///   hour.
    /// - 5 email messages with a link that signs in, in an hour.
    ///
    /// For each address:
    ///
    /// - 30 failed sign-ins in a minute.
    /// - 60 sign-ups in an hour.
    /// - 20 email messages in an hour. The wait is then an hour.
    ///
    /// For each external issuer of a tenant: records for 300 new people in a minute.
    ///
    /// The wait is a minute unless another wait is given above.
    fn default() -> Self {
        Self {
            account: AttemptLimit::growing(10),
            address: AttemptLimit::steady(30, MINUTE),
            second_factor: AttemptLimit::growing(5),
            sign_up: AttemptLimit::steady(60, HOUR),
            emails: AttemptLimit::strict(5, HOUR),
            sign_in_emails: AttemptLimit::steady(5, HOUR),
            emails_per_address: AttemptLimit::strict(20, HOUR),
            external_members: AttemptLimit::steady(300, MINUTE),
        }
    }
}

/// The counter of passwords that are tried for a user.
pub(crate) fn account(key: &UserKey) -> AttemptKey {
    AttemptKey::of_user(ACCOUNT, key)
}

/// The counter of second-factor codes that are tried for a user.
pub(crate) fn second_factor(key: &UserKey) -> AttemptKey {
    AttemptKey::of_user(SECOND_FACTOR, key)
}

/// The kind of the link in an email message to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EmailLink {
    /// A link that resets the password.
    Reset,
    /// A link that signs in.
    SignIn,
}

impl EmailLink {
    /// The counter of messages with a link of this kind to a user. The user need not exist.
    pub(crate) fn counter(self, key: &UserKey) -> AttemptKey {
        match self {
            Self::Reset => AttemptKey::of_user(EMAIL, key),
            Self::SignIn => AttemptKey::of_user(SIGN_IN_EMAIL, key),
        }
    }

    /// The limit on messages with a link of this kind to one user.
    pub(crate) const fn limit(self, limits: &RateLimits) -> &AttemptLimit {
        match self {
            Self::Reset => &limits.emails,
            Self::SignIn => &limits.sign_in_emails,
        }
    }
}

/// The counter of uses of a link or a passkey request. `token` is its encrypted content.
pub(crate) fn link(token: &str) -> AttemptKey {
    AttemptKey::of_text(LINK, token)
}

/// The counter of sign-up messages to an email address, in all tenants.
pub(crate) fn recipient(email: &str) -> AttemptKey {
    AttemptKey::of_text(EMAIL, &email.to_lowercase())
}
