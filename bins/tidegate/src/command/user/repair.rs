//! `tidegate user repair`: makes the roles of users able to log in again.

use tidegate_identity::UserKey;
use tidegate_pool::PoolKey;
use tidegate_postgres::RoleConnector;
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_store::Tenant;

use super::tenant;
use crate::cli_error::{CliError, Result};
use crate::command::print;
use crate::connector::connector;
use crate::group_logins;
use crate::service::Service;

/// A role whose login is to be repaired.
struct LoginToRepair {
    key: PoolKey,
    /// Whether anonymous callers or members share the role.
    shared: bool,
}

/// Repairs the login of one user, or all logins (of users, authenticators and groups) of one tenant
/// or of all tenants.
pub(super) async fn run(
    service: &Service,
    database: Option<String>,
    name: Option<String>,
) -> Result {
    let mut failed = Vec::new();
    let logins = match (database, name) {
        (Some(database), Some(name)) => {
            tenant(service, &database).await?;
            vec![user(service, &UserKey::new(&database, &name)).await?]
        }
        (Some(database), None) => {
            let tenant = tenant(service, &database).await?;
            of_tenant(service, &tenant, &mut failed).await?
        }
        (None, _) => {
            let mut logins = Vec::new();
            for tenant in service.tenants.list().await? {
                logins.extend(of_tenant(service, &tenant, &mut failed).await?);
            }
            logins
        }
    };
    repair(service, &logins, failed).await
}

async fn user(service: &Service, key: &UserKey) -> Result<LoginToRepair> {
    let user = service.users().user(key).await?;
    let role = user.role.as_deref().ok_or_else(|| {
        CliError::Refused(format!(
            "{} is a member and has no role; `--all` repairs the groups of members too",
            key.name
        ))
    })?;
    Ok(login(&key.database, role, user.default_user))
}

/// The roles of a tenant that log in: its users, its authenticators, and the groups that log in for
/// members. Missing roles are created first. If this fails, the error is added to `failed`.
async fn of_tenant(
    service: &Service,
    tenant: &Tenant,
    failed: &mut Vec<String>,
) -> Result<Vec<LoginToRepair>> {
    let database = tenant.name.as_str();
    let users = service.users().users_with_role(database).await?;
    let name = DatabaseName::new(database);
    let shared = users.iter().filter(|user| user.default_user);
    let shared: Vec<_> = shared.filter_map(|user| user.role.clone()).collect();
    let owner = RoleName::new(&tenant.owner_role);
    if let Err(error) = service.admin.provide_roles(&name, &owner, &shared).await {
        failed.push(format!("{database}: {}", CliError::from(error).text()));
    }
    let users = users
        .iter()
        .filter_map(|user| Some(login(database, user.role.as_deref()?, user.default_user)));
    let mut logins: Vec<_> = users.collect();
    let authenticators = service.admin.authenticators(&name).await?;
    logins.extend(
        authenticators
            .iter()
            .map(|role| login(database, role.as_str(), false)),
    );
    if let Err(error) = group_logins::provide(&service.admin, &service.accounts(), &name).await {
        failed.push(format!("{database}: {}", error.text()));
    }
    let groups = service.admin.group_logins(&name).await?;
    logins.extend(
        groups
            .iter()
            .map(|role| login(database, role.as_str(), true)),
    );
    Ok(logins)
}

fn login(database: &str, role: &str, shared: bool) -> LoginToRepair {
    LoginToRepair {
        key: PoolKey {
            database: DatabaseName::new(database),
            role: RoleName::new(role),
            trusted: false,
        },
        shared,
    }
}

/// Repairs the logins. Continues with the next login after an error. Fails at the end if there were
/// errors, or if `failed` contains errors of earlier steps.
async fn repair(service: &Service, logins: &[LoginToRepair], mut failed: Vec<String>) -> Result {
    let version = service.admin.server().await?.version;
    let connector = connector(service, version)?;
    for login in logins {
        let role = &login.key.role;
        match repair_one(service, &connector, login).await {
            Ok(()) => print(format_args!("{role} can log in.\n"))?,
            Err(error) => failed.push(format!("{role}: {}", error.text())),
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    Err(CliError::Refused(failed.join("\n")))
}

async fn repair_one(service: &Service, connector: &RoleConnector, login: &LoginToRepair) -> Result {
    let repaired = service
        .admin
        .repair_login(connector, &login.key, login.shared);
    for statement in repaired.await? {
        print(format_args!("{statement}\n"))?;
    }
    Ok(())
}
