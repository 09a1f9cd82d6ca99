//! The ports that the issuer, the identity of users and the directory share.

use std::fmt;
use std::sync::Arc;

use crate::{AuditEvent, Clock, PasswordHasher, SecureRandom, Store};

/// The storage, time, randomness and password hashing that an [`Issuer`](crate::Issuer) and a
/// [`Directory`](crate::Directory) use.
#[derive(Clone)]
pub struct Ports {
    /// Durable state.
    pub store: Arc<dyn Store>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub random: Arc<dyn SecureRandom>,
    /// The thread pool that hashes passwords.
    pub hasher: Arc<PasswordHasher>,
}

impl Ports {
    /// Writes an event to the audit log. A failure is logged and not returned: the request itself
    /// has succeeded already.
    pub(crate) async fn audit(&self, event: AuditEvent) {
        self.audit_all(&[event]).await;
    }

    /// Like [`audit`](Self::audit), for several events.
    pub(crate) async fn audit_all(&self, events: &[AuditEvent]) {
        if let Err(error) = self.store.append_audit(events).await {
            tracing::warn!(%error, events = events.len(), "audit events could not be written");
        }
    }
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports")
            .field("hasher", &self.hasher)
            .finish_non_exhaustive()
    }
}
