//! Measures what a read costs the primary if a replica answers it.

use super::standby::Standby;
use super::{Cost, RATE, Reads, WARM_UP};
use crate::Result;
use crate::connection::Connection;
use crate::node::Node;

pub(super) const NAME: &str = "replicas";
/// The low rate of a second measurement, in reads a second. Its cost is subtracted, so that work of
/// the primary that does not depend on the number of reads is not counted.
const FEW: u32 = RATE / 20;

/// Prints what a read costs without replicas and with two of them.
pub(super) async fn compare(reads: &Reads<'_>) -> Result<()> {
    reads.head(&[
        "reads",
        "reads/s",
        "by replicas",
        "node us",
        "primary us",
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
    let time = reads.arguments.slice() * reads.arguments.slices();
    let few = reads.run(&node, standbys, (FEW, time)).await?;
    let before = answered(&node[0]).await?;
    let many = reads.run(&node, standbys, (RATE, time)).await?;
    let share = (answered(&node[0]).await? - before) / many.reads;
    let each = |cpu: fn(&Cost) -> f64| (cpu(&many) - cpu(&few)) * 1e6 / (many.reads - few.reads);
    reads.row(&[
        format!("{NAME}: {name}"),
        format!("{:.0}", many.rate()),
        format!("{:.1} %", share * 100.0),
        format!("{:.1}", each(|cost| cost.nodes)),
        format!("{:.2}", each(|cost| cost.primary)),
        format!("{:.1}", each(|cost| cost.replicas)),
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
