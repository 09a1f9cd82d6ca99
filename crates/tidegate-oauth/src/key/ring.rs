//! The signing keys of a node, as of its last refresh.

use super::{KeyState, SigningKey, SigningKeyRecord};
use crate::{Error, Result};
use tidegate_identity::MasterKey;

/// The active key, the next key, and retired keys.
#[derive(Debug)]
pub(crate) struct KeyRing {
    active: SigningKey,
    others: Vec<SigningKey>,
}

impl KeyRing {
    /// Decrypts the stored keys. `None` when no key is active yet; [`IdentityError::DamagedSecret`]
    /// when a key cannot be decrypted.
    pub(crate) fn open(records: Vec<SigningKeyRecord>, master: &MasterKey) -> Result<Option<Self>> {
        let mut active = None;
        let mut others = Vec::new();
        for record in records {
            let key = SigningKey::open(record, master)?;
            match key.record().state {
                KeyState::Active { .. } => active = Some(key),
                KeyState::Next | KeyState::Retired { .. } => others.push(key),
            }
        }
        Ok(active.map(|active| Self { active, others }))
    }

    /// The key that signs new tokens.
    pub(crate) fn active(&self) -> &SigningKey {
        &self.active
    }

    /// The key that becomes active at the next rotation; `None` if it is not created yet.
    pub(crate) fn next(&self) -> Option<&SigningKey> {
        self.others
            .iter()
            .find(|key| key.record().state == KeyState::Next)
    }

    /// All keys, the active one first.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &SigningKey> {
        std::iter::once(&self.active).chain(&self.others)
    }

    /// The key whose access tokens have this header segment. The comparison is exact, so a header
    /// with another algorithm, type, key or member never matches and is never parsed.
    pub(crate) fn with_header(&self, header: &str) -> Option<&SigningKey> {
        self.keys().find(|key| key.header() == header)
    }

    /// The key whose ID tokens have this header segment, compared exactly.
    pub(crate) fn with_id_token_header(&self, header: &str) -> Option<&SigningKey> {
        self.keys().find(|key| key.id_token_header() == header)
    }

    /// Whether the ring holds the keys of `records`, in the same states.
    pub(crate) fn equals(&self, records: &[SigningKeyRecord]) -> bool {
        records.len() == self.others.len() + 1
            && records
                .iter()
                .all(|record| self.keys().any(|key| key.record() == record))
    }

    /// The JWK set of all keys (RFC 7517, section 5).
    pub(crate) fn document(&self) -> Result<String> {
        let keys = self
            .keys()
            .map(SigningKey::jwk)
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(format!(r#"{{"keys":[{}]}}"#, keys.join(",")))
    }
}
