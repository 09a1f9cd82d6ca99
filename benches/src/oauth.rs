//! Measures the OAuth server: the cost of checking a token, the rate of refreshes, and how much
//! concurrent sign-ins slow down queries.

pub(crate) mod members;

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use tidegate_identity::{
    MasterKey, NewUser, PasswordCost, PasswordHasher, Secret, SystemRandom, TenantName,
    UserDirectory, UserName,
};
use tidegate_oauth::{
    ClientDirectory, GuestRequest, Issuer, MemoryStore, NewClient, Parameters, Ports, Settings,
};
use tokio::task::LocalSet;
use tokio::time::{sleep, sleep_until};

use crate::connection::Connection;
use crate::service::{self, Service};
use crate::statistics::percentile;
use crate::{Result, process};

/// The number of tokens to check. It is less than the number of tokens that a node caches.
const TOKENS: u32 = 2_000;
const ROUNDS: u32 = 200;
/// The number of people who sign in at the same time.
const PEOPLE: u32 = 200;
/// The interval between two queries of a connection. It is long enough that the service is not
/// saturated.
const QUERY_INTERVAL: Duration = Duration::from_millis(20);

/// Whether a case is selected.
fn chosen(only: Option<&str>, name: &str) -> bool {
    only.is_none_or(|text| name.contains(text))
}

/// Runs the selected cases and prints their results.
pub(crate) async fn run(
    service: &Service,
    only: Option<&str>,
    (connections, time): (usize, Duration),
) -> Result<()> {
    if chosen(only, "oauth verify") {
        verify().await?;
    }
    if chosen(only, "oauth refresh") {
        refresh(service, connections, time).await?;
    }
    if chosen(only, "oauth login storm") {
        storm(service, connections, time).await?;
    }
    Ok(())
}

/// Measures in this process how long it takes to check a token for the first time and again.
async fn verify() -> Result<()> {
    let issuer = issuer().await?;
    let mut tokens: Vec<Secret> = Vec::new();
    for _ in 0..TOKENS {
        let asked = Parameters::from_json(br#"{"database":"reef","client_id":"map"}"#)?;
        let request = GuestRequest::parse(&asked, None)?;
        tokens.push(issuer.guest(request, None).await?.access_token);
    }
    let started = Instant::now();
    for token in &tokens {
        issuer.verify(token.expose())?;
    }
    let cold = started.elapsed() / TOKENS;
    let started = Instant::now();
    for _ in 0..ROUNDS {
        for token in &tokens {
            issuer.verify(token.expose())?;
        }
    }
    let cached = started.elapsed() / (TOKENS * ROUNDS);
    println!("oauth verify, cold: {:.1} us", micros(cold));
    println!("oauth verify, cached: {:.2} us", micros(cached));
    Ok(())
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[expect(
    clippy::disallowed_methods,
    reason = "a program takes the time from the system"
)]
async fn issuer() -> Result<Issuer> {
    let random = Arc::new(SystemRandom::new());
    let ports = Ports {
        store: Arc::new(MemoryStore::new()),
        clock: Arc::new(SystemTime::now),
        random: random.clone(),
        hasher: Arc::new(PasswordHasher::start(1, PasswordCost::default(), &*random)?),
    };
    let directory = UserDirectory::new(ports.identity());
    let reef = TenantName::parse("reef")?;
    let visitor = NewUser {
        default_user: true,
        ..NewUser::new(reef.clone(), UserName::parse("visitor")?)
    };
    directory.create_user(visitor).await?;
    let map = NewClient {
        id: Some("map".to_owned()),
        public: true,
        ..NewClient::new(reef, "Map", vec!["https://map.example/".to_owned()])
    };
    ClientDirectory::new(ports.clone())
        .create_client(map)
        .await?;
    let settings = Settings::new("https://id.example")?;
    Ok(Issuer::start(ports, MasterKey::generate(&*random)?, settings).await?)
}

/// Measures refreshes. Each connection has its own session and sends the refresh token of the
/// previous response.
async fn refresh(service: &Service, connections: usize, time: Duration) -> Result<()> {
    let mut sessions = Vec::new();
    for _ in 0..connections {
        let given = service::post(service.address, "/api/v4/oauth", "", service::OWNER).await?;
        sessions.push(refresh_token(&given)?);
    }
    let before = (
        process::cpu(service.server)?,
        process::family_cpu(service.postmaster)?,
    );
    let started = Instant::now();
    let clients = sessions
        .into_iter()
        .map(|token| refresh_in_turn(service.address, token, started + time));
    let times = all(clients).await?;
    let rate = times.len() as f64 / started.elapsed().as_secs_f64();
    let each = |seconds: f64| seconds * 1e6 / times.len() as f64;
    println!(
        "oauth refresh: {rate:.0}/s, p50 {:.2} ms, p99 {:.2} ms, server {:.1} us, pg {:.1} us",
        percentile(&times, 0.5),
        percentile(&times, 0.99),
        each(process::cpu(service.server)? - before.0),
        each(process::family_cpu(service.postmaster)? - before.1),
    );
    Ok(())
}

async fn refresh_in_turn(
    address: SocketAddr,
    mut token: String,
    end: Instant,
) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(address).await?;
    let mut times = Vec::new();
    while Instant::now() < end {
        let body = format!("grant_type=refresh_token&client_id=demo-app&refresh_token={token}");
        let sent = Instant::now();
        let response = connection.ask(&form(address, "", &body)).await?;
        times.push(sent.elapsed());
        token = refresh_token(&serde_json::from_str(&response.body)?)?;
    }
    Ok(times)
}

/// Measures queries at a constant rate, alone and while 200 people try to sign in at the same time.
async fn storm(service: &Service, connections: usize, time: Duration) -> Result<()> {
    let queries = || {
        let by_key: Rc<[Vec<u8>]> = (1..=1000).map(|n| query(service, n)).collect();
        (0..connections).map(move |n| queries_at_pace(service.address, by_key.clone(), n, time))
    };
    let idle = all(queries()).await?;
    let tried = Rc::new(Cell::new((0, 0)));
    let storm = async {
        let end = Instant::now() + time;
        let people = (0..PEOPLE).map(|n| sign_in(service.address, n, tried.clone(), end));
        all(people).await
    };
    let (stormy, waits) = tokio::join!(all(queries()), storm);
    let (stormy, waits) = (stormy?, waits?);
    let (checked, refused) = tried.get();
    let p99 = (percentile(&idle, 0.99), percentile(&stormy, 0.99));
    println!(
        "oauth login storm: queries p50 {:.2} -> {:.2} ms, p99 {:.2} -> {:.2} ms, {:.2} times; \
         {PEOPLE} people, {checked} passwords checked (p99 {:.0} ms), \
         {refused} refused with 429 or 503",
        percentile(&idle, 0.5),
        percentile(&stormy, 0.5),
        p99.0,
        p99.1,
        p99.1 / p99.0,
        percentile(&waits, 0.99),
    );
    Ok(())
}

fn query(service: &Service, number: u32) -> Vec<u8> {
    let id = number * 97 % 100_000 + 1;
    let body = format!(
        r#"{{"q":"select id, name, price, created_at from bench where id = :id","params":{{"id":{id}}}}}"#
    );
    format!(
        "POST /api/v4/sql HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        service.address,
        service.owner_token,
        body.len()
    )
    .into_bytes()
}

/// Sends queries on one connection at fixed times. The latency counts from the scheduled time, so
/// that the delay that a slow query causes for the following queries is measured too.
async fn queries_at_pace(
    address: SocketAddr,
    requests: Rc<[Vec<u8>]>,
    first: usize,
    time: Duration,
) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(address).await?;
    let mut times = Vec::new();
    let begin = Instant::now() + QUERY_INTERVAL.mul_f64(first as f64 / 16.0);
    let mut due = begin;
    while due < begin + time {
        sleep_until(due.into()).await;
        let turn = (first * 61 + times.len()) % requests.len();
        connection.exchange(&requests[turn]).await?;
        times.push(due.elapsed());
        due += QUERY_INTERVAL;
    }
    Ok(times)
}

