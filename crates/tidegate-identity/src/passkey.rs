//! Passkeys: key pairs with which users sign in (`WebAuthn`).

use crate::Timestamp;

/// A passkey of a user. Its private key is in the user's authenticator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passkey {
    /// The id of the credential in base64url.
    pub id: String,
    /// The name of the passkey, which the user can change. At first it is the name of the browser
    /// in which the passkey was created.
    pub name: String,
    /// The credential as JSON, with its public key and its signature counter.
    pub record: String,
    /// When the passkey was created.
    pub created_at: Timestamp,
    /// When the passkey was most recently used to sign in; `None` before the first use.
    pub used_at: Option<Timestamp>,
}

impl Passkey {
    /// The maximum number of passkeys of a user.
    pub const MAX_COUNT: usize = 20;
}
