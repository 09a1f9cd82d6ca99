//! `tidegate demo`: runs a private PostgreSQL and a service with a tenant that has sample data.

mod banner;
mod folder;
mod programs;
mod seed;

use std::convert::Infallible;
use std::time::Duration;

use tidegate_embedded::{Cluster, Settings as ClusterSettings};
use tidegate_server::Graphiql;

use crate::cli;
use crate::cli_error::{CliError, Result};
use crate::command::print;
use crate::serve::{Node, Sockets, require_safe_address};
use crate::service::Service;
use crate::settings::{Layers, Settings};
use crate::signal::StopSignals;
use crate::{graphiql, logging};
use folder::Folder;

/// The name of the demo's tenant. Its owner and its database have the same name.
const TENANT: &str = "demo";
/// The interval between checks whether PostgreSQL still runs.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// The error for a demo that would listen on an address other than loopback.
const LOOPBACK_ONLY: &str = "the demo's passwords are public, so it listens on loopback \
    addresses only; use --listen 127.0.0.1:8080, or add --insecure-http if everybody who reaches \
    this address may read and write its data";

/// Runs the demo until the process receives a stop signal.
pub(crate) async fn run(command: &cli::Demo, mut layers: Layers) -> Result {
    layers.prefer("log_level", "warn");
    if command.no_fetch {
        layers.decide(&[("fetch_postgresql", Some("false".to_owned()))]);
    }
    let settings = layers.settings()?;
    logging::start_demo(&settings);
    let loopback = settings
        .listen
        .iter()
        .all(|address| address.ip().is_loopback());
    if !loopback && !settings.insecure_http {
        return Err(CliError::Usage(LOOPBACK_ONLY.to_owned()));
    }
    let signals = StopSignals::listen()?;
    let graphiql = graphiql::read(&settings)?;
    let sockets = Sockets::bind(&settings).await?;
    let folder = Folder::open(&settings)?;
    let cluster_settings = cluster_settings(&settings, &folder);
    if command.fresh {
        Cluster::remove(cluster_settings.clone()).await?;
        folder.clear()?;
    }
    let cluster = programs::start(cluster_settings, &settings).await?;
    let served = tokio::select! {
        served = serve(layers, &cluster, &folder, (sockets, signals, graphiql)) => served,
        never = keep_running(&cluster) => match never {},
    };
    cluster.stop().await?;
    served
}

/// Restarts PostgreSQL when it exits, for example because the machine ran out of memory.
async fn keep_running(cluster: &Cluster) -> Infallible {
    loop {
        tokio::time::sleep(CHECK_INTERVAL).await;
        if cluster.is_running() {
            continue;
        }
        tracing::warn!("PostgreSQL exited; restarting it");
        if let Err(error) = cluster.resume().await {
            tracing::error!(%error, "PostgreSQL cannot be started");
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the binary is where the environment is read"
)]
fn cluster_settings(settings: &Settings, folder: &Folder) -> ClusterSettings {
    ClusterSettings {
        bin_dir: settings.bin_dir.clone(),
        search_path: std::env::var_os("PATH"),
        ..ClusterSettings::persistent(folder.cluster())
    }
    // Retained WAL must not fill the disk when a demo is left running.
    .with("max_slot_wal_keep_size", "1GB")
}

/// Replaces the error for a control database that belongs to another master key. The new error
/// suggests `--fresh`, because the demo's data can be created again.
fn explain_other_key(error: CliError) -> CliError {
    match error {
        CliError::Store(tidegate_store::Error::OtherMasterKey) => CliError::Refused(
            "this demo was created with another master.key; restore that file, or \
             start again with --fresh"
                .to_owned(),
        ),
        other => other,
    }
}

/// Creates the sample data if it is missing, and serves it until a stop signal arrives.
async fn serve(
    mut layers: Layers,
    cluster: &Cluster,
    folder: &Folder,
    (sockets, mut signals, graphiql): (Sockets, StopSignals, Option<Graphiql>),
) -> Result {
    let given = layers.settings()?;
    let url = match &given.public_url {
        Some(url) => {
            require_safe_address(&given)?;
            url.0.clone()
        }
        None => sockets.url(),
    };
    let master_key = folder.master_key()?;
    let text = |text: &str| Some(text.to_owned());
    layers.decide(&[
        // Over loopback, TCP causes a third of the cost of a small statement. A Unix socket avoids
        // this cost.
        ("admin_url", Some(cluster.socket_url("postgres"))),
        ("replication_url", None),
        ("replica_urls", None),
        ("sslmode", None),
        ("sslrootcert", None),
        ("control_database", text("tidegate")),
        ("nodes", text("1")),
        ("master_key", None),
        ("master_key_file", text(&master_key.to_string_lossy())),
        ("public_url", text(&url)),
        ("anonymous_database", text(TENANT)),
        ("open_signup", text("true")),
    ]);
    let settings = layers.settings()?;
    let prepared = async {
        let service = Service::open(&settings).await.map_err(explain_other_key)?;
        service.admin.close_maintenance_databases().await?;
        seed::fill(&service).await?;
        folder.write_environment(&url, (&cluster.url(TENANT), &cluster.admin_url()))?;
        Node::start(&service, &settings, &url, graphiql).await
    };
    let node = tokio::select! {
        node = prepared => node?,
        _ = signals.next() => {
            signals.exit_on_next();
            return Ok(());
        }
    };
    let console = node.sign_in_url(&settings, &url, TENANT).await?;
    print(banner::banner(
        &url,
        console.as_deref(),
        &folder.environment(),
    ))?;
    node.serve(sockets, signals).await
}
