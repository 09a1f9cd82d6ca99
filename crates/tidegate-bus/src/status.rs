//! The state of the bus, for operators.

use tidegate_sql::DatabaseName;

/// The state of a node's bus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BusStatus {
    /// Whether there is a connection to a NATS server.
    pub connected: bool,
    /// Why the bus does not work, or works only in part; `None` if it works.
    pub problem: Option<String>,
    /// The databases whose changes this node needs, sorted by name.
    pub databases: Vec<DatabaseRole>,
    /// How many messages this node has sent as the reader, to the nodes and to JetStream.
    pub sent: u64,
    /// How many messages could not be sent, because the connection was broken or too slow.
    pub unsent: u64,
    /// How many messages of readers this node has received.
    pub received: u64,
    /// How many messages were refused, because they were not sealed with this cluster's key.
    pub refused: u64,
    /// How many messages were read from JetStream because live messages were missing.
    pub from_store: u64,
    /// How often a stream of this node had to read the log itself after its start, because the bus
    /// did not deliver the changes.
    pub from_slot: u64,
}

/// The role of a node for a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseRole {
    /// The database.
    pub database: DatabaseName,
    /// Whether this node reads the changes for all nodes.
    pub reads: bool,
}
