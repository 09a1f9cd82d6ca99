//! Groups that log in for their members who have no role of their own.

use SqlPart::{Name, Secret, Syntax};
use tidegate_sql::{DatabaseName, RoleName};

use super::script::SqlPart;
use super::session::{self, Session};
use super::{Admin, Result, all_users_role, authenticator, group};

/// Lets a group log in for its members who have no role of their own. The role gets LOGIN, its
/// password, and the privileges of every user: CONNECT on the database and USAGE on the schema
/// `public`. A missing role is created. A role that already has LOGIN does not change. `session` is
/// in the tenant's database.
///
/// # Errors
///
/// [`super::Error::RoleExists`].
async fn make_login(
    admin: &Admin,
    session: &Session,
    (database, login): (&str, &str),
) -> Result<()> {
    let logins = of_tenant(session, database).await?;
    if logins.iter().any(|known| known == login) {
        return Ok(());
    }
    let mut script = authenticator::provisioning_script();
    group::make(session, login, &mut script).await?;
    let verifier = admin.passwords.verifier(login);
    script.push(&[
        Syntax("ALTER ROLE "),
        Name(login),
        Syntax(" LOGIN PASSWORD "),
        Secret(&verifier),
    ]);
    if let Some(of_users) = all_users_role::of_tenant(session, database).await? {
        script.append(all_users_role::join(session, &of_users, &[login]));
    } else {
        // The tenant has no role of all users, because its name is too long.
        script.append(all_users_role::grant_connect(database, login));
        if let Some(public) = session.owner_of_public().await? {
            let usage = all_users_role::grant_usage(login);
            script.append(session.with_privileges_of(&public, usage).await?);
        }
    }
    script.run(session).await
}

/// The roles of a tenant's groups that log in for members.
pub(super) async fn of_tenant(session: &Session, database: &str) -> Result<Vec<String>> {
    let mut groups = group::of_tenant(session, database).await?;
    let rows = session
        .client
        .query(
            "SELECT r.rolname::text FROM pg_catalog.pg_roles r \
             WHERE r.rolname = ANY ($1) AND r.rolcanlogin",
            &[&groups],
        )
        .await?;
    let logins: Vec<&str> = rows.iter().map(|row| row.get(0)).collect();
    groups.retain(|group| logins.contains(&group.as_str()));
    Ok(groups)
}

impl Admin {
    /// Lets a group (`database/group/name`) log in for its members who have no role of their own.
    /// The role is created if missing. A role that can already log in does not change. The caller
    /// must hold [`Self::lock_groups`].
    ///
    /// # Errors
    ///
    /// [`super::Error::RoleExists`].
    pub async fn make_group_login(&self, database: &DatabaseName, group: &RoleName) -> Result<()> {
        let session = self.open(database.as_str()).await?;
        let names = (database.as_str(), group.as_str());
        if all_users_role::of_tenant(&session, names.0)
            .await?
            .is_none()
        {
            all_users_role::provide(self, &session, names.0).await?;
        }
        session::retry_on_conflict(|| make_login(self, &session, names)).await
    }

    /// The groups of a tenant that log in for members, by role name.
    pub async fn group_logins(&self, database: &DatabaseName) -> Result<Vec<RoleName>> {
        let home = self.open_admin_database().await?;
        let names = of_tenant(&home, database.as_str()).await?;
        Ok(names.into_iter().map(RoleName::new).collect())
    }
}
