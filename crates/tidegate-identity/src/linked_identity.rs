//! Accounts of identity providers that are linked to users.

use crate::{ExternalIdentity, Timestamp};

const NAME_CHARACTERS: usize = 128;

/// An account of an identity provider that is linked to a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// The id of the identity provider; `None` if the account was linked by an older version,
    /// which did not store the id.
    pub provider: Option<String>,
    /// The provider's issuer identifier, a URL.
    pub issuer: String,
    /// The provider's id of the account, which never changes: the claim `sub`.
    pub subject: String,
    /// The person's user name or email address at the provider, cut to 128 characters.
    pub name: Option<String>,
    /// When the account was linked; `None` if it was linked by an older version, which did not
    /// store the time.
    pub linked_at: Option<Timestamp>,
}

impl LinkedIdentity {
    pub(crate) fn new(provider: &str, identity: &ExternalIdentity, now: Timestamp) -> Self {
        let name = identity.name.as_ref().or(identity.verified_email.as_ref());
        let plain = |name: &String| {
            let shown = name.chars().filter(|c| !c.is_control());
            shown.take(NAME_CHARACTERS).collect()
        };
        Self {
            provider: Some(provider.to_owned()),
            issuer: identity.issuer.clone(),
            subject: identity.subject.clone(),
            name: name.map(plain),
            linked_at: Some(now),
        }
    }
}

/// The result of unlinking an account, or of removing a passkey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemovalOutcome {
    /// The account or passkey was removed.
    Done,
    /// The user has no such account or passkey.
    Missing,
    /// The user would have no credential left with which to sign in.
    LastCredential,
}
