//! `tidegate key …`: creates the master key, and lists and rotates keys.

use tidegate_admin::ClaimsState;
use tidegate_oauth::{Issuer, KeyState};
use tidegate_sql::DatabaseName;

use super::{print, print_table};
use crate::cli::KeyCommand;
use crate::cli_error::{CliError, Result};
use crate::master_key;
use crate::service::Service;
use crate::settings::Settings;

pub(crate) async fn run(command: KeyCommand, settings: &Settings) -> Result {
    match command {
        KeyCommand::Init { file } => {
            let path = file
                .or_else(|| settings.master_key_file.clone())
                .ok_or_else(|| {
                    CliError::Usage("name the file: `tidegate key init FILE`".to_owned())
                })?;
            master_key::create(&path)?;
            print(format_args!(
                "The master key is in {}. Back it up together with the control database: without \
                 it no user can be served.\n",
                path.display()
            ))
        }
        KeyCommand::Rotate {
            claims: true,
            database,
            ..
        } => rotate_claims(&Service::open(settings).await?, database.as_deref()).await,
        KeyCommand::Rotate { compromised, .. } => rotate(settings, compromised).await,
        KeyCommand::List => list(&Service::open(settings).await?).await,
    }
}

async fn rotate(settings: &Settings, compromised: bool) -> Result {
    let service = Service::open(settings).await?;
    // The URL of the service is a placeholder, because it occurs only in tokens, and this command
    // issues no tokens.
    let identity = tidegate_oauth::Settings::new("http://localhost")?;
    let issuer = Issuer::start(service.ports.clone(), service.master.clone(), identity).await?;
    let rotated = if compromised {
        issuer.replace_key().await
    } else {
        issuer.rotate_keys().await
    };
    match rotated {
        Err(tidegate_oauth::Error::KeyTooYoung { .. }) => Err(CliError::Refused(
            "the next key was published less than an hour ago, and those who check tokens may not \
             know it yet; try again later, or use --compromised if the key in use got out"
                .to_owned(),
        )),
        done => {
            done?;
            list(&service).await
        }
    }
}

/// Replaces the keys that seal claims, of one tenant or of all tenants. The new generation of a
/// tenant's key is recorded in the control database first. If a tenant's database cannot be
/// reached, a node replaces the key in that database later.
async fn rotate_claims(service: &Service, only: Option<&str>) -> Result {
    let tenants = match only {
        Some(name) => vec![super::user::tenant(service, name).await?],
        None => service.tenants.list().await?,
    };
    for tenant in &tenants {
        let name = &tenant.name;
        let Some(generation) = service.tenants.rotate_claims(name).await? else {
            continue;
        };
        let database = DatabaseName::new(name);
        let provided = service.admin.provide_claims(&database, generation);
        match provided.await? {
            ClaimsState::Current => print(format_args!(
                "The claims of {name} have a key of generation {generation}.\n"
            ))?,
            _ => print(format_args!(
                "{name} has no functions of claims; `tidegate doctor` says why.\n"
            ))?,
        }
    }
    Ok(())
}

async fn list(service: &Service) -> Result {
    let keys = service.store.signing_keys().await?;
    let row = |key: &tidegate_oauth::SigningKeyRecord| {
        let since = match key.state {
            KeyState::Next => key.created_at,
            KeyState::Active { since } | KeyState::Retired { since } => since,
        };
        let state = key.state.name().to_owned();
        vec![key.id.clone(), state, super::time(since)]
    };
    print_table(
        &["KEY", "STATE", "SINCE"],
        &keys.iter().map(row).collect::<Vec<_>>(),
    )
}
