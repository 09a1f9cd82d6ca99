//! Manages the PostgreSQL roles of users with the cluster's administrator.

use async_trait::async_trait;
use serde_json::{Map, Value};
use tidegate_admin::{Admin, Error, RoleIdentity};
use tidegate_identity::{GroupLock, RoleAdmin, RoleError, RoleResult, User, group_role};
use tidegate_sql::{DatabaseName, RoleName, has_nul};
use tidegate_wire::ConnectFault;

/// Implements [`RoleAdmin`] with the cluster's administrator.
pub(crate) struct PgRoles(pub(crate) Admin);

#[async_trait]
impl RoleAdmin for PgRoles {
    async fn create_role(&self, user: &User) -> RoleResult<()> {
        let (database, role) = names(user)?;
        let groups = groups(user)?;
        let made = self.0.create_user_in_groups(&database, &role, &groups);
        made.await.map_err(role_error)?;
        if !user.default_user {
            return Ok(());
        }
        let limited = self.limit_role(user).await;
        if limited.is_err() {
            // The role owns nothing yet, so the arguments `owner` and `reassign` do not matter.
            let dropped = self.0.drop_user(&database, &role, &role, false).await;
            if let Err(error) = dropped {
                tracing::warn!(%role, %error, "cannot drop the role of a user that could not be created");
            }
        }
        limited
    }

    async fn lock_groups(&self, database: &str) -> RoleResult<GroupLock> {
        let lock = self.0.lock_groups(&DatabaseName::new(database)).await;
        Ok(Box::new(lock.map_err(role_error)?) as GroupLock)
    }

    async fn set_groups(&self, user: &User) -> RoleResult<()> {
        let (database, role) = names(user)?;
        let groups = groups(user)?;
        let set = self.0.set_groups(&database, &role, &groups);
        set.await.map_err(role_error)
    }

    async fn provide_group(&self, database: &str, group: &str) -> RoleResult<()> {
        let group = group_role(database, group).map_err(|error| failed(error.into()))?;
        let (database, group) = (DatabaseName::new(database), RoleName::new(group));
        let made = self.0.make_group_login(&database, &group).await;
        made.map_err(role_error)
    }

    async fn limit_role(&self, user: &User) -> RoleResult<()> {
        let (_, role) = names(user)?;
        let limited = self.0.set_shared(&role, user.default_user);
        limited.await.map_err(role_error)
    }

    async fn set_claims(&self, user: &User) -> RoleResult<()> {
        let (database, _) = names(user)?;
        let identity = identity(user).ok_or_else(no_role)?;
        let set = self.0.set_identity(&database, &identity).await;
        set.map_err(role_error)
    }

    async fn check_drop_role(&self, user: &User, owner: &str, reassign: bool) -> RoleResult<()> {
        let (database, role) = names(user)?;
        let names = (&role, &RoleName::new(owner));
        let may = self.0.may_drop_user(&database, names, reassign);
        may.await.map_err(role_error)
    }

    async fn drop_role(&self, user: &User, owner: &str, reassign: bool) -> RoleResult<()> {
        let (database, role) = names(user)?;
        let owner = RoleName::new(owner);
        let dropped = self.0.drop_user(&database, &role, &owner, reassign);
        dropped.await.map_err(role_error)
    }
}

/// The values that `tidegate.user_id()` and `tidegate.claims()` return for a user with a role;
/// `None` for a member. The default user has no id, because all anonymous callers share its role.
pub(crate) fn identity(user: &User) -> Option<RoleIdentity> {
    let mut claims = user.properties.clone().unwrap_or_default();
    if user.default_user {
        claims.insert("anonymous".to_owned(), Value::Bool(true));
    }
    Some(RoleIdentity {
        role: RoleName::new(user.role.as_ref()?),
        user_id: user.own_id().map(str::to_owned),
        claims: to_jsonb(&claims),
    })
}

/// The text of an object for PostgreSQL's `jsonb`, which cannot store U+0000. Older releases
/// accepted properties with this character. Such properties are replaced by an empty object.
fn to_jsonb(object: &Map<String, Value>) -> String {
    let text = serde_json::to_string(object).unwrap_or_default();
    if text.is_empty() || has_nul(&text) {
        return "{}".to_owned();
    }
    text
}

fn names(user: &User) -> Result<(DatabaseName, RoleName), RoleError> {
    let role = user.role.as_ref().ok_or_else(no_role)?;
    Ok((DatabaseName::new(&user.key.database), RoleName::new(role)))
}

/// The error for an operation that needs a role, on a user without a role.
fn no_role() -> RoleError {
    failed("the user is a member and has no role".into())
}

fn failed(error: Box<dyn std::error::Error + Send + Sync>) -> RoleError {
    RoleError::Failed(error)
}

/// The names of the roles of the user's groups.
fn groups(user: &User) -> Result<Vec<RoleName>, RoleError> {
    let group = |name: &String| group_role(&user.key.database, name).map(RoleName::new);
    let groups: Result<_, _> = user.user_groups.iter().map(group).collect();
    groups.map_err(|error| RoleError::Failed(Box::new(error)))
}

fn role_error(error: Error) -> RoleError {
    match error {
        Error::RoleExists(role) => RoleError::Taken(role),
        Error::OwnsObjects { count, example, .. } => RoleError::OwnsObjects { count, example },
        Error::CarriesRights { objects, .. } => RoleError::CarriesRights(objects),
        Error::UsedElsewhere { places, .. } => RoleError::UsedElsewhere(places),
        Error::StillUsed { reason, .. } => RoleError::StillUsed(reason),
        Error::StaysMember { group, sql, .. } => RoleError::StillUsed(format!(
            "it stays in the group {group}; the operator runs as a superuser {}",
            sql.join(" ")
        )),
        Error::Busy(_) => RoleError::Unavailable(Box::new(error)),
        Error::Connect { ref source, .. }
            if matches!(
                source.fault(),
                ConnectFault::Unavailable | ConnectFault::Full
            ) =>
        {
            RoleError::Unavailable(Box::new(error))
        }
        error => RoleError::Failed(Box::new(error)),
    }
}
