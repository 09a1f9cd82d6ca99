//! Personal access tokens. A token is `tgp_` and 43 characters of base64url. The characters encode
//! 24 random bytes and the first 8 bytes of the HMAC-SHA256 of the random bytes. Secret scanners
//! find a token by the prefix. Because of the HMAC, invented tokens are refused without a query of
//! the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use subtle::ConstantTimeEq as _;
use tidegate_identity::{MasterKey, Secret, SecretHash, SecureRandom, Timestamp};

use super::Claims;
use crate::Result;

const PREFIX: &str = "tgp_";
const RANDOM: usize = 24;
const TAG: usize = 8;

/// How long the claims of a valid token are cached. If the token's session ends, the denylist
/// refuses the token although its claims are cached. A change of the user that does not end the
/// session may take effect only after this time.
const VALID: Duration = Duration::from_secs(30);
/// How long the cache records that a token is invalid.
const INVALID: Duration = Duration::from_secs(5);
/// The maximum number of cached tokens.
const CAPACITY: usize = 16_384;

/// Generates and recognises personal access tokens, and caches the results of lookups in the store.
pub(crate) struct PersonalTokens {
    key: hmac::Key,
    known: Mutex<HashMap<SecretHash, Known>>,
}

/// The result of a lookup, and the time until which it is cached. `claims` is `None` for a token
/// that is not valid.
#[derive(Clone)]
struct Known {
    claims: Option<Arc<Claims>>,
    until: Timestamp,
}

impl PersonalTokens {
    pub(crate) fn new(master: &MasterKey) -> Self {
        let key = master.derive("personal access token");
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key.as_slice()),
            known: Mutex::default(),
        }
    }

    /// Whether a token has the prefix of a personal access token. The token need not be valid.
    pub(crate) fn is_personal(token: &str) -> bool {
        token.starts_with(PREFIX)
    }

    pub(crate) fn generate(&self, random: &dyn SecureRandom) -> Result<Secret> {
        let secret: [u8; RANDOM] = random.bytes()?;
        let tag = hmac::sign(&self.key, &secret);
        let mut bytes = secret.to_vec();
        bytes.extend_from_slice(&tag.as_ref()[..TAG]);
        Ok(Secret::new(format!(
            "{PREFIX}{}",
            URL_SAFE_NO_PAD.encode(bytes)
        )))
    }

    /// The hash of a token that was generated with this master key; `None` for any other text.
    pub(crate) fn hash(&self, token: &str) -> Option<SecretHash> {
        let mut bytes = [0; RANDOM + TAG];
        let encoded = token.strip_prefix(PREFIX)?;
        let length = URL_SAFE_NO_PAD.decode_slice(encoded, &mut bytes).ok()?;
        let (secret, tag) = bytes.split_at(RANDOM);
        let expected = hmac::sign(&self.key, secret);
        let genuine: bool = expected.as_ref()[..TAG].ct_eq(tag).into();
        (length == bytes.len() && genuine).then(|| SecretHash::of(&Secret::new(token)))
    }

    /// The cached result for a token: its claims if it is valid, `Some(None)` if it is invalid,
    /// `None` if no result is cached.
    #[expect(
        clippy::option_option,
        reason = "the outer one is the cache's, the inner one the store's"
    )]
    pub(crate) fn cached(&self, hash: &SecretHash, now: Timestamp) -> Option<Option<Arc<Claims>>> {
        let known = self.lock();
        let entry = known.get(hash).filter(|entry| now < entry.until)?;
        Some(entry.claims.clone())
    }

    /// Caches the result of a lookup.
    pub(crate) fn keep(&self, hash: SecretHash, claims: Option<Arc<Claims>>, now: Timestamp) {
        let until = now.plus(if claims.is_some() { VALID } else { INVALID });
        let mut known = self.lock();
        if known.len() >= CAPACITY {
            known.retain(|_, entry| now < entry.until);
        }
        if known.len() >= CAPACITY {
            known.clear();
        }
        known.insert(hash, Known { claims, until });
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SecretHash, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_identity::SystemRandom;

    #[test]
    fn only_a_generated_token_has_a_hash() {
        let random: &dyn SecureRandom = &SystemRandom::new();
        let tokens = PersonalTokens::new(&MasterKey::generate(random).unwrap());
        let token = tokens.generate(random).unwrap();
        let text = token.expose();
        assert_eq!(text.len(), PREFIX.len() + 43);
        assert_eq!(tokens.hash(text), Some(SecretHash::of(&token)));
        let invented = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode([7; RANDOM + TAG]));
        let other = PersonalTokens::new(&MasterKey::generate(random).unwrap());
        assert_eq!(other.hash(text), None);
        for text in [
            &*invented,
            PREFIX,
            &text[..text.len() - 4],
            &text[PREFIX.len()..],
        ] {
            assert_eq!(tokens.hash(text), None, "{text}");
        }
    }

    #[test]
    fn the_cache_stays_within_its_capacity() {
        let random: &dyn SecureRandom = &SystemRandom::new();
        let tokens = PersonalTokens::new(&MasterKey::generate(random).unwrap());
        let now = Timestamp::from_seconds(1_800_000_000);
        for number in 0..=CAPACITY {
            let hash = SecretHash::of(&Secret::new(number.to_string()));
            tokens.keep(hash, None, now);
            assert_eq!(tokens.cached(&hash, now), Some(None));
            assert_eq!(tokens.cached(&hash, now.plus(INVALID)), None);
        }
        assert!(tokens.lock().len() <= CAPACITY);
    }
}
