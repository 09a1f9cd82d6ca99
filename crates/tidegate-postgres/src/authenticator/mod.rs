//! Decides which shared connections a tenant's users may use.
//!
//! SQL that Tidegate or the tenant's owner wrote runs for the tenant's users on connections that
//! logged in as an *authenticator*: a role without privileges that is a member of the roles of many
//! users. The authenticator switches to the user's role in the statement's own transaction
//! ([`SWITCH`]).
//!
//! Code that a statement calls on such a connection, such as a trigger, could switch to another
//! user. Therefore connections are shared only in databases where no user can place such code,
//! which `decide.sql` checks. The decision is stored in the database: connections may be shared
//! while the table `tidegate_catalog.objections` is empty. A definition or grant that may make
//! sharing unsafe inserts an objection in its own transaction, and the role switch reads the table.
//! Therefore no node acts on a decision that is older than such a definition or grant.

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

/// Switches the role of the transaction to the role in `$1` (text). Fails with [`REFUSED`] if there
/// are objections to shared connections.
pub(crate) const SWITCH: &str = "SELECT pg_catalog.set_config('role', CASE \
    WHEN EXISTS (SELECT FROM tidegate_catalog.objections) THEN '' \
    ELSE $1::pg_catalog.text END, true)";

/// The SQLSTATE `invalid_parameter_value`. PostgreSQL reports it if a transaction switches to a
/// role that does not exist. If there are objections, [`SWITCH`] switches to a role with an empty
/// name, which does not exist. The switch to the role of a dropped user fails with the same
/// SQLSTATE.
pub(crate) const REFUSED: &str = "22023";

/// Decides for each tenant which users have an authenticator, and caches the decisions.
pub struct Authenticators {
    service: Arc<dyn Executor>,
    tenants: RwLock<HashMap<DatabaseName, Arc<TenantState>>>,
    /// For each tenant's name, the fingerprint of the tenant's roles at the most recent comparison.
    /// `None` if the fingerprints have to be read.
    roles: Mutex<Option<HashMap<String, String>>>,
    /// The rows about roles that were read most recently; `None` before the first comparison and
    /// after a failed comparison. Comparing these rows costs less than comparing `roles`.
    role_rows: Mutex<Option<role_changes::RoleRows>>,
}

/// A tenant whose decision has been requested.
struct KnownTenant {
    database: DatabaseName,
    state: Arc<TenantState>,
    /// Whether a request has needed the decision since the previous call of
    /// [`Authenticators::known_tenants`].
    used: bool,
}

/// Whether the users of a database share connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The database.
    pub database: DatabaseName,
    /// The reasons for which some or all users do not share connections, the most important first;
    /// empty if all users share them.
    pub objections: Vec<Objection>,
}

/// A reason why the users of a database may not share connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// The condition that makes shared connections unsafe, as a sentence.
    pub reason: String,
    /// The SQL that removes the objection; empty if no SQL is known.
    pub remedy: String,
}

impl Authenticators {
    /// The statement that switches the transaction on an authenticator's connection to the role in
    /// `$1` (text). Fails with [`Self::REFUSED`] while there are objections.
    pub const SWITCH: &str = SWITCH;
    /// The SQLSTATE with which [`Self::SWITCH`] fails.
    pub const REFUSED: &str = REFUSED;

    /// `service` runs the statements of the service itself, in the control database and in tenants'
    /// databases.
    pub fn new(service: Arc<dyn Executor>) -> Self {
        Self {
            service,
            tenants: RwLock::default(),
            roles: Mutex::default(),
            role_rows: Mutex::default(),
        }
    }

    /// The authenticator whose connections may run statements of Tidegate and of the owner for
    /// `role`; `None` if these statements need a connection that logged in as `role`.
    ///
    /// Queries the database if no valid decision is cached. Concurrent calls share one query.
    pub async fn of(&self, database: &DatabaseName, role: &RoleName) -> Option<RoleName> {
        let state = self.state(database);
        state.note_use();
        if let Some(cached) = state.fresh() {
            return cached.authenticator(role);
        }
        let cached = state.decide_if_stale(&self.query(database)).await;
        cached.authenticator(role)
    }

    /// Invalidates the decision, because a definition or grant may have changed or a role switch
    /// was refused. The next [`Self::of`] renews the old decision if it allowed shared connections
    /// and no objection is stored. Otherwise it makes a new decision.
    pub fn invalidate(&self, database: &DatabaseName) {
        if let Some(state) = self.tenants.read().get(database) {
            state.invalidate();
        }
    }

