//! Which shared connections a tenant's users may use.
//!
//! Statements that Tidegate or the tenant's owner wrote run for the tenant's users on connections
//! that logged in as an *authenticator*: a role without rights that is a member of some hundred
//! users. The role is switched in the statement's own transaction by [`SWITCH`].

use std::fmt;
use std::sync::Arc;

use tidegate_sql::{DatabaseName, Executor, Result, RoleName};

/// Switches the role of the transaction to its one parameter (text), provided that the database
/// still trusts its shared connections; else it fails with [`REFUSED`].
pub(crate) const SWITCH: &str = "SELECT pg_catalog.set_config('role', CASE \
    WHEN (SELECT t.trusted FROM tidegate_catalog.trust t) \
    AND NOT EXISTS (SELECT FROM tidegate_catalog.pending) \
    THEN $1::pg_catalog.text ELSE '' END, true)";

/// `invalid_parameter_value`: the role does not exist, which is true of the empty name that
/// [`SWITCH`] asks for when it refuses, and of a user that was dropped.
pub(crate) const REFUSED: &str = "22023";

// The executor uses both.
const _: [&str; 2] = [SWITCH, REFUSED];

/// What a node knows of the authenticators of its tenants.
pub struct Authenticators {
    service: Arc<dyn Executor>,
}

impl Authenticators {
    /// `service` runs statements as the service, in the control database and in those of tenants.
    pub fn new(service: Arc<dyn Executor>) -> Self {
        Self { service }
    }

    /// The authenticator on whose connections statements that Tidegate or the owner wrote may run
    /// as `role`; `None`: only on connections that logged in as the role.
    ///
    /// Asks the database when nothing is known of it; concurrent callers share the question.
    #[expect(clippy::unused_async, reason = "the interface; the inside follows")]
    pub async fn of(&self, database: &DatabaseName, role: &RoleName) -> Option<RoleName> {
        let _ = (database, role, &self.service);
        None
    }

    /// A definition or a grant of the database has changed through this node, or a role switch was
    /// refused: the next [`Self::of`] decides again before it answers.
    pub fn distrust(&self, database: &DatabaseName) {
        let _ = database;
    }

    /// Forgets a database that was dropped.
    pub fn forget(&self, database: &DatabaseName) {
        let _ = database;
    }

    /// Compares what is known with the roles, memberships and settings of the cluster. To be called
    /// once a second.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be asked; what is known stays.
    #[expect(clippy::unused_async, reason = "the interface; the inside follows")]
    pub async fn refresh(&self) -> Result<()> {
        Ok(())
    }
}

impl fmt::Debug for Authenticators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticators").finish_non_exhaustive()
    }
}
