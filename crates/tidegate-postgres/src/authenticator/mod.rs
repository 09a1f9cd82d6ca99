//! Decides which shared connections a tenant's users may use.
//!
//! Text of Tidegate and of the tenant's owner runs for the tenant's users on connections that
//! logged in as an *authenticator*: a role without privileges that is a member of some hundred
//! users. It switches to the user's role in the statement's own transaction ([`SWITCH`]).
//!
//! Code that a statement reaches on such a connection could switch to another user. Therefore
//! connections are shared only in databases where no user can place such code, which `decide.sql`
//! checks. The decision is stored in the database: connections may be shared while the table
//! `tidegate_catalog.objections` is empty. Every definition and grant inserts an objection in its
//! own transaction, and the role switch reads the table, so no node uses a decision that is older
//! than a definition.

mod decide;
mod role_changes;
mod tenant_state;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tidegate_sql::{DatabaseName, Executor, Result, RoleName};

use decide::DecisionQuery;
use role_changes::RoleChange;
use tenant_state::TenantState;

/// Switches the role of the transaction to its only parameter (text). Fails with [`REFUSED`] if
/// there are objections to shared connections.
pub(crate) const SWITCH: &str = "SELECT pg_catalog.set_config('role', CASE \
    WHEN EXISTS (SELECT FROM tidegate_catalog.objections) THEN '' \
    ELSE $1::pg_catalog.text END, true)";

/// `invalid_parameter_value`: the role does not exist. That holds for the empty name to which
/// [`SWITCH`] switches in order to fail, and for a user that was dropped.
pub(crate) const REFUSED: &str = "22023";

/// Decides for all tenants which users have an authenticator, and caches the decisions.
pub struct Authenticators {
    service: Arc<dyn Executor>,
    tenants: RwLock<HashMap<DatabaseName, Arc<TenantState>>>,
    /// The fingerprints of the cluster's roles, by tenant, at the last comparison.
    roles: Mutex<Option<HashMap<String, String>>>,
    /// Recent changes of roles, which are cheaper to compare.
    role_rows: Mutex<Option<role_changes::RoleRows>>,
}

/// Whether the users of a database share connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The database.
    pub database: DatabaseName,
    /// The objections, the most important one first; empty if connections are shared.
    pub objections: Vec<Objection>,
}

/// Why users may not share connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// What is wrong.
    pub reason: String,
    /// The SQL that removes the objection, if SQL can.
    pub remedy: String,
}

impl Authenticators {
    /// The statement that switches the transaction on an authenticator's connection to the role in
    /// its only parameter (text). Fails with [`Self::REFUSED`] while there are objections.
    pub const SWITCH: &str = SWITCH;
    /// The SQLSTATE with which [`Self::SWITCH`] refuses.
    pub const REFUSED: &str = REFUSED;

    /// `service` runs statements as the service, in the control database and in tenants' databases.
    pub fn new(service: Arc<dyn Executor>) -> Self {
        Self {
            service,
            tenants: RwLock::default(),
            roles: Mutex::default(),
            role_rows: Mutex::default(),
        }
    }

    /// The authenticator on which statements of Tidegate and of the owner may run as `role`; `None`
    /// if they need a connection that logged in as the role.
    ///
    /// Queries the database if there is no valid decision; concurrent callers share the query.
    pub async fn of(&self, database: &DatabaseName, role: &RoleName) -> Option<RoleName> {
        let state = self.state(database);
        if let Some(cached) = state.fresh() {
            return cached.authenticator(role);
        }
        let cached = state.decide_if_stale(&self.query(database)).await;
        cached.authenticator(role)
    }

    /// Invalidates the decision, because a definition or grant changed on this node or a role
    /// switch was refused. The next [`Self::of`] decides again.
    pub fn invalidate(&self, database: &DatabaseName) {
        if let Some(state) = self.tenants.read().get(database) {
            state.invalidate();
        }
    }

    /// Forgets a database that was dropped.
    pub fn forget(&self, database: &DatabaseName) {
        self.tenants.write().remove(database);
    }

    /// Compares the decisions with the roles, memberships and settings of the cluster. Call it once
    /// a second. A plain new user costs one statement about that user. After any other change the
    /// tenants affected are decided again.
    ///
    /// # Errors
    ///
    /// If the cluster cannot be queried. The cached decisions stay.
    pub async fn refresh(&self) -> Result<()> {
        let tenants: Vec<_> = {
            let tenants = self.tenants.read();
            let pair =
                |(name, state): (&DatabaseName, &Arc<TenantState>)| (name.clone(), state.clone());
            tenants.iter().map(pair).collect()
        };
        if tenants.is_empty() {
            return Ok(());
        }
        let before = self.role_rows.lock().take();
        let (role_rows, change) =
            role_changes::role_changes(&*self.service, before.as_ref()).await?;
        match change {
            RoleChange::Nothing => self.add(&tenants, &HashMap::new()).await,
            RoleChange::Users(users) => self.add(&tenants, &users).await,
            RoleChange::Unknown => self.compare(&tenants).await?,
        }
        // Not reached after an error, so that everything is compared the next time.
        *self.role_rows.lock() = Some(role_rows);
        Ok(())
    }

    /// Adds plain users, by tenant.
    async fn add(
        &self,
        tenants: &[(DatabaseName, Arc<TenantState>)],
        users: &HashMap<String, Vec<String>>,
    ) {
        for (database, state) in tenants {
            let tenant = tenant(database);
            if state.is_outdated() {
                state.decide_now(&self.query(database)).await;
            } else if let Some(users) = users.get(tenant) {
                state.add(&self.query(database), users).await;
            }
        }
    }

    /// Decides again for tenants whose roles, memberships or settings have changed.
    async fn compare(&self, tenants: &[(DatabaseName, Arc<TenantState>)]) -> Result<()> {
        let roles = decide::roles(&*self.service).await?;
        let before = self.roles.lock().take();
        for (database, state) in tenants {
            let same = |before: &HashMap<_, _>| {
                ["", tenant(database)]
                    .iter()
                    .all(|part| before.get(*part) == roles.get(*part))
            };
            if state.is_outdated() || !before.as_ref().is_some_and(same) {
                // The cached decision stays valid in the meantime. Only a definition could make it
                // unsafe, and that inserts an objection.
                state.decide_now(&self.query(database)).await;
            }
        }
        *self.roles.lock() = Some(roles);
        Ok(())
    }

    /// The last decisions about the databases in use.
    pub fn decisions(&self) -> Vec<Decision> {
        let tenants = self.tenants.read();
        let decision = |(database, state): (&DatabaseName, &Arc<TenantState>)| {
            let cached = state.cached()?;
            Some(Decision {
                database: database.clone(),
                objections: cached.objections.clone(),
            })
        };
        tenants.iter().filter_map(decision).collect()
    }

    fn state(&self, database: &DatabaseName) -> Arc<TenantState> {
        if let Some(state) = self.tenants.read().get(database) {
            return state.clone();
        }
        let mut tenants = self.tenants.write();
        tenants.entry(database.clone()).or_default().clone()
    }

    fn query<'a>(&'a self, database: &'a DatabaseName) -> DecisionQuery<'a> {
        DecisionQuery {
            service: &*self.service,
            database,
        }
    }
}

/// The tenant's name in the names of its roles.
fn tenant(database: &DatabaseName) -> &str {
    database.as_str().split('/').next().unwrap_or_default()
}

impl fmt::Debug for Authenticators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticators").finish_non_exhaustive()
    }
}
