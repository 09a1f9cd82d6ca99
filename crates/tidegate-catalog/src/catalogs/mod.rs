//! The schemas that a node works with: loaded when they are first asked for, shared, and replaced
//! when what they were made of has changed.
//!
//! Nothing here waits for a clock. Who owns the [`Catalogs`] calls [`Catalogs::tick`] about twice a
//! second and then [`Catalogs::watch`] for each database of [`Catalogs::watched`].

mod find;
mod group;
mod intern;
mod loaded;
mod members;
mod slot;
mod tenant;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use tidegate_sql::{DatabaseName, Executor, Login, Terms};
use tracing::{info, warn};

use crate::error::{Error, Result};
use crate::load;
use crate::model::Schema;
use intern::Intern;
use slot::Sight;
use tenant::{Counted, Tenant};

/// A database that nobody asked about for so many ticks is not watched any more: who comes next
/// lets it be compared first.
const WATCHED: u64 = 60;
/// A schema that nobody asked for in so many ticks is not loaded again behind the scenes.
const WARM: u64 = 150;
/// The most schemas that are reloaded at a time before a request needs them.
const AHEAD: usize = 8;
/// A schema that nobody asked for in so many ticks is dropped.
const KEPT: u64 = 1200;

/// Knows which definitions went through this node, so that the next request sees them.
pub trait Definitions: Send + Sync {
    /// A number that grows whenever a statement that may have changed a definition of the database
    /// has run through this node: by its kind, because the database told so, and as far as that
    /// does not tell, also one that may have called something that does.
    fn count(&self, database: &DatabaseName, telling: Telling) -> u64;
}

/// Whether a database tells of what functions and triggers define in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Telling {
    /// It may or may not: any statement may have defined something.
    #[default]
    Unknown,
    /// It does not: who calls a function may have defined something.
    Never,
    /// It does.
    Always,
}

/// Schemas of one role, ordered by name.
pub type Schemas = Arc<[Arc<Schema>]>;

/// No definitions go through this node.
impl Definitions for () {
    fn count(&self, _: &DatabaseName, _: Telling) -> u64 {
        0
    }
}

/// The schemas of all databases, as their roles see them.
pub struct Catalogs {
    executor: Arc<dyn Executor>,
    definitions: Arc<dyn Definitions>,
    tenants: RwLock<HashMap<DatabaseName, Arc<Tenant>>>,
    intern: Intern,
    now: AtomicU64,
}

/// What watching a database found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Nothing has changed.
    Same,
    /// Something had changed, and what is in use was loaded again.
    Changed,
}

/// When a database is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// In any case: something may have changed that is not counted.
    Always,
    /// If a definition was counted since the last comparison began.
    IfCounted,
}

impl Catalogs {
    /// Loads by the executor, as [`tidegate_sql::Principal::Catalog`].
    pub fn new(executor: Arc<dyn Executor>, definitions: Arc<dyn Definitions>) -> Self {
        Self {
            executor,
            definitions,
            tenants: RwLock::default(),
            intern: Intern::default(),
            now: AtomicU64::new(0),
        }
    }

    /// A schema as the role sees it; `None` when there is none of that name that it may use.
    ///
    /// Whoever holds the answer keeps working on it while a newer one replaces it. Roles that see
    /// the same share it, and so do versions that differ in nothing.
    ///
    /// # Errors
    ///
    /// When it is not there yet and cannot be loaded. Once it was loaded, a failure only means that
    /// the old one is kept.
    pub async fn schema(
        &self,
        login: &Login,
        name: &str,
        terms: &Terms,
    ) -> Result<Option<Arc<Schema>>> {
        // PostgreSQL has no empty names, and none with U+0000.
        if name.is_empty() || name.contains('\0') {
            return Ok(None);
        }
        let found = self.find(login, name, terms).await?;
        Ok(found.first().cloned())
    }

    /// All schemas that the role may use, ordered by name.
    ///
    /// # Errors
    ///
    /// Those of [`Catalogs::schema`].
    pub async fn schemas(&self, login: &Login, terms: &Terms) -> Result<Schemas> {
        self.find(login, "", terms).await
    }

