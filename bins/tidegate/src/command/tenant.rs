//! `tidegate tenant …`: creates, adopts, lists, changes and drops tenants.

mod settings;

use serde::{Deserialize, Serialize};
use tidegate_admin::{
    Admin, Adoption, FIRST_CLAIMS_GENERATION, Grantee, Right, RightsChange, RolePasswords,
};
use tidegate_identity::{AnonymousSql, NewOwner, Secret, TenantName};
use tidegate_sql::{DatabaseName, RoleName};
use tidegate_store::Tenant;

use super::{print, print_table};
use crate::cli_error::{CliError, Result};
use crate::service::{self, Service};
use crate::settings::Settings;
use crate::{cli, ports};

pub(crate) async fn run(command: cli::TenantCommand, settings: &Settings) -> Result {
    match command {
        cli::TenantCommand::Create { name, password } => {
            let service = Service::open(settings).await?;
            let name = TenantName::parse(&name)?;
            require_new(&service, name.as_str(), name.as_str()).await?;
            let password = password.read(name.as_str())?;
            create(&service, &name, password).await?;
            print(format_args!(
                "{name} is a tenant now; its owner signs in as {name}.\n"
            ))
        }
        cli::TenantCommand::Adopt {
            name,
            role,
            dry_run,
            password,
        } => {
            let name = TenantName::adopted(&name)?;
            let role = owner_role(role.unwrap_or_else(|| name.to_string()))?;
            if dry_run {
                return preview(settings, &name, &role).await;
            }
            adopt(&Service::open(settings).await?, &name, &role, &password).await
        }
        cli::TenantCommand::List => list(&Service::open(settings).await?).await,
        cli::TenantCommand::Show { name } => {
            settings::show(&Service::open(settings).await?, &name).await
        }
        cli::TenantCommand::Set {
            name,
            settings: given,
        } => settings::set(settings, &name, &given).await,
        cli::TenantCommand::Drop {
            name,
            with_data,
            confirmation,
        } => {
            let service = Service::open(settings).await?;
            let tenant = super::user::tenant(&service, &name).await?;
            let what = if with_data {
                "the tenant and all its data:"
            } else {
                "the tenant"
            };
            confirmation.confirm(&format!("{what} {name}"), &name)?;
            drop(&service, &tenant, with_data).await?;
            if with_data {
                return print(format_args!("{name} and its data are gone.\n"));
            }
            print(format_args!("{name} is no longer a tenant.\n"))?;
            print_feed_hint(&service, settings, &name).await
        }
    }
}

/// Prints a hint if the feed has left objects in a database that is no longer a tenant's.
async fn print_feed_hint(service: &Service, settings: &Settings, name: &str) -> Result {
    if !crate::feed::has_left_anything(service, settings, &DatabaseName::new(name)).await {
        return Ok(());
    }
    print(format_args!(
        "Its publications for change events are still there; `tidegate feed drop {}` drops them.\n",
        super::shell_word(name)
    ))
}

fn kind(adopted: bool) -> &'static str {
    if adopted { "adopted" } else { "made" }
}

/// Checks that a role of this name can be the owner of a tenant (PostgreSQL, "CREATE ROLE",
/// "Identifiers and Key Words"). Returns the name.
pub(crate) fn owner_role(role: String) -> Result<String> {
    let problem = if role.contains('/') {
        "a slash separates a tenant and its user"
    } else if role.starts_with("pg_") || role == "public" || role == "none" {
        "PostgreSQL keeps this name for itself; choose another with --as ROLE"
    } else if TenantName::adopted(&role).is_err() {
        "expected 1 to 63 bytes without control characters"
    } else {
        return Ok(role);
    };
    Err(CliError::Usage(format!(
        "the role {role} cannot be an owner's: {problem}"
    )))
}

/// Prints the SQL of an adoption. Creates nothing, not even the control database.
async fn preview(settings: &Settings, name: &TenantName, role: &str) -> Result {
    // The passwords are derived from a random key. The master key is not needed, because the
    // printed SQL does not contain the verifier of the owner's password.
    let passwords = RolePasswords::new(ports::bytes(), ports::bytes);
    let admin = Admin::new(service::config(settings)?, passwords);
    let database = DatabaseName::new(name.as_str());
    let existing = admin.recorded_tenants().await?;
    let existing = existing
        .iter()
        .map(|tenant| (&*tenant.name, &*tenant.owner_role));
    refuse_known(existing, name.as_str(), role)?;
    print(
        admin
            .plan_adoption(&database, &RoleName::new(role))
            .await?
            .script,
    )
}

