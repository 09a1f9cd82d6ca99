//! Measures what a read by key costs with several nodes, and with replicas.

mod replicas;
mod standby;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::arguments::Arguments;
use crate::load::{self, Caller, Load, Plan};
use crate::node::Node;
use crate::service::Service;
use crate::shape::Shape;
use crate::shape::header::Endpoint;
use crate::{Result, process};
use standby::Standby;

const NAME: &str = "nodes";
/// The case whose requests are sent.
const SHAPE: &str = "by key";
/// The numbers of nodes that are compared.
const NODES: [usize; 2] = [1, 3];
/// Requests a second at each node, of all connections together. All nodes together must stay well
/// below the limit of the machine, because the cost of a request is different near it.
const RATE: u32 = 1_500;
/// How long requests are sent before the measurement. Within this time each node gets its share of
/// the connections.
const WARM_UP: Duration = Duration::from_secs(6);

/// Runs the selected cases.
pub(crate) async fn run(service: &Service, arguments: &Arguments, shapes: &[Shape]) -> Result<()> {
    let cases = [NAME, replicas::NAME];
    if !cases.iter().any(|name| arguments.wants(name)) {
        return Ok(());
    }
    let shape = shapes.iter().find(|shape| shape.header.name == SHAPE);
    let reads = Reads {
        shape: shape.ok_or("no case `by key`")?,
        service,
        arguments,
    };
    if arguments.wants(NAME) {
        compare(&reads).await?;
    }
    if arguments.wants(replicas::NAME) {
        replicas::compare(&reads).await?;
    }
    Ok(())
}

/// Prints what a read costs with one node and with several nodes, which are measured alternately.
async fn compare(reads: &Reads<'_>) -> Result<()> {
    let mut nodes = Vec::new();
    for number in 0..NODES[1] {
        let name = format!("node{number}");
        nodes.push(Node::start(reads.service, &name, &[]).await?);
    }
    reads.send(&nodes, (RATE, WARM_UP)).await?;
    let mut costs = [Cost::default(); 2];
    for _ in 0..reads.arguments.slices() {
        for (count, cost) in NODES.into_iter().zip(&mut costs) {
            let load = (RATE, reads.arguments.slice());
            cost.add(reads.run(&nodes[..count], &[], load).await?);
        }
    }
    reads.head(&["nodes", "reads/s", "node us", "of one", "pg us"]);
    let one = costs[0].each(costs[0].nodes);
    for (count, cost) in NODES.into_iter().zip(costs) {
        let of_node = cost.each(cost.nodes);
        reads.row(&[
            format!("{NAME}: {count}"),
            format!("{:.0}", cost.rate()),
            format!("{of_node:.1}"),
            format!("{:.2}", of_node / one),
            format!("{:.1}", cost.each(cost.primary)),
        ]);
    }
    Ok(())
}

/// Reads by key, which the owner sends at a constant rate.
struct Reads<'a> {
    shape: &'a Shape,
    service: &'a Service,
    arguments: &'a Arguments,
}

/// The cost of reads. Times are CPU times in seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    reads: f64,
    seconds: f64,
    /// The CPU time of all nodes together.
    nodes: f64,
    primary: f64,
    /// The CPU time of all replicas together.
    replicas: f64,
}

impl Cost {
    fn add(&mut self, other: Self) {
        self.reads += other.reads;
        self.seconds += other.seconds;
        self.nodes += other.nodes;
        self.primary += other.primary;
        self.replicas += other.replicas;
    }

    fn rate(&self) -> f64 {
        self.reads / self.seconds
    }

    /// The CPU time for each read, in microseconds.
    fn each(&self, cpu: f64) -> f64 {
        cpu * 1e6 / self.reads
    }
}

impl Reads<'_> {
    /// Sends `load.0` reads a second to each node for the time `load.1`, and measures.
    async fn run(
        &self,
        nodes: &[Node],
        standbys: &[Standby],
        load: (u32, Duration),
    ) -> Result<Cost> {
        let before = self.cpu(nodes, standbys)?;
        let (reads, seconds) = self.send(nodes, load).await?;
        let after = self.cpu(nodes, standbys)?;
        Ok(Cost {
            reads,
            seconds,
            nodes: after[0] - before[0],
            primary: after[1] - before[1],
            replicas: after[2] - before[2],
        })
    }

    /// The CPU times of the nodes, of the primary, and of the standbys.
    fn cpu(&self, nodes: &[Node], standbys: &[Standby]) -> Result<[f64; 3]> {
        let [mut of_nodes, mut of_standbys] = [0.0; 2];
        for node in nodes {
            of_nodes += node.cpu()?;
        }
        for standby in standbys {
            of_standbys += process::family_cpu(standby.postmaster())?;
        }
        let primary = process::family_cpu(self.service.postmaster)?;
        Ok([of_nodes, primary, of_standbys])
    }

    /// Sends reads to all nodes at the same time. Returns the number of reads, and the seconds that
    /// they took.
    async fn send(&self, nodes: &[Node], (rate, time): (u32, Duration)) -> Result<(f64, f64)> {
        let connections = self.arguments.connections();
        let load = Load {
            connections,
            threads: 1,
            time,
            interval: Some(Duration::from_secs(1) * connections as u32 / rate),
            once: false,
        };
        let sending = nodes.iter().map(|node| {
            let plan = self.plan(node.address);
            tokio::spawn(async move {
                let sent = load::run(&plan, load).await;
                sent.map_err(|error| error.to_string())
            })
        });
        let sending: Vec<_> = sending.collect();
        let (mut reads, mut seconds) = (0.0, 0.0_f64);
        for sent in sending {
            let sent = sent.await??;
            if sent.failures > 0 {
                return Err(format!("{} reads failed", sent.failures).into());
            }
            reads += sent.latencies.len() as f64;
            seconds = seconds.max(sent.elapsed.as_secs_f64());
        }
        Ok((reads, seconds))
    }

    fn plan(&self, address: SocketAddr) -> Arc<Plan> {
        let owner = Caller {
            token: Some(self.service.owner_token.clone()),
            number: 0,
        };
        Arc::new(Plan {
            address,
            path: Endpoint::GraphQl.path().to_owned(),
            accept: self.shape.header.accept.clone(),
            callers: [owner].into(),
            body: self.shape.body(Endpoint::GraphQl),
        })
    }

    /// Prints the names of the columns.
    fn head(&self, columns: &[&str]) {
        println!();
        let names: Vec<_> = columns.iter().map(ToString::to_string).collect();
        self.row(&names);
        if self.arguments.markdown {
            println!("| --- |{}", " ---: |".repeat(columns.len() - 1));
        }
    }

    fn row(&self, columns: &[String]) {
        if self.arguments.markdown {
            println!("| {} |", columns.join(" | "));
            return;
        }
        let (first, rest) = columns.split_at(1);
        let rest: Vec<_> = rest.iter().map(|column| format!("{column:>10}")).collect();
        println!("{:<32} {}", first.concat(), rest.join(" "));
    }
}
