//! The stored consent of a user to a client.

use tidegate_identity::Timestamp;

use crate::Scopes;

/// The consent of a user to a client. The user is not asked again for scopes that the consent
/// covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consent {
    /// The id of the client.
    pub client_id: String,
    /// The scopes that the user consented to.
    pub scopes: Scopes,
    /// When the consent was given, or most recently extended to more scopes.
    pub given_at: Timestamp,
}
