//! What the feed costs those who write.

use std::time::Duration;

use super::audience::Audience;
use super::writer::{TABLE, Writer};
use crate::service::Service;
use crate::{Arguments, Result, process};

pub(crate) const NAME: &str = "feed and writers";
const ROUNDS: usize = 5;
const SECONDS: u64 = 3;

/// Who listens while others write.
#[derive(Clone, Copy, Debug)]
enum Listener {
    /// Nobody ever did: the writers have a PostgreSQL of their own.
    Nobody,
    /// One subscription that wants none of the rows.
    ToNothing,
    /// One subscription that wants all of them.
    ToAll,
}

/// What a round came to.
struct Round {
    rate: f64,
    /// Microseconds of the server's and of PostgreSQL's CPU for each transaction.
    server: f64,
    database: f64,
}

const WRITER: Writer = Writer {
    keys: 1000,
    rows: 1,
    clients: 16,
    rate: None,
};

/// Writes flat out, in turn with each kind of listener.
pub(crate) async fn measure(service: &Service, arguments: &Arguments) -> Result<()> {
    let apart = Service::start(arguments.binary.as_deref()).await?;
    apart.run(TABLE).await?;
    let mut rounds: [Vec<Round>; 3] = Default::default();
    for _ in 0..ROUNDS {
        rounds[0].push(round(&apart, Listener::Nobody).await?);
        rounds[1].push(round(service, Listener::ToNothing).await?);
        rounds[2].push(round(service, Listener::ToAll).await?);
    }
    drop(apart);
    let [nobody, nothing, all] = &rounds;
    println!(
        "\n{NAME}: {} clients, {ROUNDS} rounds of {SECONDS} s in turn, medians; without a feed \
         {:.0} transactions/s, {:.1} us of PostgreSQL's CPU each",
        WRITER.clients,
        median(nobody, |round| round.rate),
        median(nobody, |round| round.database),
    );
    for (what, rounds) in [("wants nothing", nothing), ("wants everything", all)] {
        let mut ratios = rounds
            .iter()
            .zip(nobody)
            .map(|(on, off)| on.rate / off.rate);
        let ratios: Vec<f64> = ratios.by_ref().collect();
        println!(
            "  a subscription that {what}: {:.0}/s, {:.2} of it (rounds {}), {:.1} us of \
             PostgreSQL's CPU and {:.1} of the server's",
            median(rounds, |round| round.rate),
            middle(ratios.clone()),
            ratios
                .iter()
                .map(|ratio| format!("{ratio:.2}"))
                .collect::<Vec<_>>()
                .join(" "),
            median(rounds, |round| round.database),
            median(rounds, |round| round.server),
        );
    }
    Ok(())
}

async fn round(service: &Service, listener: Listener) -> Result<Round> {
    let query = |condition: &str| {
        vec![vec![format!(
            "subscription {{ BenchFeedMessageAdded{condition} {{ id key note }} }}"
        )]]
    };
    let queries = match listener {
        Listener::Nobody => vec![],
        Listener::ToNothing => query("(where: {key: {eq: 0}})"),
        Listener::ToAll => query(""),
    };
    let audience = Audience::open(service, &queries).await?;
    let before = (
        process::cpu(service.server)?,
        process::family_cpu(service.postmaster)?,
    );
    let written = WRITER.run(service, SECONDS).await?;
    if let Listener::ToAll = listener {
        let all = |heard: &super::audience::Heard| heard.events >= written.transactions;
        audience.until(Duration::from_mins(1), all).await?;
    }
    let transactions = written.transactions as f64;
    Ok(Round {
        rate: written.rate,
        server: (process::cpu(service.server)? - before.0) * 1e6 / transactions,
        database: (process::family_cpu(service.postmaster)? - before.1) * 1e6 / transactions,
    })
}

fn median(rounds: &[Round], of: impl Fn(&Round) -> f64) -> f64 {
    middle(rounds.iter().map(of).collect())
}

fn middle(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}
