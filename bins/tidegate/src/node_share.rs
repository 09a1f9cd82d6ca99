//! Keeps the connections of this node to PostgreSQL within its share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidegate_server::MetricsSource;
use tidegate_server::text_format::write_metric;
use tidegate_service::{
    Limits, NodeDemand, NodeIdentity, NodeRegistration, NodeShare, ServiceConnections,
    shared_connections,
};
use tidegate_wire::ConnectError;
use tokio::time::{MissedTickBehavior, interval};

use crate::cli_error::Result;
use crate::pool::UserPool;
use crate::ports;
use crate::service::Service;
use crate::settings::Settings;

/// The interval between two exchanges. In an exchange, this node publishes its share and reads the
/// shares of the other nodes. The interval is short enough that a new node has its share within
/// five seconds.
const INTERVAL: Duration = Duration::from_secs(1);
/// This node increases its share only after this number of consecutive exchanges with the same
/// number of nodes. After a restart of PostgreSQL, all nodes reconnect at the same time. They then
/// need this number of exchanges to see each other.
const STEADY: u32 = 3;

/// Keeps this node's connections within its share while [`run`](Self::run) is polled.
pub(crate) struct ShareKeeper {
    registration: NodeRegistration,
    control: Arc<ServiceConnections>,
    /// The maximum number of connections that all nodes may open together.
    total: usize,
    /// The number of nodes in the setting `nodes`.
    expected: usize,
    /// The share from the most recent exchange that succeeded: this node's connections, and the
    /// number of nodes.
    share: NodeShare,
    /// How many consecutive exchanges have seen the same number of nodes.
    steady: u32,
    /// Whether the most recent exchange failed.
    failing: bool,
    published: Arc<PublishedShare>,
}

/// The share for `/metrics`.
#[derive(Default)]
pub(crate) struct PublishedShare {
    nodes: AtomicUsize,
    connections: AtomicUsize,
}

impl ShareKeeper {
    /// Registers this process as a node.
    pub(crate) async fn register(service: &Service, settings: &Settings) -> Result<Self> {
        let identity = NodeIdentity {
            id: service.node,
            version: env!("CARGO_PKG_VERSION"),
            since: ports::seconds(),
        };
        let server = service.server;
        let mut keeper = Self {
            registration: NodeRegistration::new(service.config.clone(), identity),
            control: service.control.clone(),
            total: shared_connections(server.max_connections, server.reserved_connections),
            expected: usize::try_from(settings.nodes).unwrap_or(usize::MAX),
            share: NodeShare {
                nodes: 0,
                connections: 0,
            },
            steady: 0,
            failing: false,
            published: Arc::default(),
        };
        let least = least_claim();
        let share = keeper.exchange(keeper.total, least, 0).await?;
        keeper.adopt(share);
        Ok(keeper)
    }

    /// The number of connections that this node may open for users, which is at least 1.
    pub(crate) fn for_users(&self) -> usize {
        self.left_for_users(self.limits())
    }

    fn left_for_users(&self, limits: Limits) -> usize {
        let left = limits.left_for_users(self.share.connections);
        left.saturating_sub(self.control.streams()).max(1)
    }

    fn limits(&self) -> Limits {
        let (connections, databases) = (self.share.connections, self.control.polled_databases());
        Limits::for_node(connections).with_polled_databases(connections, databases)
    }

    /// The share for `/metrics`.
    pub(crate) fn published(&self) -> Arc<PublishedShare> {
        self.published.clone()
    }

    /// Exchanges shares with the other nodes and applies the share of this node, until the future
    /// is dropped.
    pub(crate) async fn run(mut self, users: UserPool) {
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            // Besides its share, this node claims the open connections that exceed the limits,
            // until they are closed.
            let excess = self.enforce(&users);
            let claimed = self.share.connections.max(least_claim()) + excess;
            let most = if self.steady >= STEADY {
                self.total
            } else {
                self.share.connections
            };
            let open = users.held() + self.control.open_connections();
            match self.exchange(most, claimed, open).await {
                Ok(share) => {
                    self.adopt(share);
                    self.enforce(&users);
                }
                Err(error) => {
                    if !self.failing {
                        tracing::warn!(%error, "cannot compare this node's share of the connections with other nodes; keeping it");
                    }
                    (self.failing, self.steady) = (true, 0);
                }
            }
        }
    }

    async fn exchange(
        &mut self,
        most: usize,
        claimed: usize,
        open: usize,
    ) -> std::result::Result<NodeShare, ConnectError> {
        let demand = NodeDemand {
            total: self.total,
            expected: self.expected,
            most,
            claimed,
            open,
        };
        self.registration.exchange(&demand).await
    }

    fn adopt(&mut self, share: NodeShare) {
        self.failing = false;
        self.steady = if share.nodes == self.share.nodes {
            self.steady.saturating_add(1)
        } else {
            0
        };
        if share != self.share {
            let NodeShare { nodes, connections } = share;
            tracing::info!(
                nodes,
                connections,
                "this node's share of PostgreSQL's connections"
            );
        }
        self.share = share;
        let published = &self.published;
        published.nodes.store(share.nodes, Ordering::Relaxed);
        published
            .connections
            .store(share.connections, Ordering::Relaxed);
    }

    /// Applies the share to the service connections and the pool. Returns how many open connections
    /// exceed the limits.
    fn enforce(&self, users: &UserPool) -> usize {
        let limits = self.limits();
        self.control.set_limits(limits) + users.set_capacity(self.left_for_users(limits))
    }
}

/// The smallest number of connections that a node has, however small its share is.
fn least_claim() -> usize {
    Limits::for_node(0).least()
}

impl MetricsSource for PublishedShare {
    fn write(&self, text: &mut String) -> fmt::Result {
        for (name, help, value) in [
            (
                "tidegate_nodes",
                "Nodes that share the connections of PostgreSQL.",
                &self.nodes,
            ),
            (
                "tidegate_node_connections",
                "Connections to PostgreSQL that this node may have open, of all kinds.",
                &self.connections,
            ),
        ] {
            write_metric(text, (name, "gauge"), help, value.load(Ordering::Relaxed))?;
        }
        Ok(())
    }
}
