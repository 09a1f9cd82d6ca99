//! Passkeys: key pairs with which users sign in (`WebAuthn`).

use crate::Timestamp;

/// A passkey of a user. Its private key is in the user's authenticator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Passkey {
    /// The id of the credential in base64url.
    pub id: String,
    /// What its owner calls it: at first the browser in which it was created.
    pub name: String,
    /// What is needed to verify it, as JSON: its public key and its counter of signatures.
    pub record: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last used to sign in.
    pub used_at: Option<Timestamp>,
}
