//! Measures what a read costs the primary if a replica answers it.

use super::standby::Standby;
use super::{Cost, RATE, Reads, WARM_UP};
use crate::Result;
use crate::connection::Connection;
use crate::node::Node;
use crate::statistics::median;

pub(super) const NAME: &str = "replicas";

/// A slice with reads, and a slice of the same length without.
struct Slices {
    idle: Cost,
    busy: Cost,
}

impl Slices {
    /// Microseconds for each read, of which `.1` would not have been used without reads.
    fn each(&self, cpu: fn(&Cost) -> f64) -> (f64, f64) {
        let all = self.busy.each(cpu(&self.busy));
        (all, all - self.busy.each(cpu(&self.idle)))
    }
}

/// Prints what a read costs without replicas and with two of them. The primary also replicates,
/// reports its position and does its own maintenance, so its cost is printed with and without what
/// it uses in the same time without reads.
pub(super) async fn compare(reads: &Reads<'_>) -> Result<()> {
    reads.head(&[
        "reads",
        "reads/s",
        "by replicas",
        "node us",
        "primary us",
        "less idle",
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
    let before = answered(&node[0]).await?;
    for _ in 0..reads.arguments.slices() {
        let idle = reads.idle(&node, standbys, time).await?;
        let busy = reads.run(&node, standbys, (RATE, time)).await?;
        total += busy.reads;
        slices.push(Slices { idle, busy });
    }
    let share = (answered(&node[0]).await? - before) / total;
    // The median, because maintenance of PostgreSQL may fall into any slice.
    let middle = |value: &dyn Fn(&Slices) -> f64| median(slices.iter().map(value).collect());
    reads.row(&[
        format!("{NAME}: {name}"),
        format!("{:.0}", middle(&|slices| slices.busy.rate())),
        format!("{:.1} %", share * 100.0),
        format!("{:.1}", middle(&|slices| slices.each(|cost| cost.nodes).1)),
        format!(
            "{:.2}",
            middle(&|slices| slices.each(|cost| cost.primary).0)
        ),
        format!(
            "{:.2}",
            middle(&|slices| slices.each(|cost| cost.primary).1)
        ),
        format!(
            "{:.1}",
            middle(&|slices| slices.each(|cost| cost.replicas).1)
        ),
    ]);
    Ok(())
}

/// How many reads the replicas have answered.
async fn answered(node: &Node) -> Result<f64> {
    let mut connection = Connection::open(node.address).await?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {}\r\n\r\n", node.address);
    let metrics = connection.ask(request.as_bytes()).await?.body;
    let values = metrics
        .lines()
        .filter(|line| line.starts_with("tidegate_replica_reads_total{"))
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    Ok(values.sum())
}
