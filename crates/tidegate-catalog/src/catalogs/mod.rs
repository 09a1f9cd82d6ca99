//! The cache of schemas. Schemas are loaded on first use, shared, and reloaded when a definition
//! changes.
//!
//! The modules here use no clock. The owner of the [`CatalogCache`] calls [`CatalogCache::tick`]
//! about twice a second, and then [`CatalogCache::watch`] for each database of
//! [`CatalogCache::watched`].

mod find;
mod group;
mod intern;
mod loaded;
mod role_groups;
mod tenant;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::RwLock;
use tidegate_sql::{DatabaseName, Executor, Login, QueryOptions};
use tracing::{info, warn};

use crate::error::{Error, Result};
use crate::load;
use crate::model::Schema;
use group::Validity;
use intern::Intern;
use tenant::{DatabaseState, DdlCount};

/// The number of ticks without use after which a database is no longer watched. The next request
/// for the database first compares the fingerprint.
const WATCH_TICKS: u64 = 75;
/// The number of ticks without use after which a schema is no longer reloaded in the background.
const RELOAD_TICKS: u64 = 150;
/// The largest number of schemas that one check of a database reloads in the background.
const MAX_RELOADS_PER_CHECK: usize = 8;
/// The number of ticks without use after which the cache drops a schema.
const RETENTION_TICKS: u64 = 1200;

/// Counts the statements of this node that may have changed a definition of a database. If the
/// count has changed, the cache compares its schemas with the database before the next request uses
/// them.
pub trait DdlCounter: Send + Sync {
    /// A number that grows after each statement of this node that may have changed a definition of
    /// the database. DDL statements count, and statements during which the database reported DDL.
    /// `visibility` decides whether other statements count too, because a function that they call
    /// may run DDL.
    fn count(&self, database: &DatabaseName, visibility: DdlVisibility) -> u64;
}

/// Whether a database reports the DDL that its functions and triggers run, as far as the cache
/// knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DdlVisibility {
    /// It is not known whether the database reports DDL, so any statement may have run DDL.
    #[default]
    Unknown,
    /// The database does not report DDL, so a statement that calls a function may have run DDL.
    Never,
    /// The database reports DDL.
    Always,
}

/// Schemas as one role sees them, sorted by name.
pub type Schemas = Arc<[Arc<Schema>]>;

/// A counter for a node that runs no DDL.
impl DdlCounter for () {
    fn count(&self, _: &DatabaseName, _: DdlVisibility) -> u64 {
        0
    }
}

/// The cache of the schemas of all databases, as their roles see them.
pub struct CatalogCache {
    executor: Arc<dyn Executor>,
    definitions: Arc<dyn DdlCounter>,
    tenants: RwLock<HashMap<DatabaseName, Arc<DatabaseState>>>,
    intern: Intern,
    now: AtomicU64,
}

/// The result of one check of a watched database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchOutcome {
    /// No change of a definition or a role was found, or no comparison was necessary.
    Same,
    /// A definition or a role changed. Stale schemas were reloaded, the most recently used first.
    /// If there were too many, the others are loaded when requests need them.
    Changed,
}

/// Defines which comparisons a check of a database makes, and when.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// The fingerprint is always compared, because changes that are not made through this node are
    /// not counted.
    Always,
    /// Only definitions are compared. The calling code compares the roles, once for the whole
    /// cluster.
    Definitions,
    /// The fingerprint is compared if a definition was counted since the last comparison began.
    IfCounted,
}

impl CatalogCache {
    /// A cache that loads schemas through `executor`, as [`tidegate_sql::Principal::Catalog`].
    pub fn new(executor: Arc<dyn Executor>, definitions: Arc<dyn DdlCounter>) -> Self {
        Self {
            executor,
            definitions,
            tenants: RwLock::default(),
            intern: Intern::default(),
            now: AtomicU64::new(0),
        }
    }

    /// A schema as the role sees it; `None` if the role may use no schema of that name.
    ///
    /// The returned schema is immutable: after a reload, the cache returns another value. Roles
    /// that see the same relations and columns share one value.
    ///
    /// # Errors
    ///
    /// If the schema is not cached and cannot be loaded. If a reload fails, the cached schema is
    /// returned.
    pub async fn schema(
        &self,
        login: &Login,
        name: &str,
        options: &QueryOptions,
    ) -> Result<Option<Arc<Schema>>> {
        // PostgreSQL has no empty names, and none with U+0000.
        if name.is_empty() || name.contains('\0') {
            return Ok(None);
        }
        let found = self.find(login, name, options).await?;
        Ok(found.first().cloned())
    }

