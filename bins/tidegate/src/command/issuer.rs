//! `tidegate issuer …`: adds, lists and drops the external issuers of a tenant.

use tidegate_issuers::{IssuerChange, IssuerRecord, IssuerSettings, SignatureAlgorithm};

use super::user::tenant;
use super::{print, print_table};
use crate::cli::{IssuerCommand, NewIssuer};
use crate::cli_error::{CliError, Result};
use crate::service::Service;

pub(crate) async fn run(command: IssuerCommand, service: &Service) -> Result {
    match command {
        IssuerCommand::Add(new) => add(*new, service).await,
        IssuerCommand::List { database } => list(service, &database).await,
        IssuerCommand::Drop {
            database,
            name,
            confirmation,
        } => {
            let directory = service.external_issuers();
            directory.require(&database, &name).await?;
            let what = format!("the issuer {name} of {database}");
            confirmation.confirm(&what, &name)?;
            directory.drop_issuer(&database, &name).await?;
            print(format_args!(
                "{name} is dropped; its tokens are refused within five seconds.\n"
            ))
        }
    }
}

async fn add(new: NewIssuer, service: &Service) -> Result {
    tenant(service, &new.database).await?;
    let mut settings = IssuerSettings::new(new.issuer, new.audience);
    let change = IssuerChange {
        jwks_url: new.jwks_url.map(Some),
        audience_claim: new.audience_claim,
        algorithms: algorithms(&new.algorithms)?,
        user_claim: new.user_claim.map(Some),
        role_claim: new.role_claim.map(Some),
        default_role: new.default_role.map(Some),
        create_members: Some(new.create_members),
        claims: new.claims.map(Some),
        clock_skew: new.clock_skew,
        ..IssuerChange::default()
    };
    change.apply(&mut settings);
    let directory = service.external_issuers();
    let created = directory.create(&new.database, &new.name, settings).await?;
    print(format_args!(
        "{} accepts tokens of {} as {}.\n",
        created.database, created.settings.issuer, created.name
    ))
}

fn algorithms(names: &[String]) -> Result<Option<Vec<SignatureAlgorithm>>> {
    if names.is_empty() {
        return Ok(None);
    }
    let parse = |name: &String| {
        SignatureAlgorithm::from_name(name).ok_or_else(|| {
            CliError::Usage(format!(
                "{name} is no algorithm with public keys: RS256, RS384, RS512, PS256, PS384, \
                 PS512, ES256, ES384, EdDSA"
            ))
        })
    };
    Ok(Some(names.iter().map(parse).collect::<Result<_>>()?))
}

async fn list(service: &Service, database: &str) -> Result {
    tenant(service, database).await?;
    let issuers = service.external_issuers().list(database).await?;
    let row = |record: &IssuerRecord| {
        let settings = &record.settings;
        let path = |path: &Option<tidegate_issuers::ClaimPath>| {
            path.as_ref().map(ToString::to_string).unwrap_or_default()
        };
        vec![
            record.name.clone(),
            settings.issuer.clone(),
            settings.audience.join(" "),
            path(&settings.user_claim),
            path(&settings.role_claim),
            settings.default_role.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<_> = issuers.iter().map(row).collect();
    let heading = [
        "NAME",
        "ISSUER",
        "AUDIENCE",
        "USER CLAIM",
        "ROLE CLAIM",
        "DEFAULT ROLE",
    ];
    print_table(&heading, &rows)
}
