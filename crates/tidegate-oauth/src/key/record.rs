//! A signing key as a store keeps it.

use crate::Timestamp;

/// An EC P-256 key pair for ES256 (RFC 7518, section 3.4). The private half is sealed by the
/// master key: who reads the store cannot sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningKeyRecord {
    /// The `kid` of the tokens that it signs and of its entry in the key set.
    pub id: String,
    /// Where it is in its life.
    pub state: KeyState,
    /// The public point, uncompressed: 65 bytes, the first is 4 (SEC 1, section 2.3.3).
    pub public_key: Vec<u8>,
    /// The private key, sealed; opaque to a store.
    pub sealed_private_key: Vec<u8>,
    /// When it was made, and so when it was first published.
    pub created_at: Timestamp,
}

/// The life of a signing key. It only moves down this list; after `Retired` the record is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyState {
    /// Published in the key set, so that everyone knows it before it signs anything.
    Next,
    /// Signs.
    Active {
        /// Since when.
        since: Timestamp,
    },
    /// Signs no more; published until the last token that it signed has expired.
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
