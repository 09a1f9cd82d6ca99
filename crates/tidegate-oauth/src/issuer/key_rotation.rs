//! Creation, rotation and deletion of signing keys, which all nodes share through the store.

use std::time::Duration;

use crate::key::{KeyRing, KeyState, SigningKey, SigningKeyRecord};
use crate::{Error, IssuerStore, Result};
use tidegate_identity::{MasterKey, SecureRandom, Timestamp};

/// The dependencies for generating a signing key.
pub(crate) struct KeyGenerator<'a> {
    pub(crate) store: &'a dyn IssuerStore,
    pub(crate) master: &'a MasterKey,
    pub(crate) random: &'a dyn SecureRandom,
}

/// Loads the signing keys, and generates the active and the next key if they are missing. If
/// several nodes generate keys at the same time, the store accepts one active and one next key, and
/// all nodes use these keys.
pub(crate) async fn load(
    generator: &KeyGenerator<'_>,
    now: Timestamp,
) -> Result<Vec<SigningKeyRecord>> {
    let records = generator.store.signing_keys().await?;
    let has = |name| records.iter().any(|record| record.state.name() == name);
    let wanted = [KeyState::Active { since: now }, KeyState::Next];
    let missing: Vec<_> = wanted
        .into_iter()
        .filter(|state| !has(state.name()))
        .collect();
    if missing.is_empty() {
        return Ok(records);
    }
    for state in missing {
        let key = SigningKey::generate(state, generator.master, generator.random, now)?;
        generator.store.insert_signing_key(&key).await?;
    }
    Ok(generator.store.signing_keys().await?)
}

/// Makes the next key active; `load` then generates a new next key. Returns `false` when another
/// node rotated first.
///
/// Errors: [`Error::KeyTooYoung`] when there is no next key, or when it was published less than
/// `notice` ago.
pub(crate) async fn rotate(
    store: &dyn IssuerStore,
    ring: &KeyRing,
    notice: Duration,
    now: Timestamp,
) -> Result<bool> {
    let Some(next) = ring.next().map(SigningKey::record) else {
        return Err(Error::KeyTooYoung { wait: notice });
    };
    let ready = next.created_at.plus(notice);
    if now < ready {
        return Err(Error::KeyTooYoung {
            wait: ready.since(now),
        });
    }
    Ok(store
        .promote_signing_key(&next.id, &ring.active().record().id, now)
        .await?)
}

/// Deletes keys that were retired so long ago that all tokens they signed have expired.
pub(crate) async fn remove_retired(
    store: &dyn IssuerStore,
    ring: &KeyRing,
    retirement: Duration,
    now: Timestamp,
) -> Result<()> {
    for key in ring.keys() {
        if let KeyState::Retired { since } = key.record().state
            && since.plus(retirement) <= now
        {
            store.delete_signing_key(&key.record().id).await?;
        }
    }
    Ok(())
}
