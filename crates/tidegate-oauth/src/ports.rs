//! The ports that [`Issuer`](crate::Issuer) and [`ClientDirectory`](crate::ClientDirectory) share.

use std::fmt;
use std::sync::Arc;

use tidegate_identity::{
    AuditEvent, AuditKind, Clock, IdentityStore, PasswordHasher, SecureRandom,
};

use crate::IssuerStore;

/// Storage, time, randomness and password hashing.
#[derive(Clone)]
pub struct Ports {
    /// The store of all durable state.
    pub store: Arc<dyn IssuerStore>,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// The source of random bytes.
    pub random: Arc<dyn SecureRandom>,
    /// The thread pool that hashes passwords.
    pub hasher: Arc<PasswordHasher>,
}

impl Ports {
    /// The same ports for `tidegate-identity`.
    pub fn identity(&self) -> tidegate_identity::Ports {
        tidegate_identity::Ports {
            store: self.store.clone(),
            clock: self.clock.clone(),
            random: self.random.clone(),
            hasher: self.hasher.clone(),
        }
    }

    /// A new audit event with the current time.
    pub(crate) fn event(&self, kind: AuditKind, database: Option<&str>) -> AuditEvent {
        AuditEvent::new(self.clock.now(), kind, database)
    }

    pub(crate) async fn audit(&self, event: AuditEvent) {
        let store: &dyn IdentityStore = &*self.store;
        store.append_audit_or_log(&[event]).await;
    }
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports")
            .field("hasher", &self.hasher)
            .finish_non_exhaustive()
    }
}
