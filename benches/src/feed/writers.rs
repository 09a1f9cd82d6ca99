//! Measures how much the feed slows down writers.

use std::time::Duration;

use super::subscribers::Subscribers;
use super::writer::{TABLE, Writer};
use crate::arguments::Arguments;
use crate::service::Service;
use crate::statistics::median;
use crate::{Result, process};

pub(crate) const NAME: &str = "feed and writers";
const ROUNDS: usize = 5;
const SECONDS: u64 = 3;

/// Which subscriptions exist while the writers run.
#[derive(Clone, Copy, Debug)]
enum Subscriptions {
    /// There are no subscriptions, and the writers use a PostgreSQL that never had a subscription.
    None,
    /// One subscription that matches none of the rows.
    Unmatched,
    /// One subscription that matches all rows.
    All,
}

/// The result of a round.
struct Round {
    rate: f64,
    /// The average latency of a transaction in milliseconds.
    latency: f64,
    /// The microseconds of CPU of the service for each transaction.
    server: f64,
    /// The microseconds of CPU of PostgreSQL for each transaction.
    database: f64,
}

const WRITER: Writer = Writer {
    keys: 1000,
    rows: 1,
    clients: 16,
    rate: None,
};
/// A rate in transactions per second at which the machine is not saturated.
const MODERATE_RATE: u32 = 8000;

/// Measures writers at full speed and at the rate [`MODERATE_RATE`], with each kind of
/// subscriptions in turn.
pub(crate) async fn measure(service: &Service, arguments: &Arguments) -> Result<()> {
    let apart = Service::start(arguments, None).await?;
    apart.run(TABLE).await?;
    for rate in [None, Some(MODERATE_RATE)] {
        let writer = Writer { rate, ..WRITER };
        let mut rounds: [Vec<Round>; 3] = Default::default();
        for _ in 0..ROUNDS {
            rounds[0].push(round(&apart, writer, Subscriptions::None).await?);
            rounds[1].push(round(service, writer, Subscriptions::Unmatched).await?);
            rounds[2].push(round(service, writer, Subscriptions::All).await?);
        }
        show(writer, &rounds);
    }
    Ok(())
}

fn show(writer: Writer, [none, nothing, all]: &[Vec<Round>; 3]) {
    let how = match writer.rate {
        Some(rate) => format!("{rate} transactions/s offered"),
        None => "flat out".to_owned(),
    };
    println!(
        "\n{NAME}, {how}: {} clients, {ROUNDS} rounds of {SECONDS} s in turn, medians; without a \
         feed {:.0} transactions/s of {:.2} ms, {:.1} us of PostgreSQL's CPU each",
        writer.clients,
        median_of(none, |round| round.rate),
        median_of(none, |round| round.latency),
        median_of(none, |round| round.database),
    );
    for (what, rounds) in [("wants nothing", nothing), ("wants everything", all)] {
        let ratios: Vec<f64> = rounds
            .iter()
            .zip(none)
            .map(|(on, off)| on.rate / off.rate)
            .collect();
        let each: Vec<String> = ratios.iter().map(|ratio| format!("{ratio:.2}")).collect();
        println!(
            "  a subscription that {what}: {:.0}/s of {:.2} ms, {:.2} of it (rounds {}), {:.1} us \
             of PostgreSQL's CPU and {:.1} of the server's",
            median_of(rounds, |round| round.rate),
            median_of(rounds, |round| round.latency),
            median(ratios),
            each.join(" "),
            median_of(rounds, |round| round.database),
            median_of(rounds, |round| round.server),
        );
    }
}

async fn round(service: &Service, writer: Writer, subscriptions: Subscriptions) -> Result<Round> {
    let query = |condition: &str| {
        vec![vec![format!(
            "subscription {{ BenchFeedMessageAdded{condition} {{ id key note }} }}"
        )]]
    };
    let queries = match subscriptions {
        Subscriptions::None => vec![],
        Subscriptions::Unmatched => query("(where: {key: {eq: 0}})"),
        Subscriptions::All => query(""),
    };
    let subscribers = Subscribers::open(service, &queries).await?;
    let before = (
        process::cpu(service.server)?,
        process::family_cpu(service.postmaster)?,
    );
    let written = writer.run(service, SECONDS).await?;
    if let Subscriptions::All = subscriptions {
        let all = |received: &super::subscribers::Received| received.events >= written.transactions;
        subscribers.until(Duration::from_mins(1), all).await?;
    }
    let transactions = written.transactions as f64;
    Ok(Round {
        rate: written.rate,
        latency: written.latency,
        server: (process::cpu(service.server)? - before.0) * 1e6 / transactions,
        database: (process::family_cpu(service.postmaster)? - before.1) * 1e6 / transactions,
    })
}

fn median_of(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    median(rounds.iter().map(of).collect())
}
