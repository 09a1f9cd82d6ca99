//! Nodes on the PostgreSQL of a demo, with NATS servers.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use clap::Parser as _;

use super::nats::Nats;
use crate::Result;
use crate::arguments::Arguments;
use crate::feed::writer::TABLE;
use crate::node::Node;
use crate::service::Service;

/// NATS servers, and a demo. Only the demo's PostgreSQL is used.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) nats: Nats,
    pub(crate) demo: Service,
    /// How many nodes with a bus were started.
    on_bus: AtomicUsize,
}

impl Cluster {
    /// Starts a demo with the table for changes, and NATS servers.
    pub(crate) async fn start(binary: Option<&Path>) -> Result<Self> {
        let mut arguments = Arguments::try_parse_from(["tidegate-bench"])?;
        arguments.binary = binary.map(Path::to_owned);
        // 100 is PostgreSQL's default. With another value the demo would have to restart
        // PostgreSQL.
        arguments.max_connections = 100;
        let demo = Service::start(&arguments, None).await?;
        let nats = Nats::start(&demo.path).await?;
        demo.run(TABLE).await?;
        demo.run("grant select on bench_feed to demo").await?;
        Ok(Self {
            nats,
            demo,
            on_bus: AtomicUsize::new(0),
        })
    }

    /// Starts a node, with the bus or without. Consecutive nodes with a bus use different NATS
    /// servers.
    pub(crate) async fn node(&self, name: &str, has_bus: bool) -> Result<Node> {
        let bus = has_bus.then(|| {
            let number = self.on_bus.fetch_add(1, Ordering::Relaxed);
            ("TIDEGATE_BUS_URL", self.nats.url(number))
        });
        Node::start(&self.demo, name, bus.as_slice()).await
    }
}
