//! Measures one large transaction.

use std::time::{Duration, Instant};

use super::subscribers::Subscribers;
use crate::service::Service;
use crate::{Result, process};

pub(crate) const NAME: &str = "feed 500,000 rows at once";
const ROWS: usize = 500_000;

/// Writes many rows in one transaction, with one subscriber.
pub(crate) async fn measure(service: &Service) -> Result<()> {
    let query = "subscription { BenchFeedMessageAdded { id key note } }".to_owned();
    let subscribers = Subscribers::open(service, &[vec![query]]).await?;
    tokio::time::sleep(Duration::from_secs(2)).await;
    process::reset_peak(service.server)?;
    let (resident, cpu) = (
        process::resident(service.server)?,
        process::cpu(service.server)?,
    );
    let started = Instant::now();
    let insert = format!(
        "insert into bench_feed (key, at, note) \
         select i, 0, 'a note of thirty characters, 30' from generate_series(1, {ROWS}) i"
    );
    service.run(&insert).await?;
    let committed = Instant::now();
    let all = |received: &super::subscribers::Received| received.events >= ROWS;
    subscribers.until(Duration::from_secs(90), all).await?;
    let last = subscribers.received().last.unwrap_or(committed);
    let elapsed = last.saturating_duration_since(committed).as_secs_f64();
    println!(
        "{NAME}: insert {:.1} s, last event {elapsed:.1} s after its commit ({:.0} events/s), \
         {:.1} us of server CPU an event, {} MiB resident before, {} at the peak",
        (committed - started).as_secs_f64(),
        ROWS as f64 / elapsed,
        (process::cpu(service.server)? - cpu) * 1e6 / ROWS as f64,
        resident >> 20,
        process::peak(service.server)? >> 20,
    );
    Ok(())
}
