//! `tidegate user …`: creates, lists, changes, repairs and drops the users of a tenant.

mod convert;
mod credentials;
mod repair;

use tidegate_identity::{
    NewUser, Secret, TenantName, User, UserChange, UserKey, UserKind, UserName, UserQuery,
    group_role,
};
use tidegate_store::Tenant;

use super::{print, print_table};
use crate::cli::{ChangedUser, Confirmation, UserCommand};
use crate::cli_error::{CliError, Result};
use crate::service::Service;

pub(crate) async fn run(command: UserCommand, service: &Service) -> Result {
    match command {
        UserCommand::Create {
            database,
            name,
            email,
            group,
            member,
            id,
            default,
            no_password,
            password,
        } => {
            let tenant = tenant(service, &database).await?;
            let mut user =
                NewUser::new(TenantName::adopted(&tenant.name)?, UserName::parse(&name)?);
            if !no_password {
                user.password = Some(password.read(&name)?);
            }
            user.email = email;
            user.user_groups = group;
            if member {
                user.kind = UserKind::Member;
            }
            user.id = id;
            user.default_user = default;
            create(service, user).await?;
            print(format_args!("{name} is a user of {database} now.\n"))
        }
        UserCommand::Change(changed) => change(changed, service).await,
        UserCommand::Convert(converted) => convert::run(converted, service).await,
        UserCommand::List { database } => list(service, &database).await,
        UserCommand::Password {
            database,
            name,
            password,
        } => {
            let key = UserKey::new(&database, &name);
            service.users().user(&key).await?;
            change_password(service, &key, &password.read(&name)?).await
        }
        UserCommand::Credentials {
            database,
            name,
            remove,
        } => credentials::run(service, &UserKey::new(database, name), remove).await,
        UserCommand::Repair { database, name, .. } => repair::run(service, database, name).await,
        UserCommand::Drop {
            database,
            name,
            reassign,
            confirmation,
        } => {
            let key = UserKey::new(&database, &name);
            drop(service, &key, reassign, &confirmation).await?;
            print(format_args!("{name} is dropped.\n"))
        }
    }
}

async fn change_password(service: &Service, key: &UserKey, password: &Secret) -> Result {
    set_password(service, key, password).await?;
    let name = &key.name;
    print(format_args!(
        "{name} has a new password; its sessions have ended.\n"
    ))
}

async fn change(given: ChangedUser, service: &Service) -> Result {
    tenant(service, &given.database).await?;
    let change = UserChange {
        email: given.email.map(super::unless_empty),
        user_groups: given.group.map(|groups| {
            let named = groups.into_iter().filter(|group| !group.is_empty());
            named.collect()
        }),
        default_user: given.default,
        disabled: given.disabled,
        ..UserChange::default()
    };
    let key = UserKey::new(&given.database, &given.name);
    service.accounts().change(&key, change).await?;
    print(format_args!("{} is changed.\n", given.name))
}

async fn drop(
    service: &Service,
    key: &UserKey,
    reassign: bool,
    confirmation: &Confirmation,
) -> Result {
    tenant(service, &key.database).await?;
    if key.is_owner() {
        let name = &key.name;
        return Err(CliError::Refused(format!(
            "{name} owns the tenant; `tidegate tenant drop {name}` drops both"
        )));
    }
    service.users().user(key).await?;
    confirmation.confirm(&format!("the user {key}"), &key.name)?;
    Ok(service.accounts().drop(key, reassign).await?)
}

/// Finds a tenant. Fails if it does not exist.
pub(super) async fn tenant(service: &Service, name: &str) -> Result<Tenant> {
    service.tenants.find(name).await?.ok_or_else(|| {
        CliError::Refused(format!(
            "there is no tenant {name}; `tidegate tenant list` lists them"
        ))
    })
}

/// Creates the record of a user and, unless it is a member, its role.
pub(crate) async fn create(service: &Service, user: NewUser) -> Result {
    service.accounts().create(user).await?;
    Ok(())
}

async fn set_password(service: &Service, key: &UserKey, password: &Secret) -> Result {
    Ok(service.users().set_password(key, password).await?)
}

/// The number of users that `tidegate user list` reads with one statement.
const PAGE: u32 = 1_000;

async fn list(service: &Service, database: &str) -> Result {
    tenant(service, database).await?;
    let mut rows = Vec::new();
    let mut query = UserQuery {
        kind: None,
        group: None,
        after: None,
        limit: PAGE,
    };
    loop {
        let page = service.users().user_page(database, &query).await?;
        rows.extend(page.iter().map(row));
        match page.last() {
            Some(last) if page.len() == PAGE as usize => query.after = Some(last.key.name.clone()),
            _ => break,
        }
    }
    print_table(&["USER", "ROLE", "KIND", "PASSWORD", "EMAIL"], &rows)
}

/// A row of `tidegate user list`. For a member, the row shows the role of its group.
fn row(user: &User) -> Vec<String> {
    let kind = match (user.key.is_owner(), user.default_user, user.kind()) {
        _ if user.disabled => "disabled",
        (true, ..) => "owner",
        (_, true, _) => "default",
        (.., UserKind::Member) => "member",
        (.., UserKind::Role) => "",
    };
    let group = user.user_groups.first();
    let group = group.and_then(|group| group_role(&user.key.database, group).ok());
    let password = if user.password_hash.is_some() {
        "yes"
    } else {
        "no"
    };
    vec![
        user.key.name.clone(),
        user.role.clone().or(group).unwrap_or_default(),
        kind.to_owned(),
        password.to_owned(),
        user.email.clone().unwrap_or_default(),
    ]
}
