//! Computes the resources that a size needs.

use serde::Serialize;

use super::arguments::{Limits, ModelSize};
use super::constants::Constants;

/// The interval of the pings of a socket, in seconds. A ping with its pong costs as much as an
/// event.
const PING: f64 = 25.0;
/// The memory in MiB for the changes that a node keeps: for one database, and the maximum for all
/// databases together.
const KEPT_MIB: (f64, f64) = (64.0, 1024.0);
/// How many messages a second a reader sends to report its position.
const HEARTBEATS: f64 = 5.0;
/// How long JetStream keeps messages, in seconds.
const WINDOW: f64 = 300.0;
const SERVERS: f64 = 3.0;
const MIB: f64 = 1_048_576.0;
/// The maximum share of a node's CPU, memory and connections that the model lets a size use.
const MAX_SHARE: f64 = 0.7;
/// The maximum number of nodes that is tried.
const MAX_NODES: u32 = 100;

/// The resources that are needed, with a bus or without.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Needs {
    pub(crate) node: NodeNeeds,
    pub(crate) postgresql: PostgresNeeds,
    /// The resources of each NATS server; `None` without a bus.
    pub(crate) nats: Option<NatsNeeds>,
}

/// The resources of the busiest node.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct NodeNeeds {
    pub(crate) cores: f64,
    pub(crate) memory_mib: f64,
    pub(crate) connections: f64,
}

/// The resources of PostgreSQL.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct PostgresNeeds {
    pub(crate) cores: f64,
    /// How many of the cores all walsenders together use.
    pub(crate) decoding_cores: f64,
    pub(crate) max_connections: f64,
    pub(crate) max_wal_senders: f64,
    pub(crate) max_replication_slots: f64,
}

/// The resources of a NATS server.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct NatsNeeds {
    pub(crate) cores: f64,
    pub(crate) messages: f64,
    pub(crate) mib_per_second: f64,
    pub(crate) bus_mib: f64,
}

/// A needed amount and its limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limited {
    pub(crate) what: &'static str,
    pub(crate) needed: f64,
    pub(crate) has: f64,
}

/// The fewest nodes whose CPU, memory and connections are used to at most 70 %.
pub(crate) fn nodes(size: &ModelSize, constants: &Constants, limits: &Limits) -> u32 {
    let fits = |nodes: &u32| {
        let has_bus = *nodes > 1;
        let node = Needs::of(size, constants, (*nodes, has_bus)).node;
        let needs = node.limited(limits);
        needs.iter().all(|it| it.needed <= MAX_SHARE * it.has)
    };
    size.nodes
        .or_else(|| (1..MAX_NODES).find(fits))
        .unwrap_or(MAX_NODES)
}

impl Needs {
    /// Computes the resources that a size needs on this many nodes, with a bus or without.
    pub(crate) fn of(
        size: &ModelSize,
        constants: &Constants,
        (nodes, has_bus): (u32, bool),
    ) -> Self {
        let tenants = f64::from(size.tenants);
        let nodes = f64::from(nodes);
        let streams = if has_bus { tenants } else { tenants * nodes };
        let kept = if has_bus {
            tenants
        } else {
            tenants * (nodes + 1.0)
        };
        let mut postgresql = PostgresNeeds::of(size, constants, (nodes, streams));
        postgresql.max_replication_slots = kept;
        let at_once = tenants + f64::from(size.requests_at_once);
        postgresql.max_connections = (3.0 + nodes * (1.4 * at_once + 25.0)).ceil();
        Self {
            node: NodeNeeds::of(size, constants, (nodes, has_bus)),
            postgresql,
            nats: has_bus.then(|| NatsNeeds::of(size, constants, nodes)),
        }
    }

