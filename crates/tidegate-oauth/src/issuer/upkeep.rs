//! What a node does from time to time: looks at what others did, changes keys, tidies up.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::Issuer;
use crate::key::{self, Foundry, KeyRing, KeyState};
use crate::{AuditKind, Error, PurgeBefore, Result};

/// How long ended and expired sessions are kept, for questions that come late.
const SESSION_KEPT: Duration = Duration::from_hours(24);
/// How long a guest's session stays that nobody refreshes where there are very many of them.
const GUEST_IDLE: Duration = Duration::from_hours(24);

impl Issuer {
    /// Reads which sessions were ended, on whatever node. To be called at least every 5 seconds and
    /// on every notice; costs one small query.
    pub async fn refresh_denylist(&self) -> Result<()> {
        let now = self.ports.clock.now();
        let lifetimes = &self.settings.lifetimes;
        let since = self.denylist.since(lifetimes, now);
        let found = self.ports.store.ended_sessions(since).await?;
        self.denylist.merge(&found, lifetimes, now);
        Ok(())
    }

    /// Reads the signing keys, makes what is missing. To be called every minute or so, more often
    /// than `key_notice` in any case, and on every notice.
    pub async fn refresh_keys(&self) -> Result<()> {
        let foundry = Foundry {
            store: &*self.ports.store,
            master: &self.master,
            random: &*self.ports.random,
        };
        let records = key::load(&foundry, self.ports.clock.now()).await?;
        let known = self.ring();
        if known.is_of(&records) {
            return Ok(());
        }
        let gone = known
            .keys()
            .any(|key| records.iter().all(|r| r.id != key.record().id));
        let ring = KeyRing::open(records, &self.master)?.ok_or(Error::DamagedKey)?;
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(ring);
        if gone {
            self.cache.clear();
        }
        Ok(())
    }

    /// Lets the next key sign from now on and publishes another next one. Tokens of the old key are
    /// accepted until they expire; no request fails, on no node.
    ///
    /// [`Error::KeyTooYoung`] when the next key has not been published for `key_notice`.
    pub async fn rotate_keys(&self) -> Result<()> {
        self.rotate(self.settings.lifetimes.key_notice).await
    }

    /// For a key that got out: the next key signs at once, and what the old one signed is refused,
    /// here from now on and on other nodes after their next [`refresh_keys`](Self::refresh_keys).
    /// Clients go on with their refresh tokens. Whoever checks our tokens with a cached key set may
    /// refuse new ones until the cache is refreshed.
    pub async fn replace_key(&self) -> Result<()> {
        let old = self.ring().active().record().id.clone();
        self.rotate(Duration::ZERO).await?;
        self.ports.store.delete_signing_key(&old).await?;
        self.refresh_keys().await
    }

    async fn rotate(&self, notice: Duration) -> Result<()> {
        self.refresh_keys().await?;
        let now = self.ports.clock.now();
        let rotated = key::rotate(&*self.ports.store, &self.ring(), notice, now).await?;
        if rotated {
            self.ports
                .audit(self.event(AuditKind::KeyRotated, None))
                .await;
        }
        self.refresh_keys().await
    }

    /// Changes the key when it is due, deletes retired keys, and takes away what nobody needs any
    /// more. To be called every hour or so, by one node or by all.
    pub async fn maintain(&self) -> Result<()> {
        self.refresh_keys().await?;
        let lifetimes = self.settings.lifetimes;
        let now = self.ports.clock.now();
        let ring = self.ring();
        if let KeyState::Active { since } = ring.active().record().state
            && since.plus(lifetimes.key_active) <= now
        {
            match self.rotate_keys().await {
                // The next key is young: another hour will do.
                Ok(()) | Err(Error::KeyTooYoung { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // A node that has not seen the change yet signs with the old key until its next look.
        let retirement = lifetimes.denial() + lifetimes.key_notice;
        key::remove_retired(&*self.ports.store, &ring, retirement, now).await?;
        let before = PurgeBefore {
            sessions: now.minus(SESSION_KEPT.max(lifetimes.denial())),
            attempts: now,
            audit: now.minus(lifetimes.audit),
        };
        self.ports.store.purge(before).await?;
        let idle = now.minus(GUEST_IDLE.max(lifetimes.denial()));
        let kept = self.settings.limits.guest_sessions;
        self.ports.store.purge_guests(idle, kept).await?;
        // A code that comes again after a day is told nothing but that it is dead.
        let flows = now.minus(SESSION_KEPT);
        self.ports.store.purge_flows(flows).await?;
        self.refresh_keys().await
    }
}
