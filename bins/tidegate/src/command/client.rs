//! `tidegate client …`.

use tidegate_oauth::{ClientAuthentication, GrantKind, GrantSet, NewClient, TenantName};

use super::user::tenant;
use super::{print, print_table};
use crate::cli::{self, Client};
use crate::failure::{Failure, Result};
use crate::service::Service;

/// Runs the command.
pub(crate) async fn run(command: Client, service: &Service) -> Result {
    match command {
        Client::Create(new) => create(new, service).await,
        Client::List { database } => list(service, &database).await,
        Client::Drop { id, confirmation } => {
            let found = service.store.client(&id).await?;
            let found =
                found.ok_or_else(|| Failure::Refused(format!("there is no client {id}")))?;
            let database = found.database.unwrap_or_default();
            let what = format!("the client {id} ({}) of {database}", found.name);
            confirmation.confirm(&what, &id)?;
            service.directory().drop_client(&database, &id).await?;
            print(format_args!("{id} is dropped; its sessions have ended.\n"))
        }
    }
}

async fn create(new: cli::NewClient, service: &Service) -> Result {
    let tenant = tenant(service, &new.database).await?;
    let database = TenantName::adopted(&tenant.name)?;
    let mut client = NewClient::new(database, &new.name, new.redirect_uri);
    client.id = new.id;
    client.public = new.public;
    client.confirm = !new.no_confirm;
    client.homepage = new.homepage;
    client.description = new.description;
    client.grants = grants(&new.grants)?;
    let created = service.directory().create_client(client).await?;
    print(format_args!("client_id      {}\n", created.client.id))?;
    match created.secret {
        Some(secret) => print(format_args!(
            "client_secret  {}\nThe secret is shown this once.\n",
            secret.expose()
        )),
        None => Ok(()),
    }
}

fn grants(names: &[String]) -> Result<GrantSet> {
    if names.is_empty() {
        return Ok(GrantSet::All);
    }
    let kind = |name: &String| {
        GrantKind::from_name(name).ok_or_else(|| {
            let known = GrantKind::ALL.map(GrantKind::name).join(", ");
            Failure::Usage(format!("there is no grant {name}; there are {known}"))
        })
    };
    Ok(GrantSet::Only(
        names.iter().map(kind).collect::<Result<_>>()?,
    ))
}

async fn list(service: &Service, database: &str) -> Result {
    tenant(service, database).await?;
    let clients = service.directory().clients(database).await?;
    let row = |client: &tidegate_oauth::Client| {
        let kind = match client.authentication {
            ClientAuthentication::Public => "public",
            ClientAuthentication::Confidential { .. } => "confidential",
        };
        let uris = client.redirect_uris.join(" ");
        vec![
            client.id.clone(),
            client.name.clone(),
            kind.to_owned(),
            uris,
        ]
    };
    let rows: Vec<_> = clients.iter().map(row).collect();
    print_table(&["CLIENT", "NAME", "KIND", "REDIRECT URIS"], &rows)
}
