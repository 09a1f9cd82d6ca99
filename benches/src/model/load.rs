//! Runs a load of changes for sockets at nodes, and measures the usage of each process.

use std::time::{Duration, Instant};

use super::cluster::Cluster;
use crate::feed::subscribers::Subscribers;
use crate::feed::writer::Writer;
use crate::node::Node;
use crate::{Result, process};

const SETTLE: Duration = Duration::from_secs(2);

/// A load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// The number of sockets at each node.
    pub(crate) sockets: usize,
    /// How many events each change causes at each node.
    pub(crate) events: usize,
    /// Changes a second, each in a transaction of its own.
    pub(crate) rate: u32,
    pub(crate) seconds: u64,
    /// Whether to wait until freed memory has been returned to the system.
    pub(crate) is_settled: bool,
}

/// The usage of the processes during a load. Times are CPU times in seconds, sizes are in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) changes: f64,
    pub(crate) seconds: f64,
    /// The CPU time of all nodes together.
    pub(crate) nodes: f64,
    pub(crate) walsenders: f64,
    /// PostgreSQL without the walsenders.
    pub(crate) postgres: f64,
    pub(crate) nats: f64,
    pub(crate) stored: f64,
    pub(crate) wal: f64,
    /// The memory of the largest node before the changes.
    pub(crate) resident: f64,
    pub(crate) walsender_count: f64,
    pub(crate) slot_count: f64,
    /// The number of runs whose values are added up here.
    pub(crate) runs: f64,
}

impl Load {
    /// Opens sockets at each node, writes, and measures.
    pub(crate) async fn run(&self, cluster: &Cluster, nodes: &[&Node]) -> Result<Usage> {
        let sockets = self.open(cluster, nodes).await?;
        self.measure(cluster, nodes, &sockets).await
    }

    /// Opens sockets at each node.
    pub(crate) async fn open(
        &self,
        cluster: &Cluster,
        nodes: &[&Node],
    ) -> Result<Vec<Subscribers>> {
        let mut sockets = Vec::new();
        let queries = self.queries();
        for node in nodes {
            let open = Subscribers::open_at(node.address, &cluster.demo.owner_token, &queries);
            sockets.push(open.await?);
        }
        Ok(sockets)
    }

    /// Writes changes while the sockets are open, and measures. Afterwards `sockets` has the
    /// latencies of the measured events.
    pub(crate) async fn measure(
        &self,
        cluster: &Cluster,
        nodes: &[&Node],
        sockets: &[Subscribers],
    ) -> Result<Usage> {
        if self.is_settled {
            tokio::time::sleep(SETTLE).await;
        }
        let mut resident = 0.0_f64;
        for node in nodes {
            resident = resident.max(node.resident()?);
        }
        let writer = Writer {
            keys: self.sockets / self.events,
            rows: 1,
            clients: 4,
            rate: Some(self.rate),
        };
        self.write(cluster, &writer, sockets, 1).await?;
        let before = usage(cluster, nodes).await?;
        let started = Instant::now();
        let changes = self.write(cluster, &writer, sockets, self.seconds).await?;
        let after = usage(cluster, nodes).await?;
        Ok(Usage {
            changes: changes as f64,
            seconds: started.elapsed().as_secs_f64(),
            resident,
            ..after.since(&before)
        })
    }

    /// Measures for the duration of the load, but writes nothing.
    pub(crate) async fn idle(&self, cluster: &Cluster, nodes: &[&Node]) -> Result<Usage> {
        tokio::time::sleep(SETTLE).await;
        let before = usage(cluster, nodes).await?;
        let started = Instant::now();
        tokio::time::sleep(Duration::from_secs(self.seconds)).await;
        let after = usage(cluster, nodes).await?;
        Ok(Usage {
            seconds: started.elapsed().as_secs_f64(),
            ..after.since(&before)
        })
    }

    async fn write(
        &self,
        cluster: &Cluster,
        writer: &Writer,
        sockets: &[Subscribers],
        seconds: u64,
    ) -> Result<usize> {
        sockets.iter().for_each(Subscribers::reset);
        let written = writer.run(&cluster.demo, seconds).await?;
        let events = written.transactions * self.events;
        for sockets in sockets {
            let all = |received: &crate::feed::subscribers::Received| received.events >= events;
            sockets.until(Duration::from_mins(1), all).await?;
        }
        Ok(written.transactions)
    }

    fn queries(&self) -> Vec<Vec<String>> {
        let of = |socket: usize| {
            let key = socket / self.events + 1;
            let condition = format!("(where: {{key: {{eq: {key}}}}})");
            vec![format!(
                "subscription {{ BenchFeedMessageAdded{condition} {{ at id key note }} }}"
            )]
        };
        (0..self.sockets).map(of).collect()
    }
}

impl Usage {
    /// Changes a second.
    pub(crate) fn rate(&self) -> f64 {
        self.changes / self.seconds
    }

    /// Microseconds of CPU for each change.
    pub(crate) fn each(&self, cpu: f64) -> f64 {
        cpu * 1e6 / self.changes
    }

    /// The counters since the earlier measurement `before`. Other values are those of `self`.
    fn since(&self, before: &Self) -> Self {
        Self {
            nodes: self.nodes - before.nodes,
            walsenders: self.walsenders - before.walsenders,
            postgres: self.postgres - before.postgres,
            nats: self.nats - before.nats,
            stored: self.stored - before.stored,
            wal: self.wal - before.wal,
            runs: 1.0,
            ..*self
        }
    }

    /// The sums of two runs, with the numbers of walsenders and slots of the later run.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self {
            changes: self.changes + other.changes,
            seconds: self.seconds + other.seconds,
            nodes: self.nodes + other.nodes,
            walsenders: self.walsenders + other.walsenders,
            postgres: self.postgres + other.postgres,
            nats: self.nats + other.nats,
            stored: self.stored + other.stored,
            wal: self.wal + other.wal,
            resident: self.resident + other.resident,
            walsender_count: other.walsender_count,
            slot_count: other.slot_count,
            runs: self.runs + other.runs,
        }
    }
}

/// The usage of the processes since their start.
pub(crate) async fn usage(cluster: &Cluster, nodes: &[&Node]) -> Result<Usage> {
    let client = cluster.demo.client().await?;
    let row = client
        .query_one(
            "select array(select pid from pg_stat_replication), \
             (select count(*) from pg_replication_slots), \
             (pg_current_wal_insert_lsn() - '0/0')::float8",
            &[],
        )
        .await?;
    let pids: Vec<i32> = row.get(0);
    let mut walsenders = 0.0;
    for pid in &pids {
        walsenders += process::thread_cpu(pid.unsigned_abs())?;
    }
    let mut all_nodes = 0.0;
    for node in nodes {
        all_nodes += node.cpu()?;
    }
    Ok(Usage {
        nodes: all_nodes,
        walsenders,
        postgres: process::family_cpu(cluster.demo.postmaster)? - walsenders,
        nats: cluster.nats.cpu()?,
        stored: cluster.nats.stored().await?,
        wal: row.get(2),
        walsender_count: pids.len() as f64,
        slot_count: row.get::<_, i64>(1) as f64,
        ..Usage::default()
    })
}