    /// All schemas that the role may use, sorted by name.
    ///
    /// # Errors
    ///
    /// Those of [`CatalogCache::schema`].
    pub async fn schemas(&self, login: &Login, options: &QueryOptions) -> Result<Schemas> {
        self.find(login, "", options).await
    }

    /// Increments the tick counter, and drops databases, roles and schemas that were not used for a
    /// long time.
    pub fn tick(&self) {
        let now = self.now.fetch_add(1, Ordering::Relaxed) + 1;
        if now.is_multiple_of(WATCH_TICKS) {
            let mut tenants = self.tenants.write();
            tenants.retain(|_, tenant| tenant.remove_unused(now, RETENTION_TICKS));
            self.intern.forget_dropped();
        }
    }

    /// The databases that were used recently. The owner of the cache must watch them.
    pub fn watched(&self) -> Vec<DatabaseName> {
        let now = self.now();
        let tenants = self.tenants.read();
        let in_use = tenants
            .iter()
            .filter(|(_, tenant)| tenant.age(now) < WATCH_TICKS);
        in_use.map(|(database, _)| database.clone()).collect()
    }

    /// Compares the fingerprint of a database, and reloads those schemas in use that changed.
    ///
    /// # Errors
    ///
    /// If the comparison or a load fails. The cache then keeps its schemas.
    pub async fn watch(
        &self,
        database: &DatabaseName,
        options: &QueryOptions,
    ) -> Result<WatchOutcome> {
        self.reload(database, Comparison::Always, options).await
    }

    /// Does the same as [`CatalogCache::watch`], but does not compare the roles of the cluster.
    /// When roles may have changed, the calling function must compare them with [`load::roles`]. If
    /// roles were only added, it must call [`CatalogCache::roles_added`]. After any other change of
    /// roles, it must call [`CatalogCache::watch`] for each database.
    ///
    /// # Errors
    ///
    /// Those of [`CatalogCache::watch`].
    pub async fn watch_definitions(
        &self,
        database: &DatabaseName,
        options: &QueryOptions,
    ) -> Result<WatchOutcome> {
        self.reload(database, Comparison::Definitions, options)
            .await
    }

    /// Records that nothing has changed in a database and in the roles of the cluster since the
    /// last comparison began.
    pub fn unchanged(&self, database: &DatabaseName) {
        if let Some(tenant) = self.tenants.read().get(database) {
            tenant.unchanged(self.now());
        }
    }

    /// Does the same as [`CatalogCache::watch`], after [`DdlCounter`] counted a definition. Does
    /// not compare the fingerprint again if a request has compared it since the definition was
    /// counted, which is usual.
    ///
    /// # Errors
    ///
    /// Those of [`CatalogCache::watch`].
    pub async fn catch_up(
        &self,
        database: &DatabaseName,
        options: &QueryOptions,
    ) -> Result<WatchOutcome> {
        self.reload(database, Comparison::IfCounted, options).await
    }

    async fn reload(
        &self,
        database: &DatabaseName,
        comparison: Comparison,
        options: &QueryOptions,
    ) -> Result<WatchOutcome> {
        let Some(tenant) = self.tenants.read().get(database).cloned() else {
            return Ok(WatchOutcome::Same);
        };
        let outcome = self
            .watch_tenant(database, &tenant, comparison, options)
            .await;
        match &outcome {
            Err(Error::Sql(tidegate_sql::Error::NoDatabase)) => self.forget(database),
            Err(error) => log_failure(database, &tenant, error),
            Ok(_) => {
                if tenant.record_success() {
                    info!(%database, "catalog reloaded after a failure");
                }
            }
        }
        outcome
    }

    /// Sets whether a database in use reports the DDL that its functions and triggers run.
    pub fn set_visibility(&self, database: &DatabaseName, visibility: DdlVisibility) {
        if let Some(tenant) = self.tenants.read().get(database) {
            tenant.set_visibility(visibility);
        }
    }

