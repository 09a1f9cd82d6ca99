//! Accounts elsewhere with which users sign in.

use crate::{ExternalIdentity, Timestamp};

const NAME_CHARACTERS: usize = 128;

/// An account elsewhere that is linked to a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedIdentity {
    /// The id of the provider through which it was linked; none for a link that was made before
    /// this was kept.
    pub provider: Option<String>,
    /// The provider's own name for itself, an address.
    pub issuer: String,
    /// The person's name there, which never changes.
    pub subject: String,
    /// What the person is called there, cut to 128 characters: the address of e-mail or a name.
    pub name: Option<String>,
    /// When it was linked; none as for `provider`.
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

/// What became of taking a link away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unlinked {
    /// It is gone.
    Done,
    /// The user has no such link.
    Missing,
    /// The user has no password and no other account elsewhere: nobody could sign in any more.
    LastWay,
}
