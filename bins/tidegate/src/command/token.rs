//! `tidegate token …`: creates, lists and revokes personal access tokens.

use std::time::Duration;

use tidegate_identity::UserKey;
use tidegate_oauth::{Issuer, NewPersonalToken, Scopes, Session};

use super::user::tenant;
use super::{print, print_table};
use crate::cli::{NewToken, TokenCommand};
use crate::cli_error::{CliError, Result};
use crate::service::Service;

/// The maximum number of tokens that `tidegate token list` reads.
const MAX_TOKENS: u32 = 100_000;

pub(crate) async fn run(command: TokenCommand, service: &Service) -> Result {
    match command {
        TokenCommand::Create(new) => create(new, service).await,
        TokenCommand::List { database } => list(service, &database).await,
        TokenCommand::Revoke { database, id } => revoke(service, &database, &id).await,
    }
}

async fn create(new: NewToken, service: &Service) -> Result {
    tenant(service, &new.database).await?;
    for name in &new.scopes {
        Scopes::parse(name).map_err(|_| {
            let known = "expected one of read, write, methods, sql and admin";
            CliError::Usage(format!("--scopes {name}: {known}"))
        })?;
    }
    let scopes = Scopes::parse(&new.scopes.join(" "))?;
    if !scopes.narrows() && !new.scopes.is_empty() {
        let text = "--scopes expects one scope or more of read, write, methods, sql and admin; \
                    without it, the token has all rights";
        return Err(CliError::Usage(text.to_owned()));
    }
    let issuer = issuer(service).await?;
    let lifetime = Duration::from_hours(24) * u32::from(new.days);
    let key = UserKey::new(&new.database, &new.user);
    let token = NewPersonalToken {
        name: new.name,
        expires_at: Some(issuer.now().plus(lifetime)),
        scopes,
    };
    let created = issuer
        .issue_personal_token(key, token, (None, None))
        .await?;
    print(format_args!(
        "id     {}\ntoken  {}\nThe token is shown this once.\n",
        created.session.id,
        created.secret.expose()
    ))
}

async fn list(service: &Service, database: &str) -> Result {
    let row = |session: &Session| {
        let name = session.personal.as_ref().map(|token| token.name.clone());
        let used = session.refreshed_at > session.created_at;
        let last_used = used.then(|| super::time(session.refreshed_at));
        vec![
            session.id.to_string(),
            name.unwrap_or_default(),
            session.user.name.clone(),
            session.scopes.to_string(),
            super::time(session.closes_at),
            last_used.unwrap_or_else(|| "never".to_owned()),
        ]
    };
    let rows: Vec<_> = tokens(service, database).await?.iter().map(row).collect();
    print_table(
        &["TOKEN", "NAME", "USER", "SCOPES", "EXPIRES", "LAST USED"],
        &rows,
    )
}

async fn revoke(service: &Service, database: &str, id: &str) -> Result {
    let tokens = tokens(service, database).await?;
    let found = tokens.iter().find(|session| session.id.to_string() == id);
    let missing = || CliError::Refused(format!("there is no token {id} in {database}"));
    let issuer = issuer(service).await?;
    let who = (None, None);
    issuer
        .revoke_personal_token(found.ok_or_else(missing)?, who)
        .await?;
    print(format_args!("{id} is revoked.\n"))
}

async fn tokens(service: &Service, database: &str) -> Result<Vec<Session>> {
    tenant(service, database).await?;
    let now = service.ports.clock.now();
    let tokens = service
        .store
        .personal_tokens(database, None, now, MAX_TOKENS);
    Ok(tokens.await?)
}

/// An issuer with a placeholder for its URL. The URL occurs only in access tokens, and these
/// commands issue no access tokens.
async fn issuer(service: &Service) -> Result<Issuer> {
    let settings = tidegate_oauth::Settings::new("http://localhost")?;
    Ok(Issuer::start(service.ports.clone(), service.master.clone(), settings).await?)
}
