//! Registers a node in the control database, and divides PostgreSQL's connections among the nodes.
//!
//! The registration is a session whose `application_name` describes the node. PostgreSQL ends this
//! session at the same time as the node's other sessions, so a node is registered exactly as long
//! as it may hold connections.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tidegate_wire::{Config, ConnectError};
use tokio::time::timeout;
use tokio_postgres::{Client, SimpleQueryMessage};

use super::connect::{CONTROL, connect};
use super::error;

/// The time limit of one call of [`NodeRegistration::exchange`].
const TIMEOUT: Duration = Duration::from_secs(5);

/// An SQL condition that selects the rows `a` of `pg_stat_activity` that are registrations of
/// nodes. Only the administrator may connect to the control database, so no user can pretend to be
/// a node.
pub(crate) const IS_REGISTRATION: &str = "a.datname = pg_catalog.current_database() \
    AND a.application_name ~ '^tidegate node [0-9a-f]{8} [^ ]+ [0-9]+ [0-9]+ [0-9]+$'";

/// The part of a node's registration that does not change.
#[derive(Clone, Debug)]
pub struct NodeIdentity {
    /// The random id of the process.
    pub id: u32,
    /// The version of the program.
    pub version: &'static str,
    /// When the node started, in seconds since 1970.
    pub since: u64,
}

/// The input of [`NodeRegistration::exchange`]: the limits of the share, and the connections that
/// the node has.
#[derive(Clone, Copy, Debug)]
pub struct NodeDemand {
    /// How many connections all nodes may open together.
    pub total: usize,
    /// How many nodes are expected. The total is divided among this number of nodes, or among all
    /// registered nodes if there are more.
    pub expected: usize,
    /// The largest share, as a number of connections, that the node accepts in this exchange.
    pub most: usize,
    /// The total number of connections that the node may have open until it has applied the share
    /// that [`NodeRegistration::exchange`] returns.
    pub claimed: usize,
    /// How many connections the node has open.
    pub open: usize,
}

/// A node's share of the connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeShare {
    /// How many nodes are registered, including this one.
    pub nodes: usize,
    /// How many connections the node may open. The node has claimed at least this number.
    pub connections: usize,
}

/// The registration of this process. Dropping it ends the registration.
pub struct NodeRegistration {
    config: Arc<Config>,
    identity: NodeIdentity,
    client: Option<Client>,
}

impl NodeRegistration {
    /// Creates a registration. The node is registered by the first exchange.
    pub fn new(config: Arc<Config>, identity: NodeIdentity) -> Self {
        Self {
            config,
            identity,
            client: None,
        }
    }

    /// Publishes how many connections the node claims, and returns its share. The share is an equal
    /// part of the total, but at most [`NodeDemand::most`], and at most the number of connections
    /// that the other nodes have not claimed.
    ///
    /// The node publishes the larger of its share and [`NodeDemand::claimed`] as its claim. If the
    /// share is smaller, the node closes connections and publishes a smaller claim with a later
    /// exchange. A share never exceeds what the other nodes have left. So the sum of all claims can
    /// exceed the total only because a node claims a minimum even if nothing is left.
    ///
    /// # Errors
    ///
    /// If the control database cannot be reached. The node is registered again by the next
    /// exchange.
    pub async fn exchange(&mut self, demand: &NodeDemand) -> Result<NodeShare, ConnectError> {
        let exchanging = async {
            let client = match self.client.take() {
                Some(client) if !client.is_closed() => client,
                _ => {
                    let database = &self.config.control_database;
                    let (client, connection) = connect(&self.config, database, CONTROL).await?;
                    tokio::spawn(connection);
                    client
                }
            };
            let messages = client
                .simple_query(&exchange_sql(&self.identity, demand))
                .await;
            let messages = messages.map_err(|error| error::of_connection(&error))?;
            Ok((client, read_share(&messages)))
        };
        let exchanged = timeout(TIMEOUT, exchanging).await;
        let (client, share) = exchanged.unwrap_or(Err(ConnectError::TimedOut(TIMEOUT)))?;
        self.client = Some(client);
        share.ok_or_else(|| ConnectError::Protocol("a share of the connections".to_owned()))
    }
}

impl fmt::Debug for NodeRegistration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeRegistration")
            .field("identity", &self.identity)
            .finish_non_exhaustive()
    }
}

/// The statements that compute and claim the share under a lock. They are sent as one simple query,
/// which PostgreSQL runs as one transaction. The lock ends with this transaction, so a node that is
/// suspended cannot hold the lock.
fn exchange_sql(identity: &NodeIdentity, demand: &NodeDemand) -> String {
    let NodeIdentity { id, version, since } = identity;
    let NodeDemand {
        total,
        expected,
        most,
        claimed,
        open,
    } = demand;
    format!(
        "SELECT pg_catalog.pg_advisory_xact_lock(7133, 5); \
         WITH others AS ( \
             SELECT pg_catalog.count(*) + 1 AS nodes, coalesce(pg_catalog.sum( \
                 pg_catalog.split_part(a.application_name, ' ', 5)::int8), 0) AS claimed \
             FROM pg_catalog.pg_stat_activity a \
             WHERE {IS_REGISTRATION} AND a.pid <> pg_catalog.pg_backend_pid()), \
         share AS ( \
             SELECT o.nodes, greatest(0, least({most}, {total} - o.claimed, \
                 {total} / greatest(o.nodes, {expected})))::int8 AS connections FROM others o) \
         SELECT s.nodes, s.connections, pg_catalog.set_config('application_name', \
             pg_catalog.format('tidegate node {id:08x} {version} %s {open} {since}', \
                 greatest(s.connections, {claimed})), false) FROM share s"
    )
}

fn read_share(messages: &[SimpleQueryMessage]) -> Option<NodeShare> {
    let number = |row: &tokio_postgres::SimpleQueryRow, place| row.get(place)?.parse().ok();
    messages.iter().find_map(|message| match message {
        SimpleQueryMessage::Row(row) if row.len() == 3 => Some(NodeShare {
            nodes: number(row, 0)?,
            connections: number(row, 1)?,
        }),
        _ => None,
    })
}
