//! `tidegate tenant set` and `tidegate tenant show`.

use tidegate_identity::AnonymousSql;

use super::kind;
use crate::cli_error::{CliError, Result};
use crate::command::{print, print_table, time, user};
use crate::service::Service;
use crate::settings::Settings;

/// Changes settings of a tenant and prints them.
pub(super) async fn set(settings: &Settings, name: &str, given: &[String]) -> Result {
    let wanted: Vec<_> = given.iter().map(|text| read(text)).collect::<Result<_>>()?;
    let service = Service::open(settings).await?;
    let tenant = user::tenant(&service, name).await?;
    let closed = Setting::AnonymousSql(AnonymousSql::Off);
    let anonymous = |wanted: &&Setting| matches!(wanted, Setting::AnonymousSql(_));
    let opened = wanted
        .iter()
        .filter(anonymous)
        .any(|wanted| *wanted != closed);
    let directory = service.users();
    for setting in wanted {
        match setting {
            Setting::AnonymousSql(sql) => directory.set_anonymous_sql(name, sql).await?,
            Setting::Impersonation(allowed) => directory.set_impersonation(name, allowed).await?,
        }
    }
    show(&service, name).await?;
    if opened && tenant.adopted {
        // In an adopted database, PUBLIC may still call dangerous built-in functions, because
        // `tenant adopt` does not revoke EXECUTE on functions.
        let text = "Run `tidegate doctor`: it checks what anonymous callers may do in an adopted \
                    database, such as take advisory locks, and prints the SQL that revokes it.\n";
        print(text)?;
    }
    Ok(())
}

/// A setting with its new value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Setting {
    AnonymousSql(AnonymousSql),
    Impersonation(bool),
}

/// Parses `SETTING=VALUE`.
fn read(text: &str) -> Result<Setting> {
    let (setting, expected) = match text.split_once('=') {
        Some(("anonymous_sql", value)) => (
            AnonymousSql::parse(value).map(Setting::AnonymousSql),
            format!("anonymous_sql={}", AnonymousSql::NAMES),
        ),
        Some(("impersonation", value)) => (
            value.parse().ok().map(Setting::Impersonation),
            "impersonation=true or false".to_owned(),
        ),
        _ => (
            None,
            "anonymous_sql=VALUE or impersonation=VALUE".to_owned(),
        ),
    };
    setting.ok_or_else(|| CliError::Usage(format!("{text}: expected {expected}")))
}

/// Prints a tenant with its settings.
pub(super) async fn show(service: &Service, name: &str) -> Result {
    let tenant = user::tenant(service, name).await?;
    let users = service.users().users_with_role(name).await?;
    let default_user = users.into_iter().find(|user| user.default_user);
    let impersonation = service.users().impersonation(name).await?;
    let rows = [
        ("owner role", tenant.owner_role),
        ("kind", kind(tenant.adopted).to_owned()),
        ("since", time(tenant.created_at)),
        (
            "default user",
            default_user.map_or_else(|| "-".to_owned(), |user| user.key.name),
        ),
        ("anonymous_sql", tenant.anonymous_sql.name().to_owned()),
        ("impersonation", impersonation.to_string()),
    ];
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
    print_table(&["TENANT", name], &rows)
}