async fn adopt(
    service: &Service,
    name: &TenantName,
    role: &str,
    password: &cli::PasswordSource,
) -> Result {
    require_new(service, name.as_str(), role).await?;
    let database = DatabaseName::new(name.as_str());
    let plan = service
        .admin
        .plan_adoption(&database, &RoleName::new(role))
        .await?;
    print(&plan.script)?;
    let password = password.read(name.as_str())?;
    run_adoption(service, (name, role), &plan, password).await?;
    print(format_args!(
        "-- {name} is a tenant now; its owner signs in as {name}.\n"
    ))
}

/// Adopts a database as planned. If a step fails, undoes the steps before it.
///
/// The records are written before the SQL runs, because undoing the adoption needs their content.
pub(crate) async fn run_adoption(
    service: &Service,
    (name, role): (&TenantName, &str),
    plan: &Adoption,
    password: Secret,
) -> Result {
    let record = Record {
        name,
        role,
        grants: Some(to_json(&plan.changes)?),
    };
    record.insert(service, password).await?;
    let database = DatabaseName::new(name.as_str());
    if let Err(error) = service.admin.adopt(&database, plan).await {
        delete_records(service, name.as_str()).await?;
        return Err(error.into());
    }
    Ok(())
}

/// Creates the database and the owner's role of a tenant, and then writes its records. If the
/// records cannot be written, drops the database and the role again.
pub(crate) async fn create(service: &Service, name: &TenantName, password: Secret) -> Result {
    let database = DatabaseName::new(name.as_str());
    service.admin.create_tenant(&database).await?;
    let record = Record {
        name,
        role: name.as_str(),
        grants: None,
    };
    if let Err(error) = record.insert(service, password).await {
        service
            .admin
            .drop_tenant(&database, &[name.to_string()])
            .await?;
        return Err(error);
    }
    Ok(())
}

/// Removes a tenant. If `with_data` is true, drops its database too.
pub(crate) async fn drop(service: &Service, tenant: &Tenant, with_data: bool) -> Result {
    let database = DatabaseName::new(&tenant.name);
    let users = service.users().users_with_role(&tenant.name).await?;
    let mut roles: Vec<String> = users.into_iter().filter_map(|user| user.role).collect();
    if !roles.contains(&tenant.owner_role) {
        roles.push(tenant.owner_role.clone());
    }
    if with_data {
        service.admin.drop_tenant(&database, &roles).await?;
    } else {
        let changes = tenant.grants.as_deref().map_or(Ok(Vec::new()), from_json)?;
        service
            .admin
            .release_tenant(&database, &roles, &changes)
            .await?;
    }
    delete_records(service, &tenant.name).await
}

/// The values for the records of a new tenant. `grants` are the changes of privileges that an
/// adoption makes, as JSON; `None` unless the database is adopted.
struct Record<'a> {
    name: &'a TenantName,
    role: &'a str,
    grants: Option<String>,
}

impl Record<'_> {
    /// Writes the record of the owner and the record of the tenant. If the second record cannot be
    /// written, tries to remove both records.
    async fn insert(self, service: &Service, password: Secret) -> Result {
        // An interrupted run may have left the owner's record without the tenant's record.
        if service.tenants.find(self.name.as_str()).await?.is_none() {
            service.users().drop_tenant(self.name.as_str()).await?;
        }
        let tenant = Tenant {
            name: self.name.to_string(),
            owner_role: self.role.to_owned(),
            adopted: self.grants.is_some(),
            grants: self.grants,
            anonymous_sql: AnonymousSql::Off,
            created_at: service.ports.clock.now(),
            claims_generation: FIRST_CLAIMS_GENERATION,
        };
        let owner = NewOwner {
            database: self.name.clone(),
            role: Some(self.role.to_owned()),
            password: Some(password),
        };
        let kept = service.users().create_owner(owner).await;
        kept.map_err(|error| match error {
            tidegate_identity::Error::Taken(_) => already_exists(&tenant.name),
            error => error.into(),
        })?;
        match service.tenants.insert(&tenant).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                service.users().drop_tenant(&tenant.name).await?;
                Err(already_exists(&tenant.name))
            }
            Err(error) => {
                // An error of this clean-up is ignored, because it would hide the error that is
                // returned.
                let _ = delete_records(service, &tenant.name).await;
                Err(error.into())
            }
        }
    }
}

