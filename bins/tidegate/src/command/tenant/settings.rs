//! `tidegate tenant set` and `tidegate tenant show`.

use tidegate_oauth::AnonymousSql;

use super::kind;
use crate::command::{print, print_table, time, user};
use crate::failure::{Failure, Result};
use crate::service::Service;
use crate::settings::Settings;

/// Changes settings of a tenant and shows it.
pub(super) async fn set(settings: &Settings, name: &str, given: &[String]) -> Result {
    let wanted: Vec<_> = given.iter().map(|text| read(text)).collect::<Result<_>>()?;
    let service = Service::open(settings).await?;
    let tenant = user::tenant(&service, name).await?;
    let opened = wanted.iter().any(|wanted| *wanted != AnonymousSql::Off);
    for anonymous_sql in wanted {
        let directory = service.directory();
        directory.set_anonymous_sql(name, anonymous_sql).await?;
    }
    show(&service, name).await?;
    if opened && tenant.adopted {
        // `tenant adopt` does not revoke PostgreSQL's default grants to PUBLIC.
        let text = "Run `tidegate doctor`: it checks what anonymous callers may do in an adopted \
                    database, such as take advisory locks, and prints the SQL that revokes it.\n";
        print(text)?;
    }
    Ok(())
}

/// Reads `SETTING=VALUE`; there is one setting so far.
fn read(text: &str) -> Result<AnonymousSql> {
    let value = match text.split_once('=') {
        Some(("anonymous_sql", value)) => AnonymousSql::parse(value),
        _ => {
            return Err(Failure::Usage(format!(
                "{text}: expected anonymous_sql=VALUE"
            )));
        }
    };
    let names = AnonymousSql::NAMES;
    value.ok_or_else(|| Failure::Usage(format!("{text}: expected anonymous_sql={names}")))
}

/// Prints a tenant with its settings.
pub(super) async fn show(service: &Service, name: &str) -> Result {
    let tenant = user::tenant(service, name).await?;
    let users = service.directory().users(name).await?;
    let default_user = users.into_iter().find(|user| user.default_user);
    let rows = [
        ("owner role", tenant.owner_role),
        ("kind", kind(tenant.adopted).to_owned()),
        ("since", time(tenant.created_at)),
        (
            "default user",
            default_user.map_or_else(|| "-".to_owned(), |user| user.key.name),
        ),
        ("anonymous_sql", tenant.anonymous_sql.name().to_owned()),
    ];
    let rows = rows.map(|(name, value)| vec![name.to_owned(), value]);
    print_table(&["TENANT", name], &rows)
}
