//! Compares what the constants of one node predict with runs of one and of three nodes.

use std::process::ExitCode;

use super::arguments::{ModelArguments, Size};
use super::cluster::Cluster;
use super::constants::Constants;
use super::fit::{Loads, ROW, Runs};
use super::load::{Load, Usage};
use super::needs::Needs;
use crate::Result;

/// How far a measured value may be from the predicted one.
const TOLERANCE: f64 = 0.3;
/// How often all is measured again because other programs disturbed it.
const ATTEMPTS: u32 = 3;
const SECONDS: u64 = 3;
const MIB: f64 = 1_048_576.0;

const fn load(sockets: usize, events: usize, rate: u32) -> Load {
    Load {
        sockets,
        events,
        rate,
        seconds: SECONDS,
    }
}

/// The loads of which the constants come.
const LOADS: Loads = Loads {
    low: load(100, 1, 200),
    high: load(100, 1, 600),
    many: load(1000, 10, 200),
};
/// The loads for one and for three nodes, other than these.
const PREDICTED: [(u32, Load); 2] = [(1, load(500, 4, 400)), (3, load(300, 3, 400))];

/// A predicted and a measured value.
struct Pair {
    what: &'static str,
    predicted: f64,
    measured: f64,
    /// Whether it must be the same.
    is_exact: bool,
}

/// Measures and compares, and again if a value is off.
pub(crate) async fn run(arguments: &ModelArguments) -> Result<ExitCode> {
    for attempt in 1..=ATTEMPTS {
        let cluster = Cluster::start(arguments.binary.as_deref()).await?;
        if compare(&cluster).await? {
            return Ok(ExitCode::SUCCESS);
        }
        println!("attempt {attempt} of {ATTEMPTS}: a value is further off than {TOLERANCE}");
    }
    Ok(ExitCode::FAILURE)
}

async fn compare(cluster: &Cluster) -> Result<bool> {
    let constants = Runs::measure(cluster, LOADS).await?.constants();
    println!(
        "constants of one node: {}",
        serde_json::to_string(&constants)?
    );
    println!(
        "{:<34} {:>10} {:>10} {:>6}",
        "", "predicted", "measured", "ratio"
    );
    let mut nodes = Vec::new();
    let mut holds = true;
    for (count, load) in PREDICTED {
        while nodes.len() < count as usize {
            let name = format!("node{}", nodes.len());
            nodes.push(cluster.node(&name, true).await?);
        }
        let all: Vec<_> = nodes.iter().collect();
        let usage = load.run(cluster, &all).await?;
        for pair in pairs(&constants, (count, load), &usage) {
            println!("{}", pair.line(count));
            holds &= pair.holds();
        }
    }
    Ok(holds)
}

fn pairs(constants: &Constants, (nodes, load): (u32, Load), usage: &Usage) -> Vec<Pair> {
    let rate = usage.rate();
    let size = Size {
        sockets: nodes * load.sockets as u32,
        tenants: 1,
        changes: rate,
        events_per_change: f64::from(nodes) * load.events as f64,
        row_bytes: ROW,
        requests: 0.0,
        requests_at_once: 1,
        nodes: Some(nodes),
    };
    let reader = Needs::of(&size, constants, (nodes, true));
    let follower = Needs::of(&size, constants, (nodes, false)).node;
    let cores = |cpu: f64| cpu / usage.seconds;
    let pair = |what, predicted, measured| Pair {
        what,
        predicted,
        measured,
        is_exact: false,
    };
    let nats = &constants.nats;
    vec![
        pair(
            "cores of all nodes",
            reader.node.cores + f64::from(nodes - 1) * follower.cores,
            cores(usage.nodes),
        ),
        // No changes are kept before the first ones.
        pair(
            "memory of a node, MiB",
            constants.node.mib + load.sockets as f64 * constants.node.socket_kib / 1024.0,
            usage.resident / MIB,
        ),
        pair(
            "cores of walsenders",
            reader.postgresql.decoding_cores,
            cores(usage.walsenders),
        ),
        // PostgreSQL decides how many messages there are: it sends a commit alone where it is slow.
        pair(
            "us of NATS a message",
            nats.message_us,
            usage.nats * 1e6 / usage.messages,
        ),
        pair(
            "stored bytes of all messages",
            nats.message_bytes * usage.messages + ROW * usage.changes,
            usage.stored,
        ),
        Pair {
            is_exact: true,
            ..pair(
                "walsenders",
                reader.postgresql.max_wal_senders,
                usage.walsender_count,
            )
        },
        Pair {
            is_exact: true,
            ..pair(
                "slots",
                reader.postgresql.max_replication_slots,
                usage.slot_count,
            )
        },
    ]
}

impl Pair {
    fn ratio(&self) -> f64 {
        self.measured / self.predicted
    }

    fn holds(&self) -> bool {
        let off = (self.ratio() - 1.0).abs();
        off <= if self.is_exact { 0.0 } else { TOLERANCE }
    }

    fn line(&self, nodes: u32) -> String {
        let Self {
            what,
            predicted,
            measured,
            ..
        } = self;
        let what = format!("{nodes} node(s): {what}");
        let sign = if self.holds() { "" } else { " OFF" };
        let ratio = self.ratio();
        format!("{what:<34} {predicted:>10.3} {measured:>10.3} {ratio:>6.2}{sign}")
    }
}
