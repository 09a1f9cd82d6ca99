//! A signing key as stored.

use tidegate_identity::Timestamp;

/// An EC P-256 key pair for ES256 (RFC 7518, section 3.4). The private key is encrypted with a key
/// derived from the master key, so read access to the store does not allow signing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeyRecord {
    /// The `kid` in tokens and in the key set.
    pub id: String,
    /// Whether the key is the next, the active or a retired signing key.
    pub state: KeyState,
    /// The public point, uncompressed: 65 bytes, the first is 4 (SEC 1, section 2.3.3).
    pub public_key: Vec<u8>,
    /// The private key, encrypted; opaque to a store.
    pub sealed_private_key: Vec<u8>,
    /// When the key was created and first published.
    pub created_at: Timestamp,
}

/// The states of a signing key, in order. After `Retired` the record is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// The key does not sign yet. It is already published, so that resource servers have loaded it
    /// before it signs.
    Next,
    /// The key signs new tokens.
    Active {
        /// When the key became active.
        since: Timestamp,
    },
    /// The key no longer signs. It is published until all tokens that it signed have expired.
    Retired {
        /// When the key was retired.
        since: Timestamp,
    },
}

impl KeyState {
    /// The name of the state in a store: `next`, `active` or `retired`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Active { .. } => "active",
            Self::Retired { .. } => "retired",
        }
    }
}