    /// Records that PostgreSQL refuses the login of an authenticator, although the decision lets
    /// users use it. [`Self::decisions`] reports the refusal.
    pub fn login_refused(&self, database: &DatabaseName, authenticator: &RoleName) {
        let state = self.tenants.read().get(database).cloned();
        if let Some(cached) = state.and_then(|state| state.cached()) {
            cached.note_refused_login(authenticator);
        }
    }

    /// Removes the state of a database that was dropped.
    pub fn forget(&self, database: &DatabaseName) {
        self.tenants.write().remove(database);
    }

    /// Reads which roles, memberships and settings of the cluster have changed, and updates the
    /// cached decisions. Call this function within a second after roles have changed.
    ///
    /// If only plain users were added, that is, users without further attributes and memberships,
    /// reads only these users. After any other change, compares the roles of all tenants. For each
    /// tenant whose roles have changed, makes a new decision if a request has used the old one
    /// since the previous call of this function or of [`Self::decide_outdated`]. For the other
    /// tenants with changed roles, lets the next request decide, because a thousand decisions here
    /// would delay the check of logins, which runs next.
    ///
    /// # Errors
    ///
    /// If the cluster cannot be queried. The cached decisions then do not change, and the next call
    /// compares all roles.
    pub async fn refresh(&self) -> Result<()> {
        let tenants = self.known_tenants();
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
        // After an error this line is not reached, so the next call compares everything.
        *self.role_rows.lock() = Some(role_rows);
        Ok(())
    }

    /// Makes new decisions for tenants whose decision is outdated, without reading the roles of the
    /// cluster. Call this function every second.
    pub async fn decide_outdated(&self) {
        self.add(&self.known_tenants(), &HashMap::new()).await;
    }

    fn known_tenants(&self) -> Vec<KnownTenant> {
        let tenants = self.tenants.read();
        let known = |(name, state): (&DatabaseName, &Arc<TenantState>)| KnownTenant {
            database: name.clone(),
            state: state.clone(),
            used: state.take_used(),
        };
        tenants.iter().map(known).collect()
    }

    /// Makes new decisions for tenants whose decision is outdated. Adds the new plain users in
    /// `users` (OIDs of roles, by tenant) to the cached decisions of the other tenants.
    async fn add(&self, tenants: &[KnownTenant], users: &HashMap<String, Vec<String>>) {
        for KnownTenant {
            database, state, ..
        } in tenants
        {
            let tenant = tenant(database);
            if state.is_outdated() {
                state.decide_now(&self.query(database)).await;
            } else if let Some(users) = users.get(tenant) {
                state.add(&self.query(database), users).await;
            }
        }
    }

    /// Makes new decisions for tenants whose roles, memberships or settings have changed, or whose
    /// decision is outdated. If no request has used the old decision, only marks it as expired.
    async fn compare(&self, tenants: &[KnownTenant]) -> Result<()> {
        let roles = decide::roles(&*self.service).await?;
        let before = self.roles.lock().take();
        for KnownTenant {
            database,
            state,
            used,
        } in tenants
        {
            let same = |before: &HashMap<_, _>| {
                ["", tenant(database)]
                    .iter()
                    .all(|part| before.get(*part) == roles.get(*part))
            };
            if !state.is_outdated() && before.as_ref().is_some_and(same) {
                continue;
            }
            if *used {
                // The cached decision stays valid until the new one is made. Only a DDL statement
                // could make shared connections unsafe, and such a statement inserts an objection.
                // While an objection is stored, no shared connection can switch to the role of a
                // user.
                state.decide_now(&self.query(database)).await;
            } else {
                state.expire();
            }
        }
        *self.roles.lock() = Some(roles);
        Ok(())
    }

    /// The most recent decision about each database in use.
    pub fn decisions(&self) -> Vec<Decision> {
        let tenants = self.tenants.read();
        let decision = |(database, state): (&DatabaseName, &Arc<TenantState>)| {
            let cached = state.cached()?;
            Some(Decision {
                database: database.clone(),
                objections: cached.reasons(),
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

/// The tenant's name, which is the prefix of the names of its roles.
fn tenant(database: &DatabaseName) -> &str {
    database.as_str().split('/').next().unwrap_or_default()
}

impl fmt::Debug for Authenticators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticators").finish_non_exhaustive()
    }
}
