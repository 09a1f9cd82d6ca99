//! Derives the constants from short runs with one node and with two.

use std::path::Path;
use std::time::Duration;

use super::cluster::Cluster;
use super::constants::{Constants, NatsCosts, NodeCosts, PostgresCosts};
use super::extra;
use super::load::{Load, Usage};
use crate::Result;
use crate::model::arguments::ModelArguments;

const MIB: f64 = 1_048_576.0;
/// The size in bytes of a row that the writers insert.
pub(crate) const ROW: f64 = 60.0;
/// How long a further node runs before it is measured. A node that has just started logs in to each
/// database and checks the functions of the service there.
pub(crate) const WARM_UP: Duration = Duration::from_secs(10);

/// The loads of the runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Loads {
    /// Few changes for few sockets. Each change has one event.
    pub(crate) low: Load,
    /// Many changes for few sockets. Each change has one event.
    pub(crate) high: Load,
    /// Many sockets and events.
    pub(crate) many: Load,
}

/// The usage in each of the runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    pub(crate) loads: Loads,
    pub(crate) low: Usage,
    pub(crate) high: Usage,
    pub(crate) many: Usage,
    /// The usage of the load `low` at a node with a bus.
    pub(crate) bus_low: Usage,
    /// The usage of the load `high` at a node with a bus.
    pub(crate) bus_high: Usage,
    /// The usage of the load `low` at each of two nodes with a bus.
    pub(crate) two_low: Usage,
    /// The usage of the load `high` at each of two nodes with a bus.
    pub(crate) two_high: Usage,
}

/// Measures all constants.
pub(crate) async fn measure(arguments: &ModelArguments) -> Result<Constants> {
    const fn load(sockets: usize, events: usize, rate: u32) -> Load {
        Load {
            sockets,
            events,
            rate,
            seconds: 6,
            is_settled: true,
        }
    }
    let loads = Loads {
        low: load(100, 1, 1000),
        high: load(100, 1, 5000),
        many: load(2000, 500, 50),
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
    /// Runs all loads at a node without a bus, and the loads `low` and `high` at one and at two
    /// nodes with a bus.
    pub(crate) async fn measure(cluster: &Cluster, loads: Loads) -> Result<Self> {
        let alone = cluster.node("alone", false).await?;
        let low = loads.low.run(cluster, &[&alone]).await?;
        let high = loads.high.run(cluster, &[&alone]).await?;
        let many = loads.many.run(cluster, &[&alone]).await?;
        drop(alone);
        let node = cluster.node("published", true).await?;
        let bus_low = loads.low.run(cluster, &[&node]).await?;
        let bus_high = loads.high.run(cluster, &[&node]).await?;
        let second = cluster.node("received", true).await?;
        tokio::time::sleep(WARM_UP).await;
        let two_low = loads.low.run(cluster, &[&node, &second]).await?;
        let two_high = loads.high.run(cluster, &[&node, &second]).await?;
        Ok(Self {
            loads,
            low,
            high,
            many,
            bus_low,
            bus_high,
            two_low,
            two_high,
        })
    }

    /// The sums of these runs and of other runs with the same loads.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self {
            loads: self.loads,
            low: self.low.and(&other.low),
            high: self.high.and(&other.high),
            many: self.many.and(&other.many),
            bus_low: self.bus_low.and(&other.bus_low),
            bus_high: self.bus_high.and(&other.bus_high),
            two_low: self.two_low.and(&other.two_low),
            two_high: self.two_high.and(&other.two_high),
        }
    }

    /// Computes the constants from the usage in the runs.
    pub(crate) fn constants(&self) -> Constants {
        Constants {
            date: String::new(),
            source: String::new(),
            node: self.node(),
            postgresql: self.postgresql(),
            nats: self.nats(),
        }
    }

    fn node(&self) -> NodeCosts {
        let Self {
            loads, low, many, ..
        } = self;
        let line = CostLine::through(low, &self.high, |it| (it.changes, it.nodes));
        // The CPU time that exceeds the [`CostLine`] is the CPU time of the events after the first
        // event of each change.
        let further = (loads.many.events - loads.low.events) as f64 * many.changes;
        let explained = many.seconds * line.cores + many.changes * line.us / 1e6;
        let event_us = ((many.nodes - explained) * 1e6 / further).max(0.0);
        let sockets = (loads.many.sockets - loads.low.sockets) as f64;
        let memory = |it: &Usage| it.resident / it.runs;
        let socket = ((memory(many) - memory(low)) / sockets).max(0.0);
        let (alone, bus) = (low.and(&self.high), self.bus_low.and(&self.bus_high));
        let two = self.two_low.and(&self.two_high);
        let (alone_us, bus_us) = (alone.each(alone.nodes), bus.each(bus.nodes));
        NodeCosts {
            mib: (memory(low) - socket * loads.low.sockets as f64) / MIB,
            socket_kib: socket / 1024.0,
            active_cores: line.cores,
            change_us: line.us,
            event_us,
            publish_us: (bus_us - alone_us).max(0.0),
            receive_us: (two.each(two.nodes) - bus_us - alone_us).max(0.0),
            request_us: 0.0,
        }
    }

    fn postgresql(&self) -> PostgresCosts {
        let (low, high) = (self.low.and(&self.bus_low), self.high.and(&self.bus_high));
        let line = CostLine::through(&low, &high, |it| (it.changes, it.walsenders));
        let rest = CostLine::through(&low, &high, |it| (it.changes, it.postgres));
        let two = self.two_low.and(&self.two_high);
        let explained = rest.cores + two.rate() * rest.us / 1e6;
        PostgresCosts {
            active_cores: rest.cores,
            node_cores: (two.postgres / two.seconds - explained).max(0.0),
            write_us: rest.us,
            request_us: 0.0,
            walsender_cores: line.cores,
            decode_us: line.us,
            foreign_ms_per_mib: 0.0,
            wal_bytes: high.wal / high.changes - ROW,
        }
    }

    fn nats(&self) -> NatsCosts {
        let bus = self.bus_low.and(&self.bus_high);
        let two = self.two_low.and(&self.two_high);
        let line = CostLine::through(&self.bus_low, &self.bus_high, |it| (it.changes, it.nats));
        NatsCosts {
            active_cores: line.cores,
            message_us: line.us,
            delivery_us: (two.each(two.nats) - bus.each(bus.nats)).max(0.0),
            change_bytes: bus.stored / bus.changes - ROW,
        }
    }
}

/// The straight line through the results of two runs. `cores` are used regardless of the rate of
/// units; `us` is the CPU time in microseconds for each unit.
struct CostLine {
    cores: f64,
    us: f64,
}

impl CostLine {
    /// Computes the line through the runs `low` and `high`. `of` returns the number of units in a
    /// run, such as changes, and the seconds of CPU for them.
    fn through(low: &Usage, high: &Usage, of: impl Fn(&Usage) -> (f64, f64)) -> Self {
        let each_second = |it: &Usage| {
            let (count, cpu) = of(it);
            (count / it.seconds, cpu / it.seconds)
        };
        let ((low_rate, low_cores), (high_rate, high_cores)) =
            (each_second(low), each_second(high));
        let rise = (high_cores - low_cores) / (high_rate - low_rate);
        // A negative base or slope is noise of the measurement and becomes zero.
        let rise = rise.clamp(0.0, high_cores / high_rate);
        Self {
            cores: (high_cores - rise * high_rate).max(0.0),
            us: rise * 1e6,
        }
    }
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
