//! People who sign up as members through the pages, as browsers do. Each must see only its own
//! rows, in queries and in live events.

mod browser;
mod event_streams;
pub(crate) mod listeners;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Result;
use crate::connection::Connection;
use crate::process;
use crate::service::{self, Service};
use crate::statistics::percentile;
use browser::{CALLBACK, SignUpBrowser};
use listeners::Listeners;

/// The name of the case.
pub(crate) const NAME: &str = "sign-up by pages";
const CLIENT: &str = "bench-sign-ups";
/// A policy that the service evaluates itself. The service cannot evaluate [`OTHER_POLICY`], so
/// PostgreSQL evaluates that policy for each member.
pub(crate) const KNOWN_POLICY: &str = "author = (select tidegate.user_id())";
const OTHER_POLICY: &str = "lower(author) = lower((select tidegate.user_id()))";
/// The maximum number of people who subscribe to the table with [`OTHER_POLICY`].
const OTHER_PEOPLE: usize = 1_000;
/// The timeout for the new table to appear in the schema.
const SCHEMA_TIMEOUT: Duration = Duration::from_secs(10);
/// The wait before the check that no socket has received an event of another person.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// Signs up `count` people and checks what each of them sees. `rows` rows are inserted into the
/// table with [`OTHER_POLICY`].
pub(crate) async fn measure(service: &Service, count: u32, rows: u32) -> Result<()> {
    register(service).await?;
    let address = service.address;
    let started = Instant::now();
    let tokens = each(
        address,
        count,
        async |connection: &mut Connection, number| {
            SignUpBrowser::new(connection, address, number)
                .sign_up(CLIENT)
                .await
        },
    )
    .await?;
    report(&format!("{count} members"), started, count);
    table(service, ("letters", KNOWN_POLICY), &tokens[0]).await?;
    let started = Instant::now();
    let listeners = Listeners::open(address, &tokens, "BenchLetters").await?;
    report("subscriptions", started, count);
    let started = Instant::now();
    each(
        address,
        count,
        async |connection: &mut Connection, number| {
            insert(connection, address, (&tokens, "Letters", number)).await
        },
    )
    .await?;
    listeners.all_have_their_own().await?;
    report("inserts with their events", started, count);
    let started = Instant::now();
    each(
        address,
        count,
        async |connection: &mut Connection, number| {
            let query = "{ getBenchLetters { title } }";
            let rows = graphql(connection, address, (&tokens[number as usize], query)).await?;
            let own = json!({ "getBenchLetters": [{ "title": number.to_string() }] });
            if rows == own {
                Ok(())
            } else {
                Err(format!("{number} sees {rows}").into())
            }
        },
    )
    .await?;
    report("queries", started, count);
    tokio::time::sleep(GRACE).await;
    listeners.no_others_came(count)?;
    println!("{NAME}: each sees its own row only, in queries and in events");
    drop(listeners);
    let some = tokens.len().min(OTHER_PEOPLE);
    evaluated(service, &tokens[..some], rows).await
}

/// Measures the latency and the CPU time for each row if PostgreSQL evaluates the policy for each
/// subscriber.
async fn evaluated(service: &Service, tokens: &[String], rows: u32) -> Result<()> {
    let address = service.address;
    table(service, ("whispers", OTHER_POLICY), &tokens[0]).await?;
    let listeners = Listeners::open(address, tokens, "BenchWhispers").await?;
    let mut connection = Connection::open(address).await?;
    let cpu = || -> Result<[f64; 2]> {
        let server = process::cpu(service.server)?;
        Ok([server, process::family_cpu(service.postmaster)?])
    };
    let before = cpu()?;
    let mut times = Vec::new();
    for number in 0..rows.min(tokens.len() as u32) {
        let started = Instant::now();
        insert(&mut connection, address, (tokens, "Whispers", number)).await?;
        listeners.some_have_their_own(number + 1).await?;
        times.push(started.elapsed());
        tokio::time::sleep(GRACE).await;
    }
    let rows = times.len() as u32;
    listeners.no_others_came(rows)?;
    times.sort_unstable();
    let [server, database] = cpu()?;
    let each = |seconds: f64| seconds * 1e3 / f64::from(rows);
    println!(
        "{NAME}: a row under a policy that PostgreSQL evaluates, {} subscribers: p50 {:.0} ms to \
         its own, server {:.0} ms, pg {:.0} ms",
        tokens.len(),
        percentile(&times, 0.5),
        each(server - before[0]),
        each(database - before[1]),
    );
    Ok(())
}

