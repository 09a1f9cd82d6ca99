//! Consent that a user gave to a client, and that is remembered.

use tidegate_identity::Timestamp;

use crate::Scopes;

/// What a user allowed a client. While it covers what the client asks for, the user is not asked
/// again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// The client.
    pub client_id: String,
    /// The scopes.
    pub scopes: Scopes,
    /// When it was given, or last extended.
    pub given_at: Timestamp,
}
