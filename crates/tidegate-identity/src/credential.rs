//! The credentials that users have in addition to their passwords.

use crate::{LinkedIdentity, Passkey};

/// A kind of credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    /// Passkeys.
    Passkeys,
    /// Accounts of identity providers.
    LinkedAccounts,
    /// The second factor with its recovery codes.
    SecondFactor,
}

impl CredentialKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Passkeys, Self::LinkedAccounts, Self::SecondFactor];
    /// The kinds with which a user can sign in without a password.
    pub const WITHOUT_PASSWORD: [Self; 2] = [Self::Passkeys, Self::LinkedAccounts];

    /// The name of the kind in paths and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passkeys => "passkeys",
            Self::LinkedAccounts => "linked_accounts",
            Self::SecondFactor => "second_factor",
        }
    }

    /// The kind with this name; `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The credentials of a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// Whether the user has a password.
    pub password: bool,
    /// The passkeys, the oldest first.
    pub passkeys: Vec<Passkey>,
    /// The linked accounts, sorted by issuer and subject.
    pub linked_accounts: Vec<LinkedIdentity>,
    /// The number of unused recovery codes; `None` without a second factor.
    pub recovery_codes: Option<u64>,
}
