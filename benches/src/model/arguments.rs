//! The command line of the model.

use std::path::PathBuf;

use clap::Args;

/// Prints the resources of nodes, PostgreSQL and NATS that a size needs, and the limit that is
/// reached first.
///
/// Every tenant has subscribers on every node. Each of their changes is a row in a transaction of
/// its own. CPU is in cores of the machine on which the constants were measured.
#[derive(Args, Clone, Debug)]
pub(crate) struct ModelArguments {
    #[command(flatten)]
    pub(crate) size: ModelSize,
    #[command(flatten)]
    pub(crate) limits: Limits,
    /// The constants, as `--measure` prints them [default: benches/model.json]
    #[arg(long, value_name = "FILE")]
    pub(crate) constants: Option<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Measure the constants on this machine in about a minute, and print them
    #[arg(long, conflicts_with = "check")]
    pub(crate) measure: bool,
    /// Measure the constants with one node, and compare what they predict for one and for three
    /// nodes at another load with a run, within 30 %
    #[arg(long)]
    pub(crate) check: bool,
    /// The binary of the service for `--measure` and `--check`, instead of a new build
    #[arg(long, value_name = "FILE")]
    pub(crate) binary: Option<PathBuf>,
}

/// The load of the service.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct ModelSize {
    /// Sockets, each with one subscription
    #[arg(long, default_value_t = 1000, value_name = "N")]
    pub(crate) sockets: u32,
    /// Tenants with subscribers
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub(crate) tenants: u32,
    /// Changes a second to subscribed tables, of all tenants together
    #[arg(long, default_value_t = 100.0, value_name = "N")]
    pub(crate) changes: f64,
    /// Events of a change: sockets that receive it
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    pub(crate) events_per_change: f64,
    /// The size of a changed row
    #[arg(long, default_value_t = 100.0, value_name = "BYTES")]
    pub(crate) row_bytes: f64,
    /// Requests a second, each a read by key
    #[arg(long, default_value_t = 0.0, value_name = "N")]
    pub(crate) requests: f64,
    /// Requests at the same time on one node
    #[arg(long, default_value_t = 16, value_name = "N")]
    pub(crate) requests_at_once: u32,
    /// Nodes [default: the fewest that use at most 70 % of their CPU, memory and connections]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) nodes: Option<u32>,
}

/// The resources that are available.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Cores of a node
    #[arg(long, default_value_t = 4.0, value_name = "N")]
    pub(crate) node_cores: f64,
    /// Memory of a node
    #[arg(long, default_value_t = 4096.0, value_name = "MIB")]
    pub(crate) node_memory: f64,
    /// The setting `connections` of a node
    #[arg(long, default_value_t = 10_000.0, value_name = "N")]
    pub(crate) connections: f64,
    /// Cores of PostgreSQL
    #[arg(long, default_value_t = 4.0, value_name = "N")]
    pub(crate) postgresql_cores: f64,
    /// PostgreSQL's `max_connections`
    #[arg(long, default_value_t = 100.0, value_name = "N")]
    pub(crate) max_connections: f64,
    /// PostgreSQL's `max_wal_senders`
    #[arg(long, default_value_t = 10.0, value_name = "N")]
    pub(crate) max_wal_senders: f64,
    /// PostgreSQL's `max_replication_slots`
    #[arg(long, default_value_t = 10.0, value_name = "N")]
    pub(crate) max_replication_slots: f64,
    /// Cores of a NATS server
    #[arg(long, default_value_t = 2.0, value_name = "N")]
    pub(crate) nats_cores: f64,
    /// The setting `bus_bytes`
    #[arg(long, default_value_t = 1024.0, value_name = "MIB")]
    pub(crate) bus_bytes: f64,
}
