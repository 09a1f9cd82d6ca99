//! `tidegate cluster …`: shows the nodes of the cluster, the bus and the replicas.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_bus::BusReport;
use tidegate_identity::Timestamp;
use tidegate_service::cluster_status::{
    NodeStatus, ReaderStatus, ReplicaStatus, nodes, readers, replica,
};
use tidegate_service::{KeptConnection, KeptConnectionError, PrimaryWal};
use tidegate_wire::{Config, ConnectError};

use super::{print, print_table, time};
use crate::cli::ClusterCommand;
use crate::cli_error::{CliError, Result};
use crate::settings::Settings;
use crate::{bus, service};

/// Runs `tidegate cluster status`, which changes nothing: it neither creates nor migrates the
/// control database.
pub(crate) async fn run(command: &ClusterCommand, settings: &Settings) -> Result {
    let ClusterCommand::Status { json } = command;
    let config = Arc::new(service::config(settings)?);
    let control = KeptConnection::new(&config, &config.control_database);
    let nodes = nodes(&control).await.map_err(cli_error)?;
    let readers = readers(&control).await.map_err(cli_error)?;
    let bus = bus::report(settings).await;
    let replicas = replicas(&config, settings).await?;
    if *json {
        let document = document(&nodes, &readers, bus.as_ref(), &replicas);
        return print(format_args!("{document}\n"));
    }
    print_nodes(&nodes)?;
    print_readers(&readers)?;
    bus.as_ref().map_or(Ok(()), print_bus)?;
    print_replicas(&replicas)
}

/// Asks the servers of `replica_urls` how far they have replayed the WAL of the primary.
async fn replicas(config: &Config, settings: &Settings) -> Result<Vec<ReplicaStatus>> {
    let configs = service::replica_configs(settings)?;
    if configs.is_empty() {
        return Ok(Vec::new());
    }
    let primary = PrimaryWal::open(config).await?;
    let mut replicas = Vec::with_capacity(configs.len());
    for config in &configs {
        replicas.push(replica(&primary, config).await);
    }
    Ok(replicas)
}

fn cli_error(error: KeptConnectionError) -> CliError {
    match error {
        KeptConnectionError::Connect(error) => error.into(),
        KeptConnectionError::Statement(error) => ConnectError::Protocol(error.to_string()).into(),
    }
}

fn print_nodes(nodes: &[NodeStatus]) -> Result {
    if nodes.is_empty() {
        return print("no nodes\n");
    }
    let row = |node: &NodeStatus| {
        vec![
            node.id.clone(),
            node.version.clone(),
            node.address.clone().unwrap_or_else(|| "-".to_owned()),
            time(Timestamp::from_seconds(node.since)),
            format!("{:.1} s ago", node.seen),
            node.claimed.to_string(),
            node.connections.to_string(),
        ]
    };
    let rows: Vec<_> = nodes.iter().map(row).collect();
    let heading = [
        "NODE", "VERSION", "ADDRESS", "SINCE", "SEEN", "BUDGET", "OPEN",
    ];
    print_table(&heading, &rows)
}

fn print_readers(readers: &[ReaderStatus]) -> Result {
    if readers.is_empty() {
        return print("\nno node reads changes\n");
    }
    print("\n")?;
    let row = |reader: &ReaderStatus| {
        vec![
            reader.database.clone(),
            reader.node.clone().unwrap_or_else(|| "-".to_owned()),
            reader.process.to_string(),
            reader
                .lag
                .map_or_else(|| "-".to_owned(), |lag| format!("{lag} B")),
        ]
    };
    let rows: Vec<_> = readers.iter().map(row).collect();
    print_table(&["DATABASE", "READ BY NODE", "PROCESS", "LAG"], &rows)
}

fn print_bus(bus: &Result<BusReport>) -> Result {
    print("\n")?;
    let row = match bus {
        Ok(bus) => vec![
            format!("{} of {}", bus.copies, bus.expected_copies),
            bus.messages.to_string(),
            format!("{} B", bus.bytes),
            "-".to_owned(),
        ],
        Err(error) => ["-", "-", "-", &error.text()].map(str::to_owned).into(),
    };
    print_table(
        &["COPIES IN JETSTREAM", "MESSAGES", "SIZE", "PROBLEM"],
        &[row],
    )
}

/// Prints nothing if the settings name no replicas.
fn print_replicas(replicas: &[ReplicaStatus]) -> Result {
    if replicas.is_empty() {
        return Ok(());
    }
    print("\n")?;
    let row = |replica: &ReplicaStatus| {
        let [lag, problem] = match &replica.lag {
            Ok(lag) => [format!("{lag} B"), "-".to_owned()],
            Err(fault) => ["-".to_owned(), fault.to_string()],
        };
        vec![replica.address.clone(), lag, problem]
    };
    let rows: Vec<_> = replicas.iter().map(row).collect();
    print_table(&["REPLICA", "LAG", "PROBLEM"], &rows)
}

fn document(
    nodes: &[NodeStatus],
    readers: &[ReaderStatus],
    bus: Option<&Result<BusReport>>,
    replicas: &[ReplicaStatus],
) -> Value {
    let node = |node: &NodeStatus| {
        json!({
            "id": node.id,
            "version": node.version,
            "address": node.address,
            "since": time(Timestamp::from_seconds(node.since)),
            "seen_seconds_ago": node.seen,
            "budget": node.claimed,
            "connections": node.connections,
        })
    };
    let reader = |reader: &ReaderStatus| {
        json!({
            "database": reader.database,
            "node": reader.node,
            "process": reader.process,
            "lag_bytes": reader.lag,
        })
    };
    let status_of_bus = bus.map(|bus| {
        let report = bus.as_ref().ok();
        json!({
            "copies": report.map(|report| report.copies),
            "expected_copies": report.map(|report| report.expected_copies),
            "messages": report.map(|report| report.messages),
            "bytes": report.map(|report| report.bytes),
            "problem": bus.as_ref().err().map(CliError::text),
        })
    });
    let replica = |replica: &ReplicaStatus| {
        json!({
            "address": replica.address,
            "lag_bytes": replica.lag.as_ref().ok(),
            "problem": replica.lag.as_ref().err().map(ToString::to_string),
        })
    };
    json!({
        "bus": status_of_bus,
        "nodes": nodes.iter().map(node).collect::<Vec<_>>(),
        "readers": readers.iter().map(reader).collect::<Vec<_>>(),
        "replicas": replicas.iter().map(replica).collect::<Vec<_>>(),
    })
}
