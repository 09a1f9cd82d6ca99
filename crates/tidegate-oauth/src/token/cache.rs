//! Two caches, with which tokens are verified without I/O. The cache of verified tokens replaces
//! the signature check of a request by a lookup. The other cache holds the ended sessions.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use ring::digest;
use tidegate_identity::{SessionId, Timestamp};

use super::Claims;
use crate::settings::DENYLIST_OVERLAP;
use crate::{EndedSession, Lifetimes};

/// The claims of verified tokens, by the SHA-256 of the token.
///
/// The hash covers the claims and the signature, so a token with the same signature but other
/// claims is not found. The text of a token is several times as long as its hash, and is a
/// credential, so it is not stored. Only verified tokens are inserted, so callers cannot fill the
/// cache with invalid tokens. Two generations bound the size: when the young generation is full, it
/// replaces the old generation.
#[derive(Debug)]
pub(crate) struct TokenCache {
    generations: RwLock<Generations>,
    /// The maximum number of tokens of one generation.
    half: usize,
}

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<TokenHash, Arc<Claims>>,
    old: HashMap<TokenHash, Arc<Claims>>,
}

/// The SHA-256 of a whole token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TokenHash([u8; 32]);

impl TokenHash {
    pub(crate) fn of(token: &str) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest::digest(&digest::SHA256, token.as_bytes()).as_ref());
        Self(hash)
    }
}

impl TokenCache {
    /// A cache for at most `capacity` tokens.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            generations: RwLock::default(),
            half: capacity.div_ceil(2).max(1),
        }
    }

    /// The claims of a token that was verified before. A token found in the old generation is added
    /// to the young generation.
    pub(crate) fn get(&self, token: &TokenHash) -> Option<Arc<Claims>> {
        let generations = self
            .generations
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = generations.young.get(token) {
            return Some(Arc::clone(claims));
        }
        let claims = Arc::clone(generations.old.get(token)?);
        drop(generations);
        self.insert(*token, &claims);
        Some(claims)
    }

    /// Adds a verified token.
    pub(crate) fn insert(&self, token: TokenHash, claims: &Arc<Claims>) {
        let mut generations = self
            .generations
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if generations.young.len() >= self.half && !generations.young.contains_key(&token) {
            generations.old = std::mem::take(&mut generations.young);
        }
        generations.young.insert(token, Arc::clone(claims));
    }

    /// Clears the cache. Must be called after a key was deleted.
    pub(crate) fn clear(&self) {
        *self
            .generations
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Generations::default();
    }
}

/// The ended sessions whose access tokens may not have expired yet.
#[derive(Debug, Default)]
pub(crate) struct Denylist {
    ended: RwLock<HashMap<SessionId, Timestamp>>,
    /// When the most recent refresh began; `None` before the first refresh.
    last_read: Mutex<Option<Timestamp>>,
}

impl Denylist {
    /// Whether the session with this id has ended.
    pub(crate) fn contains(&self, id: SessionId) -> bool {
        self.ended
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(&id)
    }

    /// Adds a session that was ended on this node.
    pub(crate) fn add(&self, id: SessionId, at: Timestamp) {
        self.ended
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, at);
    }

    /// The start of the period that the next refresh reads: it must read all sessions that ended at
    /// this time or later.
    pub(crate) fn since(&self, lifetimes: &Lifetimes, now: Timestamp) -> Timestamp {
        let last_read = *self
            .last_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let oldest = now.minus(lifetimes.denial());
        last_read.map_or(oldest, |last_read| {
            last_read.minus(DENYLIST_OVERLAP).max(oldest)
        })
    }

    /// Adds the ended sessions in `found`, the result of a refresh that began at `now`. Removes
    /// sessions whose access tokens have expired.
    pub(crate) fn merge(&self, found: &[EndedSession], lifetimes: &Lifetimes, now: Timestamp) {
        let oldest = now.minus(lifetimes.denial());
        let mut ended = self.ended.write().unwrap_or_else(PoisonError::into_inner);
        ended.retain(|_, at| *at >= oldest);
        ended.extend(
            found
                .iter()
                .filter(|end| end.at >= oldest)
                .map(|end| (end.id, end.at)),
        );
        drop(ended);
        *self
            .last_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(user: &str) -> Arc<Claims> {
        Arc::new(Claims {
            session: SessionId::from_bytes([0; 16]),
            client_id: String::new(),
            database: String::new(),
            user: user.to_owned(),
            subject: String::new(),
            member: None,
            owner: false,
            shared: false,
            scopes: crate::Scopes::default(),
            actor: None,
            properties: None,
            email: None,
            issued_at: Timestamp::default(),
            expires_at: Timestamp::default(),
        })
    }

    #[test]
    fn a_cached_signature_with_other_claims_is_no_hit() {
        let cache = TokenCache::new(8);
        cache.insert(TokenHash::of("header.payload.signature"), &claims("a"));
        let found = |token| cache.get(&TokenHash::of(token));
        assert_eq!(found("header.payload.signature").unwrap().user, "a");
        assert_eq!(found("header.forged.signature"), None);
    }

    #[test]
    fn the_cache_stays_within_its_capacity_and_keeps_used_entries() {
        let cache = TokenCache::new(8);
        for number in 0..100 {
            let token = number.to_string();
            cache.insert(TokenHash::of(&token), &claims(&token));
            assert!(
                cache.get(&TokenHash::of("0")).is_some(),
                "token 0 is used all the time"
            );
        }
        let generations = cache.generations.read().unwrap();
        assert!(generations.young.len() + generations.old.len() <= 8);
    }

    #[test]
    fn the_tokens_of_ten_thousand_users_stay_cached() {
        let settings = crate::Settings::new("https://example.com").unwrap();
        let cache = TokenCache::new(settings.token_cache);
        let tokens: Vec<_> = (0..10_000).map(|number| number.to_string()).collect();
        for token in &tokens {
            cache.insert(TokenHash::of(token), &claims(token));
        }
        let mut found = tokens.iter().map(|token| cache.get(&TokenHash::of(token)));
        assert!(found.all(|claims| claims.is_some()));
    }
}
