//! People who sign up as members through the pages, as browsers do. Each must see only its own rows,
//! in queries and in live events.

mod browser;
mod listeners;

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::Result;
use crate::connection::Connection;
use crate::service::{self, Service};
use browser::{Browser, CALLBACK};
use listeners::Listeners;

/// The name of the case.
pub(crate) const NAME: &str = "sign-up by pages";
const CLIENT: &str = "bench-newcomers";
const TABLE: &str = "create table bench_letters (id bigint generated always as identity primary key, \
        author text not null default tidegate.user_id(), title text); \
    create index on bench_letters (author); \
    alter table bench_letters owner to demo; \
    alter table bench_letters enable row level security; \
    create policy own on bench_letters using (author = (select tidegate.user_id())); \
    grant select, insert on bench_letters to \"demo/group/newcomers\"";
/// How long an event of another person may take to arrive.
const GRACE: Duration = Duration::from_secs(2);

/// Signs up `count` people and checks what each of them sees.
pub(crate) async fn measure(service: &Service, count: u32) -> Result<()> {
    register(service).await?;
    let address = service.address;
    let started = Instant::now();
    let tokens = each(
        address,
        count,
        async |connection: &mut Connection, number| {
            Browser::new(connection, address, number)
                .sign_up(CLIENT)
                .await
        },
    )
    .await?;
    report(&format!("{count} members"), started, count);
    service.run(TABLE).await?;
    known(address, &tokens[0]).await?;
    let started = Instant::now();
    let listeners = Listeners::open(address, &tokens).await?;
    report("subscriptions", started, count);
    let started = Instant::now();
    each(
        address,
        count,
        async |connection: &mut Connection, number| {
            let query = format!(
                "mutation {{ insertBench_letters(data: {{title: \"{number}\"}}) {{ id }} }}"
            );
            graphql(connection, address, (&tokens[number as usize], &query)).await
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
            let query = "{ getBench_letters { title } }";
            let rows = graphql(connection, address, (&tokens[number as usize], query)).await?;
            let own = json!({ "getBench_letters": [{ "title": number.to_string() }] });
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
    listeners.no_others_came()?;
    println!("{NAME}: each sees its own row only, in queries and in events");
    Ok(())
}

fn report(what: &str, started: Instant, count: u32) {
    let seconds = started.elapsed().as_secs_f64();
    let rate = f64::from(count) / seconds;
    println!("{NAME}: {what} in {seconds:.1} s, {rate:.0} a second");
}

/// Registers the client of the sign-ups.
async fn register(service: &Service) -> Result<()> {
    let client = json!({ "id": CLIENT, "name": "Newcomers", "public": true, "allow_signup": true,
        "confirm": false, "redirect_uri": [CALLBACK], "signup_kind": "member",
        "signup_group": "newcomers" });
    let owner = format!("Authorization: Bearer {}\r\n", service.owner_token);
    let body = client.to_string();
    service::post(service.address, "/api/v4/clients", &owner, &body).await?;
    Ok(())
}

/// Waits until the table is in the schema that members see.
async fn known(address: SocketAddr, token: &str) -> Result<()> {
    let mut connection = Connection::open(address).await?;
    let query = "{ __type(name: \"Bench_letters\") { name } }";
    while graphql(&mut connection, address, (token, query)).await?["__type"].is_null() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// Runs a task for each number on 8 connections, and returns the results in order.
async fn each<T>(
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

/// The data of a GraphQL document.
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
    let answer = connection.ask(request.as_bytes()).await?;
    let mut json: Value = serde_json::from_str(&answer.body)?;
    if json["data"].is_object() {
        return Ok(json["data"].take());
    }
    Err(answer.body.into())
}