fn already_exists(name: &str) -> CliError {
    CliError::Refused(format!(
        "{name} is a tenant already, or its owner's role is another's"
    ))
}

async fn delete_records(service: &Service, name: &str) -> Result {
    service.users().drop_tenant(name).await?;
    let database = DatabaseName::new(name);
    service.methods.remove_tenant(&database).await?;
    service.tenants.delete(name).await?;
    Ok(())
}

/// Fails if the service already has a tenant named `name`, or a tenant whose owner has the role
/// `role`.
async fn require_new(service: &Service, name: &str, role: &str) -> Result {
    let existing = service.tenants.list().await?;
    let existing = existing
        .iter()
        .map(|tenant| (&*tenant.name, &*tenant.owner_role));
    refuse_known(existing, name, role)
}

/// Does the check of [`require_new`]. `existing` has the names and the owners' roles of existing
/// tenants.
pub(crate) fn refuse_known<'a>(
    mut existing: impl Iterator<Item = (&'a str, &'a str)>,
    name: &str,
    role: &str,
) -> Result {
    let Some((other, _)) = existing.find(|tenant| tenant.0 == name || tenant.1 == role) else {
        return Ok(());
    };
    Err(CliError::Refused(if other == name {
        format!("{name} is a tenant already")
    } else {
        format!(
            "the role {role} belongs to the owner of {other}; choose another name, or another \
             role with `tenant adopt --as ROLE`"
        )
    }))
}

async fn list(service: &Service) -> Result {
    let tenants = service.tenants.list().await?;
    let row = |tenant: &Tenant| {
        let since = super::time(tenant.created_at);
        vec![
            tenant.name.clone(),
            tenant.owner_role.clone(),
            kind(tenant.adopted).to_owned(),
            tenant.anonymous_sql.name().to_owned(),
            since,
        ]
    };
    let rows: Vec<_> = tenants.iter().map(row).collect();
    print_table(
        &["TENANT", "OWNER ROLE", "KIND", "ANONYMOUS SQL", "SINCE"],
        &rows,
    )
}

/// A change of privileges that an adoption made, as it is stored. If `role` is `None`, a privilege
/// of PUBLIC was changed.
#[derive(Serialize, Deserialize)]
struct StoredChange {
    role: Option<String>,
    right: String,
}

fn to_json(changes: &[RightsChange]) -> Result<String> {
    let kept = |change: &RightsChange| StoredChange {
        role: match &change.grantee {
            Grantee::Public => None,
            Grantee::Role(role) => Some(role.clone()),
        },
        right: change.right.name().to_owned(),
    };
    let kept: Vec<_> = changes.iter().map(kept).collect();
    serde_json::to_string(&kept).map_err(|error| CliError::Refused(error.to_string()))
}

fn from_json(text: &str) -> Result<Vec<RightsChange>> {
    let damaged = || {
        CliError::Refused(
            "the record of what adopting granted is damaged, so it cannot be taken back".to_owned(),
        )
    };
    let kept: Vec<StoredChange> = serde_json::from_str(text).map_err(|_| damaged())?;
    let change = |StoredChange { role, right }: StoredChange| {
        let right = Right::from_name(&right).ok_or_else(damaged)?;
        Ok(RightsChange {
            grantee: role.map_or(Grantee::Public, Grantee::Role),
            right,
        })
    };
    kept.into_iter().map(change).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_changed_is_kept_and_read_again() {
        let changes = [
            RightsChange {
                grantee: Grantee::Public,
                right: Right::Connect,
            },
            RightsChange {
                grantee: Grantee::Role("a\"b".to_owned()),
                right: Right::Temporary,
            },
        ];
        assert_eq!(from_json(&to_json(&changes).unwrap()).unwrap(), changes);
        assert!(from_json("[{\"role\":null,\"right\":\"fly\"}]").is_err());
    }
}
