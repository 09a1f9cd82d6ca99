//! Measures the service beside the database's own floor, in one run on one machine.
//!
//! `cargo run --release -p tidegate-bench` builds the server, starts `tidegate demo`, fills a
//! table, and prints for each case the service's rate, latency, CPU and memory beside what
//! pgbench reaches with the same SQL on the same PostgreSQL.
#![expect(
    clippy::print_stdout,
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a program that prints rates: counts become floats on standard output"
)]

mod case;
mod catalog;
mod export;
mod feed;
mod floor;
mod graphql;
mod load;
mod oauth;
mod process;
mod service;

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;

use crate::case::Case;
use crate::service::Service;

/// The result of everything here: a failed measurement ends the run with its reason.
pub(crate) type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

/// Measures the service beside the database's own floor.
#[derive(Parser, Debug)]
struct Arguments {
    /// Seconds for each measurement.
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Connections of the load generator and of pgbench.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// Only the cases whose name holds this text.
    #[arg(long)]
    only: Option<String>,
    /// A binary of the service to measure instead of a new build.
    #[arg(long)]
    binary: Option<PathBuf>,
    /// Also export ten million rows as csv and ndjson, beside COPY.
    #[arg(long)]
    export: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let service = Service::start(arguments.binary.as_deref()).await?;
    service.fill().await?;
    println!(
        "load generator: raw HTTP/1.1 over loopback, keep-alive, {} connections, no TLS, one \
         thread; floor: pgbench -M prepared, {} clients, {}",
        arguments.connections,
        arguments.connections,
        service.floor_transport()
    );
    // The memory of a password's hash goes back to the system two seconds after the sign-in.
    tokio::time::sleep(Duration::from_secs(4)).await;
    println!(
        "idle server: {} MiB resident\n",
        process::resident(service.server)? >> 20
    );
    println!("{}", Row::header());
    for case in Case::all() {
        if arguments
            .only
            .as_ref()
            .is_some_and(|text| !case.name.contains(text.as_str()))
        {
            continue;
        }
        let row = measure(&service, &case, &arguments).await?;
        println!("{}", row.line());
    }
    let time = Duration::from_secs(arguments.seconds);
    oauth::run(
        &service,
        arguments.only.as_deref(),
        (arguments.connections, time),
    )
    .await?;
    feed::run(&service, &arguments).await?;
    catalog::run(&service, arguments.only.as_deref()).await?;
    if arguments.export {
        export::compare(&service).await?;
    }
    drop(service);
    Ok(())
}

/// One line of the table.
struct Row {
    name: &'static str,
    ours: load::Outcome,
    server: f64,
    database: f64,
    memory: u64,
    floor: floor::Outcome,
    /// pgbench over TCP, as the load generator reaches us.
    tcp: floor::Outcome,
    /// Seconds of CPU that the load generator used.
    generator: f64,
    /// pgbench held to our rate: a backend that is asked less often costs more each time.
    throttled: floor::Outcome,
}

impl Row {
    fn header() -> String {
        format!(
            "{:<26} {:>9} {:>9} {:>6} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>8} {:>7}",
            "case",
            "req/s",
            "pgbench/s",
            "ratio",
            "p50 ms",
            "p99 ms",
            "server us",
            "pg us",
            "pgb pg us",
            "pg ratio",
            "pgb= us",
            "pg= ratio",
            "pgbTCP/s",
            "TCPratio",
            "load us",
            "MiB"
        )
    }

    fn line(&self) -> String {
        let rate = self.ours.rate();
        let per_request = |seconds: f64| seconds * 1e6 / self.ours.requests() as f64;
        let database = per_request(self.database);
        format!(
            "{:<26} {:>9.0} {:>9.0} {:>6.2} {:>8.2} {:>8.2} {:>9.1} {:>9.1} {:>9.1} {:>9.2} {:>9.1} {:>9.2} {:>9.0} {:>9.2} {:>8.1} {:>7}",
            self.name,
            rate,
            self.floor.rate,
            rate / self.floor.rate,
            self.ours.percentile(0.50),
            self.ours.percentile(0.99),
            per_request(self.server),
            database,
            self.floor.database,
            database / self.floor.database,
            self.throttled.database,
            database / self.throttled.database,
            self.tcp.rate,
            rate / self.tcp.rate,
            per_request(self.generator),
            self.memory >> 20,
        )
    }
}

async fn measure(service: &Service, case: &Case, arguments: &Arguments) -> Result<Row> {
    let time = Duration::from_secs(arguments.seconds);
    let requests = case.requests(service);
    let connections = case.connections.unwrap_or(arguments.connections);
    // What the case before left to write is not counted for this one.
    service.run("CHECKPOINT").await?;
    // A short warm-up fills caches and statement caches on both sides.
    load::run(
        service.address,
        &requests,
        connections,
        Duration::from_millis(700),
    )
    .await?;
    let before = (
        process::cpu(service.server)?,
        process::family_cpu(service.postmaster)?,
        process::cpu(std::process::id())?,
    );
    let ours = load::run(service.address, &requests, connections, time).await?;
    let generator = process::cpu(std::process::id())? - before.2;
    let server = process::cpu(service.server)? - before.0;
    let database = process::family_cpu(service.postmaster)? - before.1;
    let memory = process::peak(service.server)?;
    let load = floor::Load {
        clients: connections,
        time,
        rate: None,
        tcp: false,
    };
    let floor = floor::run(service, &case.script(), load)?;
    let tcp = floor::run(service, &case.script(), floor::Load { tcp: true, ..load })?;
    let rate = Some(ours.rate().min(floor.rate));
    let throttled = floor::run(service, &case.script(), floor::Load { rate, ..load })?;
    Ok(Row {
        name: case.name,
        ours,
        server,
        database,
        memory,
        floor,
        tcp,
        generator,
        throttled,
    })
}
