//! The life of signing keys, shared by all nodes through the store.

use std::time::Duration;

use super::{KeyRing, KeyState, MasterKey, SigningKey, SigningKeyRecord};
use crate::{Error, Result, SecureRandom, Store, Timestamp};

/// What making keys needs.
pub(crate) struct Foundry<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) master: &'a MasterKey,
    pub(crate) random: &'a dyn SecureRandom,
}

/// Reads the keys and makes the active and the next one where they are missing. Of several nodes
/// that find them missing at once, the store lets one add its keys; the others take those.
pub(crate) async fn load(foundry: &Foundry<'_>, now: Timestamp) -> Result<Vec<SigningKeyRecord>> {
    let records = foundry.store.signing_keys().await?;
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
        let key = SigningKey::generate(state, foundry.master, foundry.random, now)?;
        foundry.store.insert_signing_key(&key).await?;
    }
    Ok(foundry.store.signing_keys().await?)
}

/// Lets the next key sign and makes another one next. False when another node was faster.
///
/// [`Error::KeyTooYoung`] when the next key has not been published for `notice` yet.
pub(crate) async fn rotate(
    store: &dyn Store,
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

/// Deletes the keys that have been retired for as long as the last token that they signed lives.
pub(crate) async fn remove_retired(
    store: &dyn Store,
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