    /// All amounts that have a limit.
    pub(crate) fn limited(&self, limits: &Limits) -> Vec<Limited> {
        let postgresql = self.postgresql;
        let limited = |what, needed, has| Limited { what, needed, has };
        let mut all = self.node.limited(limits).to_vec();
        all.extend([
            limited(
                "cores of PostgreSQL",
                postgresql.cores,
                limits.postgresql_cores,
            ),
            limited(
                "max_connections",
                postgresql.max_connections,
                limits.max_connections,
            ),
            limited(
                "max_wal_senders",
                postgresql.max_wal_senders,
                limits.max_wal_senders,
            ),
            limited(
                "max_replication_slots",
                postgresql.max_replication_slots,
                limits.max_replication_slots,
            ),
        ]);
        if let Some(nats) = self.nats {
            all.push(limited(
                "cores of a NATS server",
                nats.cores,
                limits.nats_cores,
            ));
            all.push(limited("bus_bytes, MiB", nats.bus_mib, limits.bus_bytes));
        }
        all
    }

    /// The amount that reaches its limit first when the size grows.
    pub(crate) fn first(&self, limits: &Limits) -> Option<Limited> {
        let share = |it: &Limited| it.needed / it.has;
        let all = self.limited(limits).into_iter();
        all.max_by(|one, other| share(one).total_cmp(&share(other)))
    }
}

impl NodeNeeds {
    fn of(size: &ModelSize, constants: &Constants, (nodes, has_bus): (f64, bool)) -> Self {
        let costs = &constants.node;
        let sockets = f64::from(size.sockets) / nodes;
        let further = (size.events_per_change / nodes - 1.0).max(0.0) * size.changes;
        let events = further + sockets / PING;
        // In the worst case, one node publishes the changes of all tenants.
        let publish = if has_bus { costs.publish_us } else { 0.0 };
        let active = if size.changes > 0.0 {
            costs.active_cores
        } else {
            0.0
        };
        let us = size.changes * (costs.change_us + publish)
            + events * costs.event_us
            + size.requests / nodes * costs.request_us;
        let kept = (KEPT_MIB.0 * f64::from(size.tenants)).min(KEPT_MIB.1);
        Self {
            cores: active + us / 1e6,
            memory_mib: costs.mib + kept + sockets * costs.socket_kib / 1024.0,
            connections: (sockets + f64::from(size.requests_at_once)).ceil(),
        }
    }

    fn limited(&self, limits: &Limits) -> [Limited; 3] {
        let limited = |what, needed, has| Limited { what, needed, has };
        [
            limited("cores of a node", self.cores, limits.node_cores),
            limited("memory of a node, MiB", self.memory_mib, limits.node_memory),
            limited(
                "connections of a node",
                self.connections,
                limits.connections,
            ),
        ]
    }
}

impl PostgresNeeds {
    /// `streams` is the number of walsenders.
    fn of(size: &ModelSize, constants: &Constants, (nodes, streams): (f64, f64)) -> Self {
        let costs = &constants.postgresql;
        // A walsender decodes the changes of its database, and reads the WAL of all databases.
        let of_one = size.changes / f64::from(size.tenants.max(1));
        let foreign = (size.changes - of_one) * (costs.wal_bytes + size.row_bytes) / MIB;
        let (active, walsender) = if size.changes > 0.0 {
            (costs.active_cores, costs.walsender_cores)
        } else {
            (0.0, 0.0)
        };
        let active = active + (nodes - 1.0) * costs.node_cores;
        let walsender =
            walsender + of_one * costs.decode_us / 1e6 + foreign * costs.foreign_ms_per_mib / 1e3;
        let us = size.changes * costs.write_us + size.requests * costs.request_us;
        Self {
            cores: active + us / 1e6 + streams * walsender,
            decoding_cores: streams * walsender,
            max_connections: 0.0,
            max_wal_senders: streams,
            max_replication_slots: 0.0,
        }
    }
}

impl NatsNeeds {
    fn of(size: &ModelSize, constants: &Constants, nodes: f64) -> Self {
        let costs = &constants.nats;
        let messages = size.changes + HEARTBEATS * f64::from(size.tenants);
        let message_us = costs.message_us + (nodes - 1.0) * costs.delivery_us;
        let bytes = size.changes * (costs.change_bytes + size.row_bytes);
        Self {
            cores: (costs.active_cores + messages * message_us / 1e6) / SERVERS,
            messages,
            mib_per_second: bytes / MIB,
            bus_mib: bytes * WINDOW / MIB,
        }
    }
}