    /// Records a change of roles since the previous comparison of the cluster's roles
    /// ([`load::roles`]). The change must affect only roles whose OID in `pg_roles` is higher than
    /// `after`, and memberships of these roles.
    pub fn roles_added(&self, after: u32) {
        for tenant in self.tenants.read().values() {
            tenant.roles_added(after);
        }
    }

    /// Removes a database that was dropped or renamed.
    pub fn forget(&self, database: &DatabaseName) {
        self.tenants.write().remove(database);
    }

    /// The databases whose last comparison or load failed. Their schemas may be stale.
    pub fn failing(&self) -> Vec<DatabaseName> {
        let tenants = self.tenants.read();
        let failing = tenants.iter().filter(|(_, tenant)| tenant.is_failing());
        failing.map(|(database, _)| database.clone()).collect()
    }

    async fn watch_tenant(
        &self,
        database: &DatabaseName,
        tenant: &DatabaseState,
        comparison: Comparison,
        options: &QueryOptions,
    ) -> Result<WatchOutcome> {
        let changed = self.compare(database, tenant, comparison, options).await?;
        self.query_keys(database, tenant, None, options).await?;
        let stale = tenant.stale(self.now(), RELOAD_TICKS);
        if stale.len() > MAX_RELOADS_PER_CHECK {
            // The remaining schemas are loaded when requests need them.
            tenant.require_current();
        }
        let mut loaded = Ok(());
        for (name, slot, group) in stale.into_iter().take(MAX_RELOADS_PER_CHECK) {
            let role = group.representative();
            let place = (&*name, &*group, &*slot);
            match self.load(tenant, (database, &role), place, options).await {
                Ok((_, Validity::Group)) => {}
                Ok((_, Validity::Role)) => {
                    tenant.invalidate_key(&role);
                    tenant.require_current();
                }
                Err(error) => loaded = loaded.and(Err(error)),
            }
        }
        loaded.map(|()| {
            if changed {
                WatchOutcome::Changed
            } else {
                WatchOutcome::Same
            }
        })
    }

    /// Compares the fingerprint of a database. Other tasks that compare the same database wait.
    /// Returns whether a definition, or a role that existed at the previous comparison, changed.
    /// Returns `false` for the first comparison, and if no comparison was necessary.
    async fn compare(
        &self,
        database: &DatabaseName,
        tenant: &DatabaseState,
        comparison: Comparison,
        options: &QueryOptions,
    ) -> Result<bool> {
        let before = tenant.comparisons();
        let _guard = tenant.comparison_lock.lock().await;
        // At least two comparisons ended while this task waited. The last of them began after this
        // call, so it saw all changes that were made before the call.
        if tenant.comparisons() > before + 1 {
            return Ok(false);
        }
        let count = self.counted(database, tenant);
        // A comparison is not necessary if no definition was counted since the previous comparison
        // began. `is_compared` is also true after a failed comparison, because requests are then
        // served from the cache. So `is_failing` is checked too.
        let is_done = !tenant.is_failing() && tenant.is_compared(count, self.now());
        if comparison == Comparison::IfCounted && is_done {
            return Ok(false);
        }
        let before = tenant.roles();
        let executor = &*self.executor;
        let found = match &before {
            Some(before) if comparison == Comparison::Definitions => {
                load::definitions(executor, database, before, options).await?
            }
            _ => load::fingerprint(executor, database, before.as_ref(), options).await?,
        };
        Ok(tenant.compared(found, count, self.now()))
    }

    fn counted(&self, database: &DatabaseName, tenant: &DatabaseState) -> DdlCount {
        let visibility = tenant.visibility();
        DdlCount {
            visibility,
            count: self.definitions.count(database, visibility),
        }
    }

    fn tenant(&self, database: &DatabaseName) -> Arc<DatabaseState> {
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

fn log_failure(database: &DatabaseName, tenant: &DatabaseState, error: &Error) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    if tenant.record_failure() {
        warn!(%database, %error, cause, "cannot load the catalog; keeping the previous one");
    }
}

/// Logs each relation whose GraphQL type has a numbered name, because another type already had the
/// name without the number. This is unusual, but no error.
fn log_renamed(database: &DatabaseName, schema: &Schema) {
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

impl fmt::Debug for CatalogCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CatalogCache")
            .field("databases", &self.tenants.read().len())
            .finish_non_exhaustive()
    }
}
