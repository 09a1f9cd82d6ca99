//! The ports shared by sign-in and by the management of users and external issuers.

use std::fmt;
use std::sync::Arc;

use crate::{AuditEvent, Clock, IdentityStore, PasswordHasher, SecureRandom};

/// Storage, time, randomness and password hashing.
#[derive(Clone)]
pub struct Ports {
    /// The store of all durable state.
    pub store: Arc<dyn IdentityStore>,
    /// The source of the current time.
    pub clock: Arc<dyn Clock>,
    /// The source of random bytes.
    pub random: Arc<dyn SecureRandom>,
    /// The thread pool that hashes passwords.
    pub hasher: Arc<PasswordHasher>,
}

impl Ports {
    pub(crate) async fn audit(&self, event: AuditEvent) {
        self.store.append_audit_or_log(&[event]).await;
    }
}

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ports")
            .field("hasher", &self.hasher)
            .finish_non_exhaustive()
    }
}
