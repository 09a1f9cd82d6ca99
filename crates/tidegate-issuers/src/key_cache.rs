//! Caches the keys of an issuer. The keys are loaded again after ten minutes. They are loaded
//! earlier if a token names an unknown key, or if it names no key and no cached key verifies it.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::fetch::Fetch;
use crate::key_set::{KeySet, SignatureCheck};
use crate::token::Token;
use crate::{FetchError, SignatureAlgorithm, TokenError};

/// The age at which cached keys are loaded again. Until the new keys have arrived, requests use the
/// cached keys.
const FRESH: Duration = Duration::from_mins(10);
/// The maximum age at which cached keys are still used if the issuer cannot be reached.
const USABLE: Duration = Duration::from_hours(24);
/// The minimum time between two requests for keys, so that callers with invented key ids cannot
/// cause many requests.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct KeyCache {
    fetch: Fetch,
    loaded: RwLock<Option<Loaded>>,
    attempt: Mutex<Option<Attempt>>,
    /// The error of the most recent request that has ended; `None` if it succeeded. It is not a
    /// part of `attempt`, so that it can be read while a request holds the lock of `attempt`.
    failure: RwLock<Option<FetchError>>,
}

#[derive(Clone, Debug)]
struct Loaded {
    keys: Arc<KeySet>,
    at: Instant,
}

/// The most recent request for the keys.
#[derive(Debug)]
struct Attempt {
    at: Instant,
    error: Option<FetchError>,
}

impl KeyCache {
    pub(crate) fn new(fetch: Fetch) -> Self {
        Self {
            fetch,
            loaded: RwLock::default(),
            attempt: Mutex::default(),
            failure: RwLock::default(),
        }
    }

    /// Verifies the signature of a token, and returns the key set that verified it.
    pub(crate) async fn verify(
        self: &Arc<Self>,
        token: &Token<'_>,
        algorithm: SignatureAlgorithm,
    ) -> Result<Arc<KeySet>, TokenError> {
        let check = |keys: &KeySet| {
            let id = token.header.kid.as_deref();
            keys.check(id, algorithm, token.signed, &token.signature)
        };
        if let Some(loaded) = self.usable() {
            match check(&loaded.keys) {
                SignatureCheck::Valid => {
                    self.refresh_if_stale(&loaded);
                    return Ok(loaded.keys);
                }
                SignatureCheck::Invalid if token.header.kid.is_some() => {
                    return Err(TokenError::Signature);
                }
                // The token names no key or an unknown key. It may be signed with a key that the
                // issuer added after the keys were loaded, so the keys are loaded again.
                SignatureCheck::Invalid | SignatureCheck::NoKey => {}
            }
        }
        let failure = self.refresh_in_task().await;
        let Some(loaded) = self.usable() else {
            return Err(failure.map_or(TokenError::UnknownKey, TokenError::Unavailable));
        };
        match check(&loaded.keys) {
            SignatureCheck::Valid => Ok(loaded.keys),
            SignatureCheck::Invalid => Err(TokenError::Signature),
            SignatureCheck::NoKey => Err(TokenError::UnknownKey),
        }
    }

    /// The error of the most recent request for the keys; `None` if it succeeded or if no request
    /// has ended yet.
    pub(crate) fn failure(&self) -> Option<FetchError> {
        let failure = self.failure.read().unwrap_or_else(PoisonError::into_inner);
        failure.clone()
    }

    /// Whether `keys` is still the current key set. A cached token is valid only with the key set
    /// that verified it. Starts to load the keys in a task if they are no longer fresh.
    pub(crate) fn are_current(self: &Arc<Self>, keys: &Arc<KeySet>) -> bool {
        let loaded = self.usable();
        loaded.is_some_and(|loaded| {
            self.refresh_if_stale(&loaded);
            Arc::ptr_eq(&loaded.keys, keys)
        })
    }

    fn usable(&self) -> Option<Loaded> {
        let loaded = self.loaded.read().unwrap_or_else(PoisonError::into_inner);
        loaded.clone().filter(|loaded| loaded.at.elapsed() < USABLE)
    }

    fn refresh_if_stale(self: &Arc<Self>, loaded: &Loaded) {
        // If another task holds the lock, the keys are being loaded.
        if loaded.at.elapsed() >= FRESH && self.attempt.try_lock().is_ok() {
            let cache = Arc::clone(self);
            tokio::spawn(async move {
                cache.refresh().await;
            });
        }
    }

    /// Loads the keys in a separate task. Without the task, a caller whose client disconnects would
    /// cancel the request for the keys, although other callers may wait for it.
    async fn refresh_in_task(self: &Arc<Self>) -> Option<FetchError> {
        let cache = Arc::clone(self);
        let task = tokio::spawn(async move { cache.refresh().await });
        task.await.unwrap_or_default()
    }

    /// Loads the keys, unless they were requested in the last ten seconds. Concurrent callers wait
    /// for the same request. Returns the error of the most recent request; `None` if it succeeded.
    async fn refresh(&self) -> Option<FetchError> {
        let mut attempt = self.attempt.lock().await;
        if let Some(last) = &*attempt
            && last.at.elapsed() < BETWEEN_REQUESTS
        {
            return last.error.clone();
        }
        // The attempt is recorded before the request, so that it delays the next request even if
        // the task ends early.
        *attempt = Some(Attempt {
            at: Instant::now(),
            error: None,
        });
        let result = self.fetch.keys().await;
        let error = result.as_ref().err().cloned();
        if let Some(attempt) = &mut *attempt {
            attempt.error.clone_from(&error);
        }
        let mut failure = self.failure.write().unwrap_or_else(PoisonError::into_inner);
        failure.clone_from(&error);
        drop(failure);
        match result {
            Ok(keys) => self.keep(keys),
            Err(error) => {
                let issuer = self.fetch.issuer();
                tracing::warn!(issuer, %error, "cannot load the keys of a token issuer");
            }
        }
        error
    }

    fn keep(&self, keys: KeySet) {
        let mut loaded = self.loaded.write().unwrap_or_else(PoisonError::into_inner);
        let (keys, at) = (Arc::new(keys), Instant::now());
        match &mut *loaded {
            // If the keys are unchanged, the cached key set is not replaced, so that cached tokens
            // remain valid.
            Some(loaded) if *loaded.keys == *keys => loaded.at = at,
            loaded => *loaded = Some(Loaded { keys, at }),
        }
    }
}
