//! A signing key as stored.

use tidegate_identity::Timestamp;

/// An EC P-256 key pair for ES256 (RFC 7518, section 3.4). The private key is encrypted by the
/// master key, so read access to the store does not allow signing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeyRecord {
    /// The `kid` in tokens and in the key set.
    pub id: String,
    /// The state.
    pub state: KeyState,
    /// The public point, uncompressed: 65 bytes, the first is 4 (SEC 1, section 2.3.3).
    pub public_key: Vec<u8>,
    /// The private key, encrypted; opaque to a store.
    pub sealed_private_key: Vec<u8>,
    /// When it was created and first published.
    pub created_at: Timestamp,
}

/// The states of a signing key, in order. After `Retired` the record is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// Published, but does not sign yet, so that resource servers know it in time.
    Next,
    /// Signs new tokens.
    Active {
        /// Since when.
        since: Timestamp,
    },
    /// No longer signs; published until the last token that it signed has expired.
    Retired {
        /// Since when.
        since: Timestamp,
    },
}

impl KeyState {
    /// The name in a store: `next`, `active` or `retired`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Active { .. } => "active",
            Self::Retired { .. } => "retired",
        }
    }
}
