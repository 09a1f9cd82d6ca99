//! Measures change events: throughput, latency, CPU and memory.

mod bulk;
mod delivery;
mod idle;
pub(crate) mod sockets;
pub(crate) mod subscribers;
pub(crate) mod writer;
mod writers;

use crate::Result;
use crate::arguments::Arguments;
use crate::service::Service;

/// Runs the selected cases.
pub(crate) async fn run(service: &Service, arguments: &Arguments) -> Result<()> {
    let wanted = |name: &str| arguments.wants(name);
    let cases = delivery::CASES.map(|case| case.name);
    if ![idle::NAME, bulk::NAME, writers::NAME]
        .iter()
        .chain(&cases)
        .any(|name| wanted(name))
    {
        return Ok(());
    }
    // If the folder was kept from an earlier run, the table still has the rows of that run, so it
    // is created again.
    service.run("drop table if exists bench_feed").await?;
    service.run(writer::TABLE).await?;
    service.run("grant select on bench_feed to demo").await?;
    // This case runs first, because every other case increases the memory of the process.
    if wanted(idle::NAME) {
        idle::measure(service).await?;
    }
    println!("\n{}", delivery::header());
    for case in delivery::CASES {
        if wanted(case.name) {
            println!(
                "{}",
                case.measure(service, arguments.whole_seconds()).await?
            );
        }
    }
    if wanted(bulk::NAME) {
        bulk::measure(service).await?;
    }
    if wanted(writers::NAME) {
        writers::measure(service, arguments).await?;
    }
    Ok(())
}