/// Creates the table `bench_<name>` with a policy, and waits until it is in the schema that members
/// see.
pub(crate) async fn table(
    service: &Service,
    (name, policy): (&str, &str),
    token: &str,
) -> Result<()> {
    let create = format!(
        "create table bench_{name} (id bigint generated always as identity primary key, \
            author text not null default tidegate.user_id(), title text); \
         create index on bench_{name} (author); \
         alter table bench_{name} owner to demo; \
         alter table bench_{name} enable row level security; \
         create policy own on bench_{name} using ({policy}); \
         grant select, insert on bench_{name} to \"demo/group/people\""
    );
    service.run(&create).await?;
    let mut connection = Connection::open(service.address).await?;
    let query = format!("{{ get{} {{ id }} }}", type_name(name));
    let started = Instant::now();
    while let Err(error) = graphql(&mut connection, service.address, (token, &query)).await {
        if started.elapsed() > SCHEMA_TIMEOUT {
            return Err(error);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// The name of a table in GraphQL.
fn type_name(table: &str) -> String {
    let (first, rest) = table.split_at(1);
    format!("Bench{}{rest}", first.to_uppercase())
}

/// Inserts the row of a person.
pub(crate) async fn insert(
    connection: &mut Connection,
    address: SocketAddr,
    (tokens, table, number): (&[String], &str, u32),
) -> Result<Value> {
    let query =
        format!("mutation {{ insertBench{table}(data: {{title: \"{number}\"}}) {{ id }} }}");
    graphql(connection, address, (&tokens[number as usize], &query)).await
}

fn report(what: &str, started: Instant, count: u32) {
    let seconds = started.elapsed().as_secs_f64();
    let rate = f64::from(count) / seconds;
    println!("{NAME}: {what} in {seconds:.1} s, {rate:.0} a second");
}

/// Registers the client of the sign-ups.
async fn register(service: &Service) -> Result<()> {
    let client = json!({ "id": CLIENT, "name": "Sign-ups", "public": true, "allow_signup": true,
        "confirm": false, "redirect_uri": [CALLBACK], "signup_kind": "member",
        "signup_group": "people" });
    let owner = format!("Authorization: Bearer {}\r\n", service.owner_token);
    let body = client.to_string();
    service::post(service.address, "/api/v4/clients", &owner, &body).await?;
    Ok(())
}

/// Runs `task` for each number below `count`, on 8 connections at the same time. Returns the
/// results in the order of the numbers.
pub(crate) async fn each<T>(
    address: SocketAddr,
    count: u32,
    task: impl AsyncFn(&mut Connection, u32) -> Result<T>,
) -> Result<Vec<T>> {
    let next = Cell::new(0_u32);
    let results = RefCell::new(Vec::new());
    let worker = async || -> Result<()> {
        let mut connection = Connection::open(address).await?;
        loop {
            let number = next.replace(next.get() + 1);
            if number >= count {
                return Ok(());
            }
            let result = task(&mut connection, number).await?;
            results.borrow_mut().push((number, result));
        }
    };
    tokio::try_join!(
        worker(),
        worker(),
        worker(),
        worker(),
        worker(),
        worker(),
        worker(),
        worker()
    )?;
    let mut results = results.into_inner();
    results.sort_unstable_by_key(|(number, _)| *number);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Sends a GraphQL document. Returns the `data` of the response.
async fn graphql(
    connection: &mut Connection,
    address: SocketAddr,
    (token, query): (&str, &str),
) -> Result<Value> {
    let body = json!({ "query": query }).to_string();
    let request = format!(
        "POST /api/graphql/schema/public HTTP/1.1\r\nHost: {address}\r\n\
         Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let response = connection.ask(request.as_bytes()).await?;
    let mut json: Value = serde_json::from_str(&response.body)?;
    if json["data"].is_object() {
        return Ok(json["data"].take());
    }
    Err(response.body.into())
}
