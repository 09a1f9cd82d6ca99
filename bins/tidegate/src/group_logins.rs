//! Makes the roles of groups able to log in, for members and for callers with tokens of external
//! issuers.

use async_trait::async_trait;
use tidegate_admin::{Admin, Error};
use tidegate_identity::{Accounts, StoreError, StoreResult, group_role};
use tidegate_issuers::GroupLogins;
use tidegate_sql::{DatabaseName, RoleName};

/// Implements [`GroupLogins`] with the cluster's administrator.
pub(crate) struct PgGroupLogins(pub(crate) Admin);

/// Ensures that the role of each group that has members can log in. Creates roles that are missing,
/// for example after a restore of the database without its roles.
pub(crate) async fn provide(
    admin: &Admin,
    accounts: &Accounts,
    database: &DatabaseName,
) -> crate::cli_error::Result {
    let able = admin.group_logins(database).await?;
    let prefix = format!("{database}/group/");
    let able = able
        .iter()
        .filter_map(|role| role.as_str().strip_prefix(&prefix));
    let able: Vec<_> = able.map(str::to_owned).collect();
    let provided = accounts.provide_member_groups(database.as_str(), &able);
    Ok(provided.await?)
}

#[async_trait]
impl GroupLogins for PgGroupLogins {
    async fn enable(&self, database: &str, group: &str) -> StoreResult<()> {
        let role = group_role(database, group).map_err(|error| StoreError::Failed(error.into()))?;
        let role = RoleName::new(role);
        let database = DatabaseName::new(database);
        let failed = |error: Error| StoreError::Unavailable(Box::new(error));
        let _lock = self.0.lock_groups(&database).await.map_err(failed)?;
        let made = self.0.make_group_login(&database, &role);
        made.await.map_err(failed)
    }
}