    /// Time passes: ages are counted in ticks. Forgets what nobody has asked for in a long time.
    pub fn tick(&self) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        if now.is_multiple_of(WATCHED) {
            let mut tenants = self.tenants.write();
            tenants.retain(|_, tenant| tenant.forget_old(now, KEPT));
            self.intern.forget_dropped();
        }
    }

    /// The databases that somebody asked about lately.
    pub fn watched(&self) -> Vec<DatabaseName> {
        let now = self.now();
        let tenants = self.tenants.read();
        let in_use = tenants
            .iter()
            .filter(|(_, tenant)| tenant.age(now) < WATCHED);
        in_use.map(|(database, _)| database.clone()).collect()
    }

    /// Compares a database and loads again what has changed of the schemas in use.
    ///
    /// # Errors
    ///
    /// When it cannot be compared or loaded; what was there is kept.
    pub async fn watch(&self, database: &DatabaseName, terms: &Terms) -> Result<Watched> {
        self.reload(database, Comparison::Always, terms).await
    }

    /// The same after a change that [`Definitions`] has counted: a request that came in between has
    /// usually compared the database already, and then it is not compared again.
    ///
    /// # Errors
    ///
    /// Those of [`Catalogs::watch`].
    pub async fn catch_up(&self, database: &DatabaseName, terms: &Terms) -> Result<Watched> {
        self.reload(database, Comparison::IfCounted, terms).await
    }

    async fn reload(
        &self,
        database: &DatabaseName,
        comparison: Comparison,
        terms: &Terms,
    ) -> Result<Watched> {
        let Some(tenant) = self.tenants.read().get(database).cloned() else {
            return Ok(Watched::Same);
        };
        let outcome = self
            .watch_tenant((database, &tenant), comparison, terms)
            .await;
        match &outcome {
            Err(Error::Sql(tidegate_sql::Error::NoDatabase)) => self.forget(database),
            Err(error) => tell_failure(database, &tenant, error),
            Ok(_) => {
                if tenant.succeed() {
                    info!(%database, "catalog reloaded after a failure");
                }
            }
        }
        outcome
    }

    /// It is known now, or known better, whether a database in use tells.
    pub fn rely(&self, database: &DatabaseName, telling: Telling) {
        if let Some(tenant) = self.tenants.read().get(database) {
            tenant.rely(telling);
        }
    }

    /// Only roles with a higher number than `after` (`pg_roles.oid`), and their memberships, have
    /// changed in the cluster since roles were last compared ([`load::roles`]).
    pub fn roles_added(&self, after: u32) {
        for tenant in self.tenants.read().values() {
            tenant.roles_added(after);
        }
    }

    /// Forgets a database that is dropped or renamed.
    pub fn forget(&self, database: &DatabaseName) {
        self.tenants.write().remove(database);
    }

    /// The databases of which an older version is kept because the newer one cannot be loaded.
    pub fn failing(&self) -> Vec<DatabaseName> {
        let tenants = self.tenants.read();
        let failing = tenants.iter().filter(|(_, tenant)| tenant.is_failing());
        failing.map(|(database, _)| database.clone()).collect()
    }

    async fn watch_tenant(
        &self,
        (database, tenant): (&DatabaseName, &Tenant),
        comparison: Comparison,
        terms: &Terms,
    ) -> Result<Watched> {
        let changed = self.compare((database, tenant), comparison, terms).await?;
        self.ask_keys(database, tenant, None, terms).await?;
        let stale = tenant.stale(self.now(), WARM);
        if stale.len() > AHEAD {
            // Each of the others is loaded when it is asked for.
            tenant.require();
        }
        let mut loaded = Ok(());
        for (name, slot, group) in stale.into_iter().take(AHEAD) {
            let role = group.example();
            let place = (&*name, &*group, &*slot);
            match self.load(tenant, (database, &role), place, terms).await {
                Ok((_, Sight::Group)) => {}
                Ok((_, Sight::Role)) => {
                    tenant.doubt(&role);
                    tenant.require();
                }
                Err(error) => loaded = loaded.and(Err(error)),
            }
        }
        loaded.map(|()| {
            if changed {
                Watched::Changed
            } else {
                Watched::Same
            }
        })
    }

    /// Compares the fingerprint, one at a time for each database. Returns whether it has changed,
    /// `false` where another task has compared it.
    async fn compare(
        &self,
        (database, tenant): (&DatabaseName, &Tenant),
        comparison: Comparison,
        terms: &Terms,
    ) -> Result<bool> {
        let before = tenant.comparisons();
        let _turn = tenant.comparing.lock().await;
        // The second comparison that ended while we waited has begun after we came.
        if tenant.comparisons() > before + 1 {
            return Ok(false);
        }
        let count = self.counted(database, tenant);
        // So has one that began when no fewer definitions had been counted than by now.
        // A failed one counts as made for requests, which are answered from what is cached.
        let is_done = !tenant.is_failing() && tenant.is_compared(count, self.now());
        if comparison == Comparison::IfCounted && is_done {
            return Ok(false);
        }
        let before = tenant.roles();
        let found = load::fingerprint(&*self.executor, database, before.as_ref(), terms).await?;
        Ok(tenant.compared(found, count, self.now()))
    }

    fn counted(&self, database: &DatabaseName, tenant: &Tenant) -> Counted {
        let telling = tenant.telling();
        Counted {
            telling,
            count: self.definitions.count(database, telling),
        }
    }

    fn tenant(&self, database: &DatabaseName) -> Arc<Tenant> {
        if let Some(tenant) = self.tenants.read().get(database) {
            return Arc::clone(tenant);
        }
        let mut tenants = self.tenants.write();
        Arc::clone(tenants.entry(database.clone()).or_default())
    }

    fn now(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }
}

fn tell_failure(database: &DatabaseName, tenant: &Tenant, error: &Error) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    if tenant.fail() {
        warn!(%database, %error, cause, "cannot load the catalog; keeping the previous one");
    }
}

/// One odd table never breaks a schema, but somebody should know.
fn tell_renamed(database: &DatabaseName, schema: &Schema) {
    for renamed in schema.renamed() {
        warn!(
            %database,
            schema = schema.name(),
            relation = &*renamed.relation,
            taken = &*renamed.taken,
            type_name = &*renamed.type_name,
            "GraphQL type name already taken; using a numbered name"
        );
    }
}

impl fmt::Debug for Catalogs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Catalogs")
            .field("databases", &self.tenants.read().len())
            .finish_non_exhaustive()
    }
}
