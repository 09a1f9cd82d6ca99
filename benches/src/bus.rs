//! Compares three nodes that use a bus with one node that uses none: walsenders and slots, CPU time
//! and latency.

mod table;

use std::time::Duration;

use serde_json::json;

use crate::Result;
use crate::accounts::BenchTenant;
use crate::arguments::Arguments;
use crate::feed::subscribers::Subscribers;
use crate::feed::writer::TABLE;
use crate::model::cluster::Cluster;
use crate::model::load::{Load, Usage};
use crate::node::{Node, eventually};
use crate::service::post;
use crate::setup;

const NAME: &str = "bus, three nodes with 1,000 sockets each";
/// The number of databases with subscribers. The changes are written to one of them.
const DATABASES: usize = 3;
const NODES: usize = 3;
const ROUNDS: usize = 3;
const TIMEOUT: Duration = Duration::from_mins(1);
/// How long nodes run before they are measured. A node that has just started logs in to each
/// database and checks the functions of the service there.
const WARM_UP: Duration = Duration::from_secs(25);

/// The result of one round.
#[derive(Clone, Copy, Debug)]
struct Round {
    usage: Usage,
    /// The usage in a period of the same length without changes.
    idle: Usage,
    /// The median latency of all events, in milliseconds.
    p50: f64,
    /// The latency in milliseconds that 99 % of the events do not exceed.
    p99: f64,
}

/// The rounds of each kind.
#[derive(Default)]
struct Rounds {
    /// One node with the sockets of one node.
    alone: Vec<Round>,
    /// One node with the sockets of all nodes.
    all: Vec<Round>,
    /// Three nodes with a bus.
    shared: Vec<Round>,
}

/// Measures three nodes and one node, alternately, and prints the medians. Does nothing if only
/// other cases are selected.
pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.wants(NAME) {
        return Ok(());
    }
    let cluster = Cluster::start(arguments.binary.as_deref()).await?;
    let mut others = Vec::new();
    for number in 1..DATABASES {
        others.push(tenant(&cluster, number as u32).await?);
    }
    let case = Case {
        load: Load {
            sockets: 1000,
            events: 1,
            rate: 1000,
            seconds: arguments.whole_seconds(),
            is_settled: true,
        },
        cluster,
        others,
    };
    // One node with as many sockets as three nodes, to which each change is sent as often.
    let all = Load {
        sockets: case.load.sockets * NODES,
        events: case.load.events * NODES,
        ..case.load
    };
    let mut rounds = Rounds::default();
    for _ in 0..ROUNDS {
        rounds
            .shared
            .push(case.round(case.load, NODES, true).await?);
        rounds.alone.push(case.round(case.load, 1, false).await?);
        rounds.all.push(case.round(all, 1, false).await?);
    }
    println!(
        "\n{NAME}: {DATABASES} databases with subscribers, {} changes/s offered in one of them, \
         each in a transaction of its own and with one event at each node; medians of {ROUNDS} \
         rounds of {} s in turn\n",
        case.load.rate, case.load.seconds
    );
    table::print(&rounds);
    Ok(())
}

/// Creates a further tenant with the table for changes. Returns its owner.
async fn tenant(cluster: &Cluster, number: u32) -> Result<BenchTenant> {
    let (tenant, _) = setup::owner(&cluster.demo, number).await?;
    let authorization = format!("Authorization: Bearer {}\r\n", tenant.owner_token);
    let body = json!({ "q": TABLE }).to_string();
    post(tenant.address, "/api/v4/sql", &authorization, &body).await?;
    Ok(tenant)
}

struct Case {
    load: Load,
    cluster: Cluster,
    /// The owners of the databases to which nothing is written.
    others: Vec<BenchTenant>,
}

impl Case {
    /// Starts `count` nodes, measures them under `load`, and stops them.
    async fn round(&self, load: Load, count: usize, has_bus: bool) -> Result<Round> {
        self.walsenders(0).await?;
        let mut nodes = Vec::new();
        for number in 0..count {
            let name = format!("node{number}");
            nodes.push(self.cluster.node(&name, has_bus).await?);
        }
        let nodes: Vec<&Node> = nodes.iter().collect();
        let sockets = load.open(&self.cluster, &nodes).await?;
        let mut idle = Vec::new();
        for node in &nodes {
            for tenant in &self.others {
                let query = [vec![
                    "subscription { BenchFeedMessageAdded { id } }".to_owned(),
                ]];
                let open = Subscribers::open_at(node.address, &tenant.owner_token, &query);
                idle.push(open.await?);
            }
        }
        self.walsenders(DATABASES).await?;
        tokio::time::sleep(WARM_UP).await;
        let idle = load.idle(&self.cluster, &nodes).await?;
        let usage = load.measure(&self.cluster, &nodes, &sockets).await?;
        let mut latencies: Vec<i64> = Vec::new();
        for sockets in &sockets {
            latencies.extend(&sockets.received().latencies);
        }
        latencies.sort_unstable();
        Ok(Round {
            usage,
            idle,
            p50: percentile(&latencies, 0.50),
            p99: percentile(&latencies, 0.99),
        })
    }

    /// Waits until PostgreSQL has this number of walsenders. Shortly after nodes with a bus have
    /// started, there may be more.
    async fn walsenders(&self, count: usize) -> Result<()> {
        let client = self.cluster.demo.client().await?;
        let counted = async || {
            let query = "select count(*) from pg_stat_replication";
            let now: i64 = client.query_one(query, &[]).await?.get(0);
            Ok((usize::try_from(now)? == count).then_some(()))
        };
        eventually(&format!("{count} walsenders"), TIMEOUT, counted).await
    }
}

/// A percentile of sorted microseconds, in milliseconds. `share` is between 0 and 1.
fn percentile(sorted: &[i64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    let latency = sorted.get((last as f64 * share).round() as usize);
    latency.map_or(f64::NAN, |latency| *latency as f64 / 1e3)
}
