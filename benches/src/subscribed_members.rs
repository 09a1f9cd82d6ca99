//! Members who subscribe to one table: how fast they are created by REST, and what their
//! subscriptions cost PostgreSQL while nothing changes. The service asks PostgreSQL for privileges
//! once for each group.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Result;
use crate::accounts::HASH;
use crate::connection::Connection;
use crate::page_sign_up::listeners::Listeners;
use crate::page_sign_up::{GRACE, KNOWN_POLICY, each, insert, table};
use crate::process;
use crate::service::{self, Service};
use crate::statistics::percentile;

const NAME: &str = "subscribed members";
/// The largest number of users in an array that the service accepts.
const ARRAY: u32 = 1_000;
/// The number of members whose creation is measured.
const CREATED: u32 = 10_000;
/// The number of rows that are inserted at the end of the measurement.
const ROWS: u32 = 10;

/// Creates `count` members and measures their subscriptions, for the time `idle` while nothing
/// changes.
pub(crate) async fn measure(service: &Service, count: u32, idle: Duration) -> Result<()> {
    create(service, count).await?;
    let tokens = tokens(service, count).await?;
    table(service, ("signals", KNOWN_POLICY), &tokens[0]).await?;
    let open =
        async |tokens| Listeners::open_streams(service.address, tokens, "BenchSignals").await;
    for tokens in [&tokens[..1], &tokens] {
        let started = Instant::now();
        let listeners = open(tokens).await?;
        let opened = started.elapsed().as_secs_f64();
        // The first polls handle the new subscriptions, and are not measured.
        tokio::time::sleep(idle / 6).await;
        let [server, database] = idle_cpu(service, idle).await?;
        println!(
            "{NAME}: {} subscribed in {opened:.1} s; while nothing changes, pg {database:.2} % and \
             the server {server:.2} % of a core; {} MiB resident",
            tokens.len(),
            process::resident(service.server)? >> 20,
        );
        if tokens.len() > 1 {
            deliver(service, tokens, &listeners).await?;
        }
    }
    Ok(())
}

/// Creates the members. Prints the time for the first [`CREATED`] of them, or for all if there are
/// fewer.
async fn create(service: &Service, count: u32) -> Result<()> {
    let owner = format!("Authorization: Bearer {}\r\n", service.owner_token);
    let started = Instant::now();
    for first in (0..count).step_by(ARRAY as usize) {
        let numbers = first..count.min(first + ARRAY);
        let members: Vec<Value> = numbers
            .map(|number| {
                json!({ "name": name(number), "kind": "member", "user_group": "people",
                    "password_hash": HASH })
            })
            .collect();
        let body = json!(members).to_string();
        service::post(service.address, "/api/v4/users", &owner, &body).await?;
        let created = first + ARRAY;
        if created == CREATED.min(count) {
            let seconds = started.elapsed().as_secs_f64();
            println!("{NAME}: {created} created with imported hashes in {seconds:.2} s");
        }
    }
    Ok(())
}

fn name(number: u32) -> String {
    format!("member-{number}")
}

/// The access tokens of the members, one for each. The owner requests them.
async fn tokens(service: &Service, count: u32) -> Result<Vec<String>> {
    let address = service.address;
    let started = Instant::now();
    let tokens = each(
        address,
        count,
        async |connection: &mut Connection, number| {
            let path = format!("/api/v4/users/{}/token", name(number));
            let request = format!(
                "POST {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{{}}",
                service.owner_token
            );
            let response = connection.ask(request.as_bytes()).await?;
            let json: Value = serde_json::from_str(&response.body)?;
            let token = json["access_token"].as_str().map(str::to_owned);
            token.ok_or_else(|| response.body.into())
        },
    )
    .await?;
    let seconds = started.elapsed().as_secs_f64();
    println!("{NAME}: {count} tokens in {seconds:.1} s");
    Ok(tokens)
}

/// The CPU of the server and of PostgreSQL during the time `idle`, in percent of a core.
async fn idle_cpu(service: &Service, idle: Duration) -> Result<[f64; 2]> {
    let cpu = || -> Result<[f64; 2]> {
        let server = process::cpu(service.server)?;
        Ok([server, process::family_cpu(service.postmaster)?])
    };
    let (before, started) = (cpu()?, Instant::now());
    tokio::time::sleep(idle).await;
    let (after, elapsed) = (cpu()?, started.elapsed().as_secs_f64());
    Ok([0, 1].map(|process| (after[process] - before[process]) / elapsed * 100.0))
}

/// Inserts rows of some members. Each row must reach its member and no other.
async fn deliver(service: &Service, tokens: &[String], listeners: &Listeners) -> Result<()> {
    let mut connection = Connection::open(service.address).await?;
    let mut times = Vec::new();
    for row in 0..ROWS.min(tokens.len() as u32) {
        let started = Instant::now();
        let number = row * (tokens.len() as u32 / ROWS).max(1);
        insert(
            &mut connection,
            service.address,
            (tokens, "Signals", number),
        )
        .await?;
        listeners.some_have_their_own(row + 1).await?;
        times.push(started.elapsed());
    }
    tokio::time::sleep(GRACE).await;
    listeners.no_others_came(times.len() as u32)?;
    times.sort_unstable();
    println!(
        "{NAME}: {} rows reach their members only, p50 {:.1} ms with the insert",
        times.len(),
        percentile(&times, 0.5)
    );
    Ok(())
}
