//! `tidegate up`: adopts and serves a database, given its URL.
//!
//! All checks run before the first change. If the command is interrupted, the next run completes
//! the work.

mod address;
mod adoption;
mod links;
mod login;
mod state;

use std::fmt::Write as _;

use tidegate_admin::Admin;
use tidegate_admin::doctor::Severity;
use tidegate_identity::{MasterKey, TenantName};
use tidegate_oauth::{ClientAuthentication, NewClient};

use crate::cli_error::{CliError, Result};
use crate::command::{print, single_line};
use crate::serve::{self, Node, Sockets};
use crate::service::{self, Service};
use crate::settings::{Layers, Settings};
use crate::signal::StopSignals;
use crate::{cli, demo, feed, graphiql, logging, prompt};
use address::Address;
use adoption::AdoptionStep;
use links::Links;
use state::State;

/// The name of the OAuth client that is created for applications on this machine.
const CLIENT: &str = "localhost";
/// The redirect URIs of the client, for the development servers of common frameworks. A URI with a
/// loopback address matches any port (RFC 8252, section 7.3).
const REDIRECT_URIS: [&str; 4] = [
    "http://127.0.0.1/callback",
    "http://localhost:3000/callback",
    "http://localhost:5173/callback",
    "http://localhost:8080/callback",
];

/// Runs the command until the process receives a stop signal. Without a URL, runs `tidegate demo`.
pub(crate) async fn run(command: cli::Up, mut layers: Layers) -> Result {
    let Some(url) = &command.url else {
        let (fresh, no_fetch) = (false, command.no_fetch);
        return Box::pin(demo::run(&cli::Demo { fresh, no_fetch }, layers)).await;
    };
    let mut address = Address::parse(&url.0)?;
    layers.prefer("log_level", "warn");
    layers.decide(&[("admin_url", Some(address.administrator()))]);
    let settings = layers.settings()?;
    logging::start_demo(&settings);
    serve::require_safe_address(&settings)?;
    let graphiql = graphiql::read(&settings)?;
    let sockets = Sockets::bind(&settings).await?;
    let state = State::open(&settings)?;

    let interruptible = login::check(&mut address, &mut layers).await?;
    let master = state.master_key(&layers.settings()?)?;
    let notice = choose_feed(&mut layers).await?;
    state.decide(&mut layers);
    let settings = layers.settings()?;
    let admin = Admin::new(
        service::config(&settings)?,
        service::role_passwords(&master),
    );
    examine(&admin, &settings).await?;
    require_same_key(&admin, &master).await?;
    let name = TenantName::adopted(address.database())?;
    let adoption = AdoptionStep::plan(&admin, &name, command.role.as_deref()).await?;
    if let Some(script) = adoption.script() {
        print(format_args!(
            "Tidegate will run this SQL in the database {name}, in one transaction:\n\n{script}\n"
        ))?;
        prompt::agree("Run it?", command.yes)?;
    }

    // From here on, a signal does not end the process by itself. The command stops only where it
    // waits for `signals`.
    let mut signals = StopSignals::listen()?;
    drop(interruptible);
    state.write(&master, &layers, &address)?;
    let service = Service::open(&settings).await?;
    let password = adoption.run(&service, command.password_file).await?;
    let client = client(&service, &name).await?;
    let issuer = settings.public_url.as_ref().map(|url| url.0.clone());
    let issuer = issuer.unwrap_or_else(|| sockets.url());
    let node = tokio::select! {
        node = Node::start(&service, &settings, &issuer, graphiql) => node?,
        _ = signals.next() => return Ok(()),
    };
    let console = node
        .sign_in_url(&settings, &sockets.url(), name.as_str())
        .await?;
    let links = Links {
        url: &issuer,
        console: console.as_deref(),
        tenant: name.as_str(),
        password: password.as_deref(),
        client: &client,
        settings: &state.settings_file(address.database()),
        notice: notice.as_deref(),
    };
    print(links.text())?;
    node.serve(sockets, signals).await
}

/// If the settings name no source of change events and the WAL cannot be decoded, selects the
/// outbox and returns a notice for the user. Otherwise changes nothing.
async fn choose_feed(layers: &mut Layers) -> Result<Option<String>> {
    if layers.is_set("feed_source") {
        return Ok(None);
    }
    let settings = layers.settings()?;
    let admin = login::administrator(&settings)?;
    let replication = service::replication_config(&settings)?;
    let source = feed::change_source(&settings, &replication);
    let Some(reason) = admin.why_no_changes(source).await? else {
        return Ok(None);
    };
    layers.decide(&[("feed_source", Some("outbox".to_owned()))]);
    Ok(Some(format!(
        "Change events come from triggers on the tables that are subscribed to. PostgreSQL's log \
         would cost writes less, but {reason}"
    )))
}

/// Runs the doctor's checks. Prints the findings of the severity `Missing`, and fails if there are
/// any.
async fn examine(admin: &Admin, settings: &Settings) -> Result {
    let replication = service::replication_config(settings)?;
    let findings = admin
        .examine(feed::change_source(settings, &replication))
        .await?;
    let of = |severity| findings.iter().filter(move |it| it.severity == severity);
    let missing = of(Severity::Missing).count();
    if missing == 0 {
        let advice = of(Severity::Advice).count();
        let more = if advice == 0 {
            ""
        } else {
            "; `tidegate doctor` has advice too"
        };
        return print(format_args!(
            "PostgreSQL has everything that the service needs{more}.\n\n"
        ));
    }
    let mut text = String::new();
    for finding in of(Severity::Missing) {
        let _ = writeln!(text, "MISSING  {}", single_line(&finding.text));
        for line in finding.sql.iter().flat_map(|sql| sql.lines()) {
            let _ = writeln!(text, "         {line}");
        }
    }
    print(text)?;
    Err(CliError::Refused(format!(
        "{missing} thing(s) that the service needs are missing, and nothing was changed; run the \
         SQL above as a superuser, or give the address with another role, and run the command again"
    )))
}

/// Fails if the control database was created with another master key, because only that key can
/// decrypt the secrets in the control database.
async fn require_same_key(admin: &Admin, master: &MasterKey) -> Result {
    match admin.recorded_fingerprint().await? {
        Some(kept) if kept != master.fingerprint() => Err(CliError::Refused(
            "the control database of this cluster was set up with another master key, and nothing \
             was changed; name that key's file with --master-key-file FILE, or another database \
             with --control-database NAME"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// The id of the OAuth client for applications on this machine. The client is created if it is
/// missing.
async fn client(service: &Service, tenant: &TenantName) -> Result<String> {
    let directory = service.clients();
    let clients = directory.clients(tenant.as_str()).await?;
    let ours = clients.into_iter().find(|client| {
        client.name == CLIENT && client.authentication == ClientAuthentication::Public
    });
    if let Some(client) = ours {
        return Ok(client.id);
    }
    let uris = REDIRECT_URIS.map(str::to_owned).to_vec();
    let mut client = NewClient::new(tenant.clone(), CLIENT, uris);
    client.public = true;
    Ok(directory.create_client(client).await?.client.id)
}
