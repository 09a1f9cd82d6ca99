//! The secrets that are derived from the master secret: passwords of login roles, keys of claims.

use std::fmt;
use std::sync::Arc;

use tidegate_postgres::{ClaimsKey, role_password, scram_verifier, verifies};

/// Derives the passwords of login roles and the keys of claims from the master secret, and creates
/// the verifiers of passwords.
#[derive(Clone)]
pub struct RolePasswords {
    secret: [u8; 32],
    salt: Arc<dyn Fn() -> [u8; 16] + Send + Sync>,
}

impl RolePasswords {
    /// Derives passwords from `secret`, the master secret. `salt` returns random bytes.
    pub fn new(secret: [u8; 32], salt: impl Fn() -> [u8; 16] + Send + Sync + 'static) -> Self {
        Self {
            secret,
            salt: Arc::new(salt),
        }
    }

    /// The password of the role with this name.
    pub fn password(&self, role: &str) -> String {
        role_password(&self.secret, role, GENERATION)
    }

    /// The key that seals the claims of members in a database.
    pub fn claims_key(&self, database: &str, generation: i32) -> ClaimsKey {
        ClaimsKey::derive(&self.secret, database, generation)
    }

    /// Whether a verifier was made from the derived password of a role.
    pub(super) fn verifies(&self, role: &str, verifier: &str) -> bool {
        verifies(verifier, &self.password(role))
    }

    pub(super) fn random_number(&self) -> u32 {
        let [a, b, c, d, ..] = (self.salt)();
        u32::from_be_bytes([a, b, c, d])
    }

    /// A SCRAM verifier for the password of a role, with a random salt.
    pub(super) fn verifier(&self, role: &str) -> String {
        scram_verifier(&self.password(role), &(self.salt)())
    }
}

impl fmt::Debug for RolePasswords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RolePasswords([redacted])")
    }
}

/// The generation of role passwords. It must not change: with another generation, other passwords
/// would be derived, and all logins would fail.
const GENERATION: u32 = 1;
