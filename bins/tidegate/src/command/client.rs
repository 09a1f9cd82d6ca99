//! `tidegate client …`: creates, changes, lists and drops OAuth clients.

use tidegate_identity::{SignUpUser, TenantName, UserKind};
use tidegate_oauth::{
    ClientAuthentication, ClientChange, CreatedClient, GrantKind, GrantSet, NewClient,
};

use super::user::tenant;
use super::{print, print_table};
use crate::cli::{self, ClientCommand};
use crate::cli_error::{CliError, Result};
use crate::service::Service;

pub(crate) async fn run(command: ClientCommand, service: &Service) -> Result {
    match command {
        ClientCommand::Create(new) => create(new, service).await,
        ClientCommand::Change(changed) => change(changed, service).await,
        ClientCommand::List { database } => list(service, &database).await,
        ClientCommand::Drop { id, confirmation } => {
            let found = client(service, &id).await?;
            let database = found.database.unwrap_or_default();
            let what = format!("the client {id} ({}) of {database}", found.name);
            confirmation.confirm(&what, &id)?;
            service.clients().drop_client(&database, &id).await?;
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
    client.service_user = new.service_user;
    client.two_factor = new.two_factor;
    client.allow_signup = new.allow_signup;
    client.social_signup = new.social_signup;
    client.signup = SignUpUser {
        kind: new.signup_kind.map_or(UserKind::Role, UserKind::from),
        group: new.signup_group,
    };
    let created = service.clients().create_client(client).await?;
    print_client(&created)
}

async fn change(given: cli::ChangedClient, service: &Service) -> Result {
    let before = client(service, &given.id).await?;
    let mut uris = given.redirect_uri;
    if !given.add_redirect_uri.is_empty() {
        uris.clone_from(&before.redirect_uris);
        let new = given.add_redirect_uri.into_iter();
        uris.extend(new.filter(|uri| !before.redirect_uris.contains(uri)));
    }
    let change = ClientChange {
        name: given.name,
        redirect_uris: (!uris.is_empty()).then_some(uris),
        homepage: given.homepage.map(super::unless_empty),
        description: given.description.map(super::unless_empty),
        public: given.public,
        confirm: given.confirm,
        two_factor: given.two_factor,
        allow_signup: given.allow_signup,
        social_signup: given.social_signup,
        signup_kind: given.signup_kind.map(UserKind::from),
        signup_group: given.signup_group.map(super::unless_empty),
        grants: match given.grants.as_slice() {
            [] => None,
            [all] if all == "all" => Some(GrantSet::All),
            names => Some(grants(names)?),
        },
        service_user: given.service_user.map(super::unless_empty),
        rotate_secret: given.rotate_secret,
    };
    let directory = service.clients();
    let database = before.database.as_deref().unwrap_or_default();
    let changed = directory.change_client(database, &given.id, change);
    print_client(&changed.await?)
}

/// Finds a client. Fails if it does not exist.
async fn client(service: &Service, id: &str) -> Result<tidegate_oauth::Client> {
    let found = service.store.client(id).await?;
    found.ok_or_else(|| CliError::Refused(format!("there is no client {id}")))
}

/// Prints the id of a client, and its secret if the secret is new.
fn print_client(client: &CreatedClient) -> Result {
    print(format_args!("client_id      {}\n", client.client.id))?;
    match &client.secret {
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
            CliError::Usage(format!("there is no grant {name}; there are {known}"))
        })
    };
    Ok(GrantSet::Only(
        names.iter().map(kind).collect::<Result<_>>()?,
    ))
}

async fn list(service: &Service, database: &str) -> Result {
    tenant(service, database).await?;
    let clients = service.clients().clients(database).await?;
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
