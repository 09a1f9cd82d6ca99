//! Which shared connections a tenant's users may use.
//!
//! Statements that Tidegate or the tenant's owner wrote run for the tenant's users on connections
//! that logged in as an *authenticator*: a role without rights that is a member of some hundred
//! users. The role is switched in the statement's own transaction by [`SWITCH`].
//!
//! On such a connection code that a statement reaches could become another user. So connections are
//! shared only in databases where no such code can come from a user, which `decide.sql` finds out.
//! The decision is kept in the database, as the table `tidegate_catalog.objections` being empty:
//! every definition and grant writes an objection in its own transaction, and the switch of the role
//! reads the table, so that no node acts on a decision that is older than a definition.

mod additions;
mod decide;
mod known;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};
use tidegate_sql::{DatabaseName, Executor, Result, RoleName};

use additions::Change;
use decide::Source;
use known::Place;

/// Switches the role of the transaction to its one parameter (text), unless there are objections to
/// shared connections; then it fails with [`REFUSED`].
pub(crate) const SWITCH: &str = "SELECT pg_catalog.set_config('role', CASE \
    WHEN EXISTS (SELECT FROM tidegate_catalog.objections) THEN '' \
    ELSE $1::pg_catalog.text END, true)";

/// `invalid_parameter_value`: the role does not exist, which is true of the empty name that
/// [`SWITCH`] asks for when it refuses, and of a user that was dropped.
pub(crate) const REFUSED: &str = "22023";

/// What a node knows of the authenticators of its tenants.
pub struct Authenticators {
    service: Arc<dyn Executor>,
    places: RwLock<HashMap<DatabaseName, Arc<Place>>>,
    /// What the roles of the cluster were like, by tenant, when they were last compared.
    roles: Mutex<Option<HashMap<String, String>>>,
    /// What is compared more often, and at less cost.
    seen: Mutex<Option<additions::RoleRows>>,
}

/// Whether the users of a database share connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The database.
    pub database: DatabaseName,
    /// Why they do not, the most important reason first; empty when they do.
    pub objections: Vec<Objection>,
}

/// Why users may not share connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objection {
    /// What is wrong.
    pub reason: String,
    /// The SQL that sets it right, as far as SQL does.
    pub remedy: String,
}

impl Authenticators {
    /// The statement that switches the role of a transaction on an authenticator's connection to its
    /// one parameter (text). It fails with [`Self::REFUSED`] while there are objections.
    pub const SWITCH: &str = SWITCH;
    /// The SQLSTATE with which [`Self::SWITCH`] refuses.
    pub const REFUSED: &str = REFUSED;

    /// `service` runs statements as the service, in the control database and in those of tenants.
    pub fn new(service: Arc<dyn Executor>) -> Self {
        Self {
            service,
            places: RwLock::default(),
            roles: Mutex::default(),
            seen: Mutex::default(),
        }
    }

    /// The authenticator on whose connections statements that Tidegate or the owner wrote may run
    /// as `role`; `None`: only on connections that logged in as the role.
    ///
    /// Asks the database when nothing is known of it; concurrent callers share the question.
    pub async fn of(&self, database: &DatabaseName, role: &RoleName) -> Option<RoleName> {
        let place = self.place(database);
        if let Some(known) = place.fresh() {
            return known.authenticator(role);
        }
        let known = place.settle(&self.source(database)).await;
        known.authenticator(role)
    }

    /// A definition or a grant of the database has changed through this node, or a role switch was
    /// refused: the next [`Self::of`] decides again before it answers.
    pub fn distrust(&self, database: &DatabaseName) {
        if let Some(place) = self.places.read().get(database) {
            place.distrust();
        }
    }

    /// Forgets a database that was dropped.
    pub fn forget(&self, database: &DatabaseName) {
        self.places.write().remove(database);
    }

    /// Compares what is known with the roles, memberships and settings of the cluster. To be called
    /// once a second. A plain new user costs a statement about that user; after any other change the
    /// tenants that it concerns are decided again.
    ///
    /// # Errors
    ///
    /// When the cluster cannot be asked; what is known stays.
    pub async fn refresh(&self) -> Result<()> {
        let places: Vec<_> = {
            let places = self.places.read();
            let pair = |(name, place): (&DatabaseName, &Arc<Place>)| (name.clone(), place.clone());
            places.iter().map(pair).collect()
        };
        if places.is_empty() {
            return Ok(());
        }
        let before = self.seen.lock().take();
        let (seen, change) = additions::additions(&*self.service, before.as_ref()).await?;
        match change {
            Change::Nothing => self.add(&places, &HashMap::new()).await,
            Change::Users(users) => self.add(&places, &users).await,
            Change::Other => self.compare(&places).await?,
        }
        // After an error everything is compared the next time.
        *self.seen.lock() = Some(seen);
        Ok(())
    }

    /// Adds plain users, by tenant.
    async fn add(
        &self,
        places: &[(DatabaseName, Arc<Place>)],
        users: &HashMap<String, Vec<String>>,
    ) {
        for (database, place) in places {
            let tenant = tenant(database);
            if place.is_outdated() {
                place.renew(&self.source(database)).await;
            } else if let Some(users) = users.get(tenant) {
                place.add(&self.source(database), users).await;
            }
        }
    }

    /// Decides again where roles, memberships or settings have changed.
    async fn compare(&self, places: &[(DatabaseName, Arc<Place>)]) -> Result<()> {
        let roles = decide::roles(&*self.service).await?;
        let before = self.roles.lock().take();
        for (database, place) in places {
            let same = |before: &HashMap<_, _>| {
                ["", tenant(database)]
                    .iter()
                    .all(|part| before.get(*part) == roles.get(*part))
            };
            if place.is_outdated() || !before.as_ref().is_some_and(same) {
                // What is known goes on to count meanwhile: only a definition could make it unsafe,
                // and that writes an objection.
                place.renew(&self.source(database)).await;
            }
        }
        *self.roles.lock() = Some(roles);
        Ok(())
    }

    /// What was decided last about the databases in use.
    pub fn decisions(&self) -> Vec<Decision> {
        let places = self.places.read();
        let decision = |(database, place): (&DatabaseName, &Arc<Place>)| {
            let known = place.known()?;
            Some(Decision {
                database: database.clone(),
                objections: known.objections.clone(),
            })
        };
        places.iter().filter_map(decision).collect()
    }

    fn place(&self, database: &DatabaseName) -> Arc<Place> {
        if let Some(place) = self.places.read().get(database) {
            return place.clone();
        }
        let mut places = self.places.write();
        places.entry(database.clone()).or_default().clone()
    }

    fn source<'a>(&'a self, database: &'a DatabaseName) -> Source<'a> {
        Source {
            service: &*self.service,
            database,
        }
    }
}

/// The name before the slash of its roles.
fn tenant(database: &DatabaseName) -> &str {
    database.as_str().split('/').next().unwrap_or_default()
}

impl fmt::Debug for Authenticators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticators").finish_non_exhaustive()
    }
}
