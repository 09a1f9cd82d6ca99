//! From a role to what it sees.
//!
//! Roles with the same rights are a [`Group`], and what was loaded as one of them is what all of them
//! see. So a request asks PostgreSQL nothing while neither the rights of its role nor a definition
//! have changed, and what has changed is loaded once for each group.

use std::sync::Arc;

use tidegate_sql::{DatabaseName, Login, RoleName, Terms};

use super::group::Group;
use super::loaded::Loaded;
use super::slot::{Found, Sight, Slot};
use super::tenant::Tenant;
use super::{Catalogs, Comparison, Schemas, WARM, tell_failure, tell_renamed};
use crate::error::Result;
use crate::load;

/// The most roles that one question is about. Each takes PostgreSQL about 20 us, the question itself
/// a millisecond.
const ASKED: usize = 200;
/// How often a request asks again when the rights of its role change while they are looked at.
const ATTEMPTS: usize = 3;

impl Catalogs {
    /// `name` is empty for all schemas.
    pub(super) async fn find(&self, login: &Login, name: &str, terms: &Terms) -> Result<Schemas> {
        let database = &login.database;
        let tenant = self.tenant(database);
        let now = self.now();
        tenant.touch(now);
        let count = self.counted(database, &tenant);
        if !tenant.is_compared(count, now)
            && let Err(error) = self
                .compare((database, &tenant), Comparison::IfCounted, terms)
                .await
        {
            if tenant.kept(&login.role, name).is_none() {
                return Err(error);
            }
            tell_failure(database, &tenant, &error);
            tenant.put_off(count, now);
        }
        let mut seen = Vec::new().into();
        for _ in 0..ATTEMPTS {
            let Some(group) = self.group(&tenant, login, terms).await? else {
                return Ok(Vec::new().into());
            };
            let slot = group.slot(name);
            slot.touch(now);
            if let Some(schemas) = slot.current(tenant.required()) {
                return Ok(schemas);
            }
            let place = (name, &*group, &*slot);
            match self
                .load(&tenant, (database, &login.role), place, terms)
                .await
            {
                Ok((schemas, Sight::Group)) => {
                    if schemas.is_empty() {
                        group.remove(name, &slot);
                    }
                    return Ok(schemas);
                }
                Ok((schemas, Sight::Role)) => {
                    tenant.doubt(&login.role);
                    seen = schemas;
                }
                Err(error) => {
                    let Some(old) = tenant.kept(&login.role, name) else {
                        group.remove(name, &slot);
                        return Err(error);
                    };
                    tell_failure(database, &tenant, &error);
                    tenant.excuse();
                    return Ok(old);
                }
            }
        }
        Ok(seen)
    }

    /// The group of a role; `None` when there is no such role.
    async fn group(
        &self,
        tenant: &Tenant,
        login: &Login,
        terms: &Terms,
    ) -> Result<Option<Arc<Group>>> {
        let (database, role) = (&login.database, &login.role);
        if let Some(group) = tenant.group(role, self.now()) {
            return Ok(Some(group));
        }
        match self.ask_keys(database, tenant, Some(role), terms).await {
            Ok(()) => Ok(tenant.last_group(role)),
            Err(error) => {
                let group = tenant.last_group(role).ok_or(error)?;
                tenant.excuse_keys();
                Ok(Some(group))
            }
        }
    }

    /// Asks which groups roles are in: `first`, and others of which it is not known (any more), so
    /// that a change costs a question and not one for each role.
    pub(super) async fn ask_keys(
        &self,
        database: &DatabaseName,
        tenant: &Tenant,
        first: Option<&RoleName>,
        terms: &Terms,
    ) -> Result<()> {
        if let Some(role) = first {
            tenant.wait(role);
        }
        let _turn = tenant.keying.lock().await;
        let now = self.now();
        if first.is_some_and(|role| tenant.group(role, now).is_some()) {
            return Ok(());
        }
        let asked = tenant.due(first, (now, WARM), ASKED);
        if asked.roles.is_empty() {
            return Ok(());
        }
        let keys = load::keys(&*self.executor, database, &asked.roles, terms).await;
        if let Err(error) = &keys {
            tell_failure(database, tenant, error);
        }
        tenant.keyed(&asked, keys?, now);
        Ok(())
    }

    /// Loads a schema of a group as one of its roles. What it sees is what the group sees if its key
    /// is still the group's behind it.
    pub(super) async fn load(
        &self,
        tenant: &Tenant,
        (database, role): (&DatabaseName, &RoleName),
        (name, group, slot): (&str, &Group, &Slot),
        terms: &Terms,
    ) -> Result<Found> {
        let refresh = async |before: Option<Loaded>| {
            let before = before.or_else(|| tenant.former(role, name));
            let before = before.unwrap_or_default();
            let loaded = self.refresh(before, (database, role), name, terms).await?;
            let roles = std::slice::from_ref(role);
            let keys = load::keys(&*self.executor, database, roles, terms).await?;
            let sight = match keys.first() {
                Some(found) if found.key == group.key() => Sight::Group,
                _ => Sight::Role,
            };
            Ok((loaded, sight))
        };
        slot.load(tenant, refresh).await
    }

    async fn refresh(
        &self,
        before: Loaded,
        who: (&DatabaseName, &RoleName),
        name: &str,
        terms: &Terms,
    ) -> Result<Loaded> {
        let by = (&*self.executor, &self.intern);
        let (loaded, new) = before.refresh(by, who, name, terms).await?;
        for schema in &new {
            tell_renamed(who.0, schema);
        }
        Ok(loaded)
    }
}
