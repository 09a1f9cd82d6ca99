//! Derives the constants from short runs with one node.

use std::path::Path;

use super::cluster::Cluster;
use super::constants::{Constants, NatsCosts, NodeCosts, PostgresCosts};
use super::extra;
use super::load::{Load, Usage};
use crate::Result;
use crate::model::arguments::ModelArguments;

const MIB: f64 = 1_048_576.0;
/// The bytes of a row of the writers.
pub(crate) const ROW: f64 = 60.0;

/// The loads of the runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loads {
    /// Few and many changes for few sockets, each of which one socket wants.
    pub(crate) low: Load,
    pub(crate) high: Load,
    /// Many sockets and events.
    pub(crate) many: Load,
}

/// What the runs needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    pub(crate) loads: Loads,
    pub(crate) low: Usage,
    pub(crate) high: Usage,
    pub(crate) many: Usage,
    /// The high load at a node with a bus.
    pub(crate) bus: Usage,
}

/// Measures all constants.
pub(crate) async fn measure(arguments: &ModelArguments) -> Result<Constants> {
    const fn load(sockets: usize, events: usize, rate: u32) -> Load {
        Load {
            sockets,
            events,
            rate,
            seconds: 6,
        }
    }
    let loads = Loads {
        low: load(100, 1, 500),
        high: load(100, 1, 2000),
        many: load(2000, 20, 500),
    };
    let cluster = Cluster::start(arguments.binary.as_deref()).await?;
    let runs = Runs::measure(&cluster, loads).await?;
    let mut constants = runs.constants();
    let node = cluster.node("requests", false).await?;
    extra::foreign(&cluster, &node, &mut constants).await?;
    extra::requests(&cluster, &node, &mut constants).await?;
    constants.source = machine(Path::new("/proc/cpuinfo"))?;
    constants.date = today(&cluster).await?;
    Ok(constants)
}

impl Runs {
    /// Runs the loads at a node without a bus, and one at a node with a bus.
    pub(crate) async fn measure(cluster: &Cluster, loads: Loads) -> Result<Self> {
        let alone = cluster.node("alone", false).await?;
        let low = loads.low.run(cluster, &[&alone]).await?;
        let high = loads.high.run(cluster, &[&alone]).await?;
        let many = loads.many.run(cluster, &[&alone]).await?;
        drop(alone);
        let node = cluster.node("published", true).await?;
        let bus = loads.high.run(cluster, &[&node]).await?;
        Ok(Self {
            loads,
            low,
            high,
            many,
            bus,
        })
    }

    /// The constants that explain the runs.
    pub(crate) fn constants(&self) -> Constants {
        let Self {
            loads,
            low,
            high,
            many,
            bus,
        } = self;
        let events = (loads.many.events - loads.low.events) as f64;
        let event_us = ((many.each(many.nodes) - low.each(low.nodes)) / events).max(0.0);
        let (active_cores, with_event_us) = line(low, high, |it| it.nodes);
        let (walsender_cores, decode_us) = line(low, high, |it| it.walsenders);
        let sockets = (loads.many.sockets - loads.low.sockets) as f64;
        let socket = ((many.resident - low.resident) / sockets).max(0.0);
        Constants {
            date: String::new(),
            source: String::new(),
            node: NodeCosts {
                mib: (low.resident - socket * loads.low.sockets as f64) / MIB,
                socket_kib: socket / 1024.0,
                active_cores,
                change_us: (with_event_us - event_us).max(0.0),
                event_us,
                publish_us: (bus.each(bus.nodes) - high.each(high.nodes)).max(0.0),
                request_us: 0.0,
            },
            postgresql: PostgresCosts {
                write_us: high.each(high.postgres),
                request_us: 0.0,
                walsender_cores,
                decode_us,
                foreign_ms_per_mib: 0.0,
                wal_bytes: high.wal / high.changes - ROW,
            },
            nats: NatsCosts {
                message_us: bus.nats * 1e6 / bus.messages,
                messages: bus.messages / bus.changes,
                message_bytes: (bus.stored - ROW * bus.changes) / bus.messages,
            },
        }
    }
}

/// Cores that are used whatever the rate, and microseconds for each change: the line through two runs.
fn line(low: &Usage, high: &Usage, cpu: impl Fn(&Usage) -> f64) -> (f64, f64) {
    let cores = |it: &Usage| cpu(it) / it.seconds;
    let rise = (cores(high) - cores(low)) / (high.rate() - low.rate());
    // Where the line would begin below zero, it goes through zero.
    let rise = rise.min(cores(high) / high.rate()).max(0.0);
    ((cores(low) - rise * low.rate()).max(0.0), rise * 1e6)
}

fn machine(cpuinfo: &Path) -> Result<String> {
    let text = std::fs::read_to_string(cpuinfo)?;
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let name = name.map_or("unknown CPU", |name| name.trim_matches([':', ' ', '\t']));
    Ok(format!("{name}, tidegate-bench model --measure"))
}

async fn today(cluster: &Cluster) -> Result<String> {
    let client = cluster.demo.client().await?;
    Ok(client
        .query_one("select current_date::text", &[])
        .await?
        .get(0))
}
