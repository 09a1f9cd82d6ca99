//! Periodic tasks of a node: refresh of caches, key rotation, deletion of old rows.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::Issuer;
use super::key_rotation::{self, KeyGenerator};
use crate::key::{KeyRing, KeyState};
use crate::{Error, PurgeBefore, Result};
use tidegate_identity::{AuditKind, Error as IdentityError};

/// How long the rows of ended and expired sessions are stored, so that late requests about these
/// sessions still find them.
const SESSION_KEPT: Duration = Duration::from_hours(24);
/// How long an idle guest session is stored if a tenant has too many guest sessions.
const GUEST_IDLE: Duration = Duration::from_hours(24);

impl Issuer {
    /// Loads the sessions that were ended on any node. Must be called at least every 5 seconds, and
    /// whenever the store notifies this node of ended sessions; it costs one small query.
    pub async fn refresh_denylist(&self) -> Result<()> {
        let now = self.ports.clock.now();
        let lifetimes = &self.settings.lifetimes;
        let since = self.denylist.since(lifetimes, now);
        let found = self.ports.store.ended_sessions(since).await?;
        self.denylist.merge(&found, lifetimes, now);
        Ok(())
    }

    /// Creates the active and the next signing key if they are missing, and loads all signing keys.
    /// Must be called about every minute, and whenever the store notifies this node of changed
    /// keys. The interval between two calls must be shorter than
    /// [`Lifetimes::key_notice`](crate::Lifetimes).
    pub async fn refresh_keys(&self) -> Result<()> {
        let generator = KeyGenerator {
            store: &*self.ports.store,
            master: &self.master,
            random: &*self.ports.random,
        };
        let records = key_rotation::load(&generator, self.ports.clock.now()).await?;
        let known = self.ring();
        if known.equals(&records) {
            return Ok(());
        }
        let gone = known
            .keys()
            .any(|key| records.iter().all(|r| r.id != key.record().id));
        let ring = KeyRing::open(records, &self.master)?.ok_or(IdentityError::DamagedSecret)?;
        *self.ring.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(ring);
        if gone {
            self.cache.clear();
        }
        Ok(())
    }

    /// Makes the next key active and publishes a new next key. Tokens of the old key stay valid
    /// until they expire.
    ///
    /// Errors: [`Error::KeyTooYoung`] when the next key was published less than `key_notice` ago.
    pub async fn rotate_keys(&self) -> Result<()> {
        self.rotate(self.settings.lifetimes.key_notice).await
    }

    /// Replaces a compromised signing key. The next key becomes active immediately. Tokens of the
    /// old key are refused: on this node immediately, on other nodes after their next
    /// [`refresh_keys`](Self::refresh_keys). Clients continue with their refresh tokens. Resource
    /// servers with a cached key set may refuse new tokens until they reload it.
    pub async fn replace_key(&self) -> Result<()> {
        let old = self.ring().active().record().id.clone();
        self.rotate(Duration::ZERO).await?;
        self.ports.store.delete_signing_key(&old).await?;
        self.refresh_keys().await
    }

    async fn rotate(&self, notice: Duration) -> Result<()> {
        self.refresh_keys().await?;
        let now = self.ports.clock.now();
        let rotated = key_rotation::rotate(&*self.ports.store, &self.ring(), notice, now).await?;
        if rotated {
            self.ports
                .audit(self.ports.event(AuditKind::KeyRotated, None))
                .await;
        }
        self.refresh_keys().await
    }

    /// Rotates the signing key when it has been active for `key_active`, and deletes retired keys
    /// and expired rows. Must be called about every hour, on one node or on all.
    pub async fn maintain(&self) -> Result<()> {
        self.refresh_keys().await?;
        let lifetimes = self.settings.lifetimes;
        let now = self.ports.clock.now();
        let ring = self.ring();
        if let KeyState::Active { since } = ring.active().record().state
            && since.plus(lifetimes.key_active) <= now
        {
            match self.rotate_keys().await {
                // If the next key was published too recently, a later run of `maintain` rotates.
                Ok(()) | Err(Error::KeyTooYoung { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        // A node signs with the old key until its first refresh after the rotation. So a retired
        // key is stored for longer than the lifetime of a token.
        let retirement = lifetimes.denial() + lifetimes.key_notice;
        key_rotation::remove_retired(&*self.ports.store, &ring, retirement, now).await?;
        let before = PurgeBefore {
            sessions: now.minus(SESSION_KEPT.max(lifetimes.denial())),
            attempts: now,
            audit: now.minus(lifetimes.audit),
            // Used codes are stored for a day. As long as a used code is stored, presenting it
            // again ends the session that it opened.
            flows: now.minus(SESSION_KEPT),
        };
        self.ports.store.purge(before).await?;
        let idle = now.minus(GUEST_IDLE.max(lifetimes.denial()));
        let kept = self.settings.limits.guest_sessions;
        self.ports.store.purge_guests(idle, kept).await?;
        self.refresh_keys().await
    }
}
