//! Measures the delivery of events to sockets: the latency, and the CPU time for each change and
//! each event.

use std::time::{Duration, Instant};

use super::subscribers::Subscribers;
use super::writer::Writer;
use crate::service::Service;
use crate::{Result, process};

/// A case: the number of sockets, their subscriptions, and the writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    sockets: usize,
    filters: Filters,
    rows: u32,
    /// The rate of the writers in transactions per second.
    rate: u32,
}

/// The rows to which sockets subscribe.
#[derive(Clone, Copy, Debug)]
enum Filters {
    /// Each socket has this many subscriptions. Each subscription selects the rows with one key. No
    /// two subscriptions have the same key.
    Keys(usize),
    /// Each socket has one subscription to all rows. All subscriptions have the same selection.
    All,
}

const fn case(name: &'static str, sockets: usize, filters: Filters, rows: u32, rate: u32) -> Case {
    Case {
        name,
        sockets,
        filters,
        rows,
        rate,
    }
}

pub(crate) const CASES: [Case; 7] = [
    case(
        "feed latency, 1,000 sockets",
        1000,
        Filters::Keys(1),
        1,
        1000,
    ),
    case("feed 100 filters", 100, Filters::Keys(1), 1, 5000),
    case("feed 10,000 filters", 100, Filters::Keys(100), 1, 5000),
    case("feed 100 filters, 100 rows", 100, Filters::Keys(1), 100, 50),
    case(
        "feed 10,000 filters, 100 rows",
        100,
        Filters::Keys(100),
        100,
        50,
    ),
    case("feed to 1,000, row by row", 1000, Filters::All, 1, 100),
    case("feed to 1,000, by tens", 1000, Filters::All, 10, 10),
];

pub(crate) fn header() -> String {
    format!(
        "{:<30} {:>9} {:>9} {:>7} {:>8} {:>8} {:>10} {:>10} {:>9} {:>9} {:>6}",
        "case",
        "changes/s",
        "events/s",
        "ev/read",
        "p50 ms",
        "p99 ms",
        "srv us/chg",
        "srv us/ev",
        "pg us/chg",
        "behind ms",
        "MiB"
    )
}

impl Case {
    /// Runs the case for `seconds` seconds. Returns its line of the table.
    pub(crate) async fn measure(&self, service: &Service, seconds: u64) -> Result<String> {
        let subscribers = Subscribers::open(service, &self.queries()).await?;
        let writer = Writer {
            keys: match self.filters {
                Filters::Keys(each) => each * self.sockets,
                Filters::All => 1,
            },
            rows: self.rows,
            clients: 8,
            rate: Some(self.rate),
        };
        self.write(service, &subscribers, &writer, 1).await?;
        subscribers.reset();
        let before = (
            process::cpu(service.server)?,
            process::family_cpu(service.postmaster)?,
        );
        let started = Instant::now();
        let (changes, delay) = self.write(service, &subscribers, &writer, seconds).await?;
        let server = process::cpu(service.server)? - before.0;
        let database = process::family_cpu(service.postmaster)? - before.1;
        let mut received = subscribers.received();
        let elapsed = received
            .last
            .map_or(started.elapsed(), |last| last - started);
        received.latencies.sort_unstable();
        let percentile = |share: f64| {
            let last = received.latencies.len().saturating_sub(1);
            let latency = received
                .latencies
                .get((last as f64 * share).round() as usize);
            latency.map_or(f64::NAN, |latency| *latency as f64 / 1e3)
        };
        let events = received.events as f64;
        Ok(format!(
            "{:<30} {:>9.0} {:>9.0} {:>7.1} {:>8.2} {:>8.2} {:>10.1} {:>10.2} {:>9.1} {:>9.0} {:>6}",
            self.name,
            changes as f64 / elapsed.as_secs_f64(),
            events / elapsed.as_secs_f64(),
            events / received.reads as f64,
            percentile(0.50),
            percentile(0.99),
            server * 1e6 / changes as f64,
            server * 1e6 / events,
            database * 1e6 / changes as f64,
            delay.as_secs_f64() * 1e3,
            process::resident(service.server)? >> 20,
        ))
    }

    /// Runs the writers, and waits until all events have been received. Returns the number of
    /// changes, and the time from the end of the writers to the last event.
    async fn write(
        &self,
        service: &Service,
        subscribers: &Subscribers,
        writer: &Writer,
        seconds: u64,
    ) -> Result<(usize, Duration)> {
        let written = writer.run(service, seconds).await?;
        let ended = Instant::now();
        let changes = written.transactions * self.rows as usize;
        let events = match self.filters {
            Filters::Keys(_) => changes,
            Filters::All => changes * self.sockets,
        };
        let all = |received: &super::subscribers::Received| received.events >= events;
        subscribers.until(Duration::from_mins(1), all).await?;
        let last = subscribers.received().last.unwrap_or(ended);
        Ok((changes, last.saturating_duration_since(ended)))
    }

    fn queries(&self) -> Vec<Vec<String>> {
        let query = |condition: &str| {
            format!("subscription {{ BenchFeedMessageAdded{condition} {{ at id key note }} }}")
        };
        let of = |socket: usize| match self.filters {
            Filters::All => vec![query("")],
            Filters::Keys(each) => (1..=each)
                .map(|n| query(&format!("(where: {{key: {{eq: {}}}}})", socket * each + n)))
                .collect(),
        };
        (0..self.sockets).map(of).collect()
    }
}
