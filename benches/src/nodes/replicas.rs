//! Measures what a read costs the primary if the read runs on a replica.

use super::standby::Standby;
use super::{Cost, RATE, Reads, WARM_UP};
use crate::Result;
use crate::connection::Connection;
use crate::node::Node;
use crate::statistics::median;

pub(super) const NAME: &str = "replicas";

/// The low rate of the slices whose cost is subtracted, in reads a second.
const FEW: u32 = RATE / 20;

/// A slice with few reads, and a slice with many reads.
struct Slices {
    few: Cost,
    many: Cost,
}

impl Slices {
    /// The average microseconds of CPU for each read of the slice with many reads.
    fn each(&self, cpu: fn(&Cost) -> f64) -> f64 {
        self.many.each(cpu(&self.many))
    }

    /// The microseconds of CPU for each additional read: the CPU time by which the slice with many
    /// reads exceeds the slice with few, divided by the difference of their numbers of reads.
    fn further(&self, cpu: fn(&Cost) -> f64) -> f64 {
        (cpu(&self.many) - cpu(&self.few)) * 1e6 / (self.many.reads - self.few.reads)
    }
}

/// Prints what a read costs without replicas and with two replicas. The primary also sends its WAL
/// to the replicas, reports its position, and is polled for changed definitions. So two costs are
/// printed for the primary: the average of a read, which includes this work, and the cost of each
/// additional read.
pub(super) async fn compare(reads: &Reads<'_>) -> Result<()> {
    reads.head(&[
        "reads",
        "reads/s",
        "by replicas",
        "node us",
        "primary us",
        "further us",
        "replicas us",
    ]);
    measure(reads, "on the primary", &[]).await?;
    let standbys = [
        Standby::start(reads.service, "east").await?,
        Standby::start(reads.service, "west").await?,
    ];
    measure(reads, "with two replicas", &standbys).await
}

async fn measure(reads: &Reads<'_>, name: &str, standbys: &[Standby]) -> Result<()> {
    let urls: Vec<_> = standbys.iter().map(|standby| &*standby.url).collect();
    let settings = [("TIDEGATE_REPLICA_URLS", urls.join(","))];
    let node = [Node::start(reads.service, &format!("{NAME}{}", urls.len()), &settings).await?];
    reads.send(&node, (RATE, WARM_UP)).await?;
    let time = reads.arguments.slice();
    let (mut slices, mut total) = (Vec::new(), 0.0);
    let before = replica_reads(&node[0]).await?;
    for _ in 0..reads.arguments.slices() {
        let few = reads.run(&node, standbys, (FEW, time)).await?;
        let many = reads.run(&node, standbys, (RATE, time)).await?;
        total += few.reads + many.reads;
        slices.push(Slices { few, many });
    }
    let share = (replica_reads(&node[0]).await? - before) / total;
    // The median is used, because maintenance of PostgreSQL may fall into any slice.
    let middle = |value: &dyn Fn(&Slices) -> f64| median(slices.iter().map(value).collect());
    reads.row(&[
        format!("{NAME}: {name}"),
        format!("{:.0}", middle(&|slices| slices.many.rate())),
        format!("{:.1} %", share * 100.0),
        format!("{:.1}", middle(&|slices| slices.further(|cost| cost.nodes))),
        format!("{:.2}", middle(&|slices| slices.each(|cost| cost.primary))),
        format!(
            "{:.2}",
            middle(&|slices| slices.further(|cost| cost.primary))
        ),
        format!(
            "{:.1}",
            middle(&|slices| slices.further(|cost| cost.replicas))
        ),
    ]);
    Ok(())
}

/// The number of reads that have run on the replicas.
async fn replica_reads(node: &Node) -> Result<f64> {
    let mut connection = Connection::open(node.address).await?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", node.address);
    let metrics = connection.ask(request.as_bytes()).await?.body;
    let values = metrics
        .lines()
        .filter(|line| line.starts_with("tidegate_replica_reads_total{"))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    Ok(values.sum())
}
