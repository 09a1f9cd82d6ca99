//! The measured costs of a socket, a change, an event and a request, for a node, PostgreSQL and
//! NATS.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Result;

/// The constants of the most recent measurement that was committed, as `model --measure` prints
/// them.
const LAST: &str = include_str!("../../model.json");

/// The costs, and where they come from.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Constants {
    pub(crate) date: String,
    pub(crate) source: String,
    pub(crate) node: NodeCosts,
    pub(crate) postgresql: PostgresCosts,
    pub(crate) nats: NatsCosts,
}

/// The costs of a node.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct NodeCosts {
    /// The memory in MiB of a node that reads the changes of a database.
    pub(crate) mib: f64,
    /// The memory in KiB of a socket with a subscription.
    pub(crate) socket_kib: f64,
    /// How many cores are used while changes arrive, independent of the rate of changes.
    pub(crate) active_cores: f64,
    /// The CPU time in microseconds for a change with its first event.
    pub(crate) change_us: f64,
    /// The CPU time in microseconds for each further event.
    pub(crate) event_us: f64,
    /// The CPU time in microseconds to publish a change on the bus.
    pub(crate) publish_us: f64,
    /// The CPU time in microseconds to receive a change over the bus instead of from PostgreSQL,
    /// beyond `change_us`.
    pub(crate) receive_us: f64,
    /// The CPU time in microseconds for a read by key over GraphQL.
    pub(crate) request_us: f64,
}

/// The costs of PostgreSQL.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct PostgresCosts {
    /// How many cores are used while the cluster is written to, independent of the rate of writes,
    /// without the walsenders.
    pub(crate) active_cores: f64,
    /// How many cores each node after the first costs.
    pub(crate) node_cores: f64,
    /// The CPU time in microseconds to write a row in a transaction of its own.
    pub(crate) write_us: f64,
    /// The CPU time in microseconds for a read by key over GraphQL.
    pub(crate) request_us: f64,
    /// How many cores a walsender uses while the cluster writes, independent of the rate of writes.
    pub(crate) walsender_cores: f64,
    /// The CPU time in microseconds that a walsender needs to decode a change of its database.
    pub(crate) decode_us: f64,
    /// The CPU time in milliseconds that a walsender needs to skip a MiB of WAL of other databases.
    pub(crate) foreign_ms_per_mib: f64,
    /// The bytes of WAL of a change, without its row.
    pub(crate) wal_bytes: f64,
}

/// The costs of three NATS servers together.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
pub(crate) struct NatsCosts {
    /// How many cores are used while messages arrive, independent of the rate of messages.
    pub(crate) active_cores: f64,
    /// The CPU time in microseconds for a message of the reader that no other node receives. A
    /// change in a transaction of its own is a message.
    pub(crate) message_us: f64,
    /// The CPU time in microseconds for each node that receives a message.
    pub(crate) delivery_us: f64,
    /// The bytes of a change in JetStream, without the row.
    pub(crate) change_bytes: f64,
}

impl Constants {
    /// Reads the constants in a file. Without a file, returns the constants of the most recent
    /// committed measurement.
    pub(crate) fn read(file: Option<&Path>) -> Result<Self> {
        let Some(file) = file else {
            return Ok(serde_json::from_str(LAST)?);
        };
        let read = std::fs::read_to_string(file).map_err(Into::into);
        let parsed = read.and_then(|text| Ok(serde_json::from_str(&text)?));
        parsed.map_err(|error: Box<dyn std::error::Error>| {
            format!("{}: {error}", file.display()).into()
        })
    }
}
