//! Finds the schemas that a role sees.
//!
//! Roles with the same privileges form a [`RoleGroup`]. A schema that was loaded for one role of a
//! group is valid for all its roles. A request queries PostgreSQL if its schema or role is used for
//! the first time, or if a definition or the privileges of its role have changed. Each group loads
//! a changed schema once.

use std::sync::Arc;

use tidegate_sql::{DatabaseName, Login, QueryOptions, RoleName};

use super::group::{FoundSchemas, RoleGroup, SchemaSlot, Validity};
use super::loaded::Loaded;
use super::tenant::DatabaseState;
use super::{CatalogCache, Comparison, RELOAD_TICKS, Schemas, log_failure, log_renamed};
use crate::error::Result;
use crate::load;

/// The largest number of roles whose keys one query reads. PostgreSQL needs about 20 µs for each
/// role, and 1 ms for the query itself.
const MAX_ROLES_PER_QUERY: usize = 200;
/// The maximum number of times that a request loads a schema. It loads the schema again if the
/// privileges of its role changed during the load.
const ATTEMPTS: usize = 3;

impl CatalogCache {
    /// Finds the schema `name` as the role sees it, or all schemas if `name` is empty. The result
    /// is empty if the role does not exist or may not use the schema.
    pub(super) async fn find(
        &self,
        login: &Login,
        name: &str,
        options: &QueryOptions,
    ) -> Result<Schemas> {
        let database = &login.database;
        let tenant = self.tenant(database);
        let now = self.now();
        tenant.touch(now);
        let count = self.counted(database, &tenant);
        if !tenant.is_compared(count, now)
            && let Err(error) = self
                .compare(database, &tenant, Comparison::IfCounted, options)
                .await
        {
            if tenant.last_loaded(&login.role, name).is_none() {
                return Err(error);
            }
            log_failure(database, &tenant, &error);
            tenant.skip_comparison(count, now);
        }
        let mut last = Vec::new().into();
        for _ in 0..ATTEMPTS {
            let Some(group) = self.group(&tenant, login, options).await? else {
                return Ok(Vec::new().into());
            };
            let slot = group.slot(name);
            slot.touch(now);
            if let Some(schemas) = slot.current(tenant.required()) {
                return Ok(schemas);
            }
            let place = (name, &*group, &*slot);
            match self
                .load(&tenant, (database, &login.role), place, options)
                .await
            {
                Ok((schemas, Validity::Group)) => {
                    if schemas.is_empty() {
                        group.remove(name, &slot);
                    }
                    return Ok(schemas);
                }
                Ok((schemas, Validity::Role)) => {
                    tenant.invalidate_key(&login.role);
                    last = schemas;
                }
                Err(error) => {
                    let Some(old) = tenant.last_loaded(&login.role, name) else {
                        group.remove(name, &slot);
                        return Err(error);
                    };
                    log_failure(database, &tenant, &error);
                    tenant.allow_stale();
                    return Ok(old);
                }
            }
        }
        Ok(last)
    }

    /// The cache group of a role, which contains all roles with the same cache key. `None` if the
    /// role does not exist. Queries the role's cache key if the key is unknown or stale. If the
    /// query fails, returns the last known group, or the error if no group is known.
    async fn group(
        &self,
        tenant: &DatabaseState,
        login: &Login,
        options: &QueryOptions,
    ) -> Result<Option<Arc<RoleGroup>>> {
        let (database, role) = (&login.database, &login.role);
        if let Some(group) = tenant.group(role, self.now()) {
            return Ok(Some(group));
        }
        match self.query_keys(database, tenant, Some(role), options).await {
            Ok(()) => Ok(tenant.last_group(role)),
            Err(error) => {
                let group = tenant.last_group(role).ok_or(error)?;
                tenant.allow_stale_keys();
                Ok(Some(group))
            }
        }
    }

    /// Queries and stores the keys of `first`, if it is given, and of other roles whose key is
    /// unknown or stale. One query reads all these keys, so that a change of roles does not cost a
    /// query for each role.
    pub(super) async fn query_keys(
        &self,
        database: &DatabaseName,
        tenant: &DatabaseState,
        first: Option<&RoleName>,
        options: &QueryOptions,
    ) -> Result<()> {
        if let Some(role) = first {
            tenant.add_waiting(role);
        }
        let _guard = tenant.key_query_lock.lock().await;
        let now = self.now();
        if first.is_some_and(|role| tenant.group(role, now).is_some()) {
            return Ok(());
        }
        let query = tenant.next_key_query(first, now, RELOAD_TICKS, MAX_ROLES_PER_QUERY);
        if query.roles.is_empty() {
            return Ok(());
        }
        let keys = load::keys(&*self.executor, database, &query.roles, options).await;
        if let Err(error) = &keys {
            log_failure(database, tenant, error);
        }
        tenant.store_keys(&query, keys?, now);
        Ok(())
    }

    /// Loads a schema as one role of a group. The result is valid for the group if the role's key
    /// is unchanged afterwards.
    pub(super) async fn load(
        &self,
        tenant: &DatabaseState,
        (database, role): (&DatabaseName, &RoleName),
        (name, group, slot): (&str, &RoleGroup, &SchemaSlot),
        options: &QueryOptions,
    ) -> Result<FoundSchemas> {
        let refresh = async |before: Option<Loaded>| {
            let before = before.or_else(|| tenant.previous(role, name));
            let before = before.unwrap_or_default();
            let loaded = self
                .refresh(before, (database, role), name, options)
                .await?;
            let roles = std::slice::from_ref(role);
            let keys = load::keys(&*self.executor, database, roles, options).await?;
            let validity = match keys.first() {
                Some(found) if found.key == group.key() => Validity::Group,
                _ => Validity::Role,
            };
            Ok((loaded, validity))
        };
        slot.load(|| tenant.epoch(), refresh).await
    }

    async fn refresh(
        &self,
        before: Loaded,
        (database, role): (&DatabaseName, &RoleName),
        name: &str,
        options: &QueryOptions,
    ) -> Result<Loaded> {
        let by = (&*self.executor, &self.intern);
        let (loaded, new) = before.refresh(by, (database, role), name, options).await?;
        for schema in &new {
            log_renamed(database, schema);
        }
        Ok(loaded)
    }
}
