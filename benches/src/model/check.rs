//! Measures the constants with one node and with two. Compares what they predict with runs of one
//! node and of three nodes.

use std::process::ExitCode;

use super::arguments::{ModelArguments, ModelSize};
use super::cluster::Cluster;
use super::constants::Constants;
use super::fit::{Loads, ROW, Runs, WARM_UP};
use super::load::{Load, Usage};
use super::needs::Needs;
use crate::Result;

/// How far a measured value may be from the predicted value, as a share of the predicted value.
const TOLERANCE: f64 = 0.3;
/// The maximum number of attempts. Other programs on the machine may disturb an attempt.
const ATTEMPTS: u32 = 3;
const MIB: f64 = 1_048_576.0;

const fn load(sockets: usize, events: usize, rate: u32) -> Load {
    Load {
        sockets,
        events,
        rate,
        seconds: 3,
        is_settled: true,
    }
}

/// The loads from which the constants are derived.
const LOADS: Loads = Loads {
    low: load(100, 1, 250),
    high: Load {
        is_settled: false,
        ..load(100, 1, 600)
    },
    many: load(1000, 10, 250),
};
/// The runs that are compared with the prediction: the number of nodes, and the load, which differs
/// from `LOADS`.
const PREDICTED: [(u32, Load); 2] = [(1, load(500, 4, 400)), (3, load(300, 3, 400))];

/// A predicted and a measured value.
struct Comparison {
    what: &'static str,
    predicted: f64,
    measured: f64,
    /// Whether both values must be equal.
    is_exact: bool,
}

/// The usage in all runs, and the predicted usage of one and of three nodes.
#[derive(Clone)]
struct Measured {
    runs: Runs,
    predicted: [Usage; 2],
}

/// Measures and compares. If a value is off, measures again and compares the sums of all runs.
pub(crate) async fn run(arguments: &ModelArguments) -> Result<ExitCode> {
    let mut so_far: Option<Measured> = None;
    for attempt in 1..=ATTEMPTS {
        let new = Measured::run(arguments).await?;
        let all = so_far
            .as_ref()
            .map_or_else(|| new.clone(), |old| old.and(&new));
        if all.holds()? {
            return Ok(ExitCode::SUCCESS);
        }
        println!("attempt {attempt} of {ATTEMPTS}: a value is off by more than 30 %");
        so_far = Some(all);
    }
    Ok(ExitCode::FAILURE)
}

impl Measured {
    async fn run(arguments: &ModelArguments) -> Result<Self> {
        let cluster = Cluster::start(arguments.binary.as_deref()).await?;
        let runs = Runs::measure(&cluster, LOADS).await?;
        let mut predicted = [Usage::default(); 2];
        let mut nodes = Vec::new();
        for (usage, (count, load)) in predicted.iter_mut().zip(PREDICTED) {
            while nodes.len() < count as usize {
                let name = format!("node{}", nodes.len());
                nodes.push(cluster.node(&name, true).await?);
            }
            tokio::time::sleep(WARM_UP).await;
            let all: Vec<_> = nodes.iter().collect();
            *usage = load.run(&cluster, &all).await?;
        }
        Ok(Self { runs, predicted })
    }

    fn and(&self, other: &Self) -> Self {
        let [one, three] = &self.predicted;
        Self {
            runs: self.runs.and(&other.runs),
            predicted: [one.and(&other.predicted[0]), three.and(&other.predicted[1])],
        }
    }

    /// Prints the comparison. Returns whether all values are as predicted.
    fn holds(&self) -> Result<bool> {
        let constants = self.runs.constants();
        println!(
            "constants of one node and of two: {}",
            serde_json::to_string(&constants)?
        );
        println!(
            "{:<36} {:>10} {:>10} {:>6}",
            "", "predicted", "measured", "ratio"
        );
        let mut holds = true;
        for (load, usage) in PREDICTED.iter().zip(&self.predicted) {
            for pair in pairs(&constants, *load, usage) {
                println!("{}", pair.line(load.0));
                holds &= pair.holds();
            }
        }
        Ok(holds)
    }
}

/// The size that corresponds to a load at each node, with the measured rate of changes.
fn size((nodes, load): (u32, Load), usage: &Usage) -> ModelSize {
    ModelSize {
        sockets: nodes * load.sockets as u32,
        tenants: 1,
        changes: usage.rate(),
        events_per_change: f64::from(nodes) * load.events as f64,
        row_bytes: ROW,
        requests: 0.0,
        requests_at_once: 1,
        nodes: Some(nodes),
    }
}

fn pairs(constants: &Constants, (nodes, load): (u32, Load), usage: &Usage) -> Vec<Comparison> {
    let size = size((nodes, load), usage);
    let reader = Needs::of(&size, constants, (nodes, true));
    let mut pairs = cores(constants, (nodes, &size), usage);
    let exact = |what, predicted, measured| Comparison {
        is_exact: true,
        ..pair(what, predicted, measured)
    };
    pairs.extend([
        // The memory is measured before the first changes, so it contains no kept changes.
        pair(
            "memory of a node, MiB",
            constants.node.mib + load.sockets as f64 * constants.node.socket_kib / 1024.0,
            usage.resident / usage.runs / MIB,
        ),
        pair(
            "stored bytes of all changes",
            (constants.nats.change_bytes + ROW) * usage.changes,
            usage.stored,
        ),
        exact(
            "walsenders",
            reader.postgresql.max_wal_senders,
            usage.walsender_count,
        ),
        exact(
            "slots",
            reader.postgresql.max_replication_slots,
            usage.slot_count,
        ),
    ]);
    pairs
}

/// The predicted and the measured CPU time of all processes.
fn cores(
    constants: &Constants,
    (nodes, size): (u32, &ModelSize),
    usage: &Usage,
) -> Vec<Comparison> {
    let reader = Needs::of(size, constants, (nodes, true));
    let receiving = size.changes * constants.node.receive_us / 1e6;
    let follower = Needs::of(size, constants, (nodes, false)).node.cores + receiving;
    let nats = &constants.nats;
    let message_us = nats.message_us + f64::from(nodes - 1) * nats.delivery_us;
    let cpu = |what, predicted, cpu: f64| pair(what, predicted, cpu / usage.seconds);
    vec![
        cpu(
            "cores of all nodes",
            reader.node.cores + f64::from(nodes - 1) * follower,
            usage.nodes,
        ),
        cpu(
            "cores of walsenders",
            reader.postgresql.decoding_cores,
            usage.walsenders,
        ),
        cpu(
            "cores of the rest of PostgreSQL",
            reader.postgresql.cores - reader.postgresql.decoding_cores,
            usage.postgres,
        ),
        cpu(
            "cores of NATS",
            nats.active_cores + size.changes * message_us / 1e6,
            usage.nats,
        ),
    ]
}

fn pair(what: &'static str, predicted: f64, measured: f64) -> Comparison {
    Comparison {
        what,
        predicted,
        measured,
        is_exact: false,
    }
}

impl Comparison {
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
        format!("{what:<36} {predicted:>10.3} {measured:>10.3} {ratio:>6.2}{sign}")
    }
}