/// Tries wrong passwords, each for another user name and from another client address, so that rate
/// limits do not protect the password hashers. After a refused attempt, waits as long as
/// `Retry-After` demands.
async fn sign_in(
    address: SocketAddr,
    person: u32,
    tried: Rc<Cell<(u32, u32)>>,
    end: Instant,
) -> Result<Vec<Duration>> {
    let mut connection = Connection::open(address).await?;
    let mut times = Vec::new();
    let mut turn = 0_u32;
    while Instant::now() < end {
        turn += 1;
        let [_, _, high, low] = turn.to_be_bytes();
        let headers =
            format!("X-Forwarded-Proto: https\r\nX-Forwarded-For: 10.{person}.{high}.{low}\r\n");
        let body = format!(
            "grant_type=password&client_id=demo-app&database=demo&username=p{person}-{turn}\
             &password=wrong-password"
        );
        let sent = Instant::now();
        let response = connection.ask(&form(address, &headers, &body)).await?;
        let (checked, refused) = tried.get();
        match response.status {
            400 => {
                times.push(sent.elapsed());
                tried.set((checked + 1, refused));
            }
            429 | 503 => {
                tried.set((checked, refused + 1));
                sleep(Duration::from_secs(response.retry_after.unwrap_or(1))).await;
            }
            _ => return Err(response.body.into()),
        }
    }
    Ok(times)
}

/// Runs the futures concurrently. Returns the durations that they measured, sorted.
async fn all<F>(futures: impl Iterator<Item = F>) -> Result<Vec<Duration>>
where
    F: Future<Output = Result<Vec<Duration>>> + 'static,
{
    let local = LocalSet::new();
    let tasks: Vec<_> = futures.map(|future| local.spawn_local(future)).collect();
    let mut times = Vec::new();
    local
        .run_until(async {
            for task in tasks {
                times.extend(task.await??);
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        })
        .await?;
    times.sort_unstable();
    Ok(times)
}

fn form(address: SocketAddr, headers: &str, body: &str) -> Vec<u8> {
    format!(
        "POST /api/v4/oauth HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Type: \
         application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn refresh_token(response: &Value) -> Result<String> {
    let token = response["refresh_token"].as_str();
    Ok(token.ok_or_else(|| response.to_string())?.to_owned())
}
