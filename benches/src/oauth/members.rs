//! Measures sign-in, refresh and first request of members, before and after many other members are
//! added to the control database. The first request reads the member's row under a policy by
//! `tidegate.user_id()`.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{form, refresh_token};
use crate::connection::Connection;
use crate::page_sign_up::{KNOWN_POLICY, table};
use crate::service::{self, Service};
use crate::statistics::percentile;
use crate::{Result, process};

/// The largest number of members that are measured.
const MEMBERS: u32 = 300;
const PASSWORD: &str = "bench-password-1";
/// Adds the other members as sign-ups do, with emails and properties. [`SESSIONS`] adds a session
/// for every tenth of them.
const OTHERS: &str = "\
    insert into tidegate.users (database, name, kind, id, password_hash, email, properties, \
        user_group, default_user, created_at) \
      select 'demo', 'other-' || n, 'member', gen_random_uuid()::text, \
        '$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$aGFzaGhhc2hoYXNoaGFzaGhhc2hoYXNo', \
        'other-' || n || '@example.org', '{\"org\":\"acme\"}', 'others', false, now() \
      from generate_series(1, $1::bigint) n";
const SESSIONS: &str = "\
    insert into tidegate.sessions (id, database, user_name, client_id, grant_kind, presented, \
        created_at, refreshed_at, expires_at, closes_at) \
      select gen_random_uuid(), 'demo', 'other-' || n, 'demo-app', 'password', 0, now(), now(), \
        now() + interval '30 days', now() + interval '90 days' \
      from generate_series(1, $1::bigint, 10) n";

/// Measures the steps before and after `others` members are added, and prints a line for each step.
/// At most `others` members are measured.
pub(crate) async fn measure(service: &Service, others: u32) -> Result<()> {
    let members = MEMBERS.min(others);
    for prefix in ["few", "many"] {
        create(service, prefix, members).await?;
    }
    rows(service, members).await?;
    steps(service, ("few", members), "without others").await?;
    let control = control(service).await?;
    let count = i64::from(others);
    let started = Instant::now();
    control.execute(OTHERS, &[&count]).await?;
    control.execute(SESSIONS, &[&count]).await?;
    control
        .batch_execute("vacuum analyze tidegate.users, tidegate.sessions")
        .await?;
    // The checkpoint writes the new rows now, and not during the sign-ins.
    control.batch_execute("checkpoint").await?;
    let seconds = started.elapsed().as_secs_f64();
    println!("oauth members: {others} others within {seconds:.1} s");
    steps(
        service,
        ("many", members),
        &format!("beside {others} others"),
    )
    .await
}

async fn control(service: &Service) -> Result<tokio_postgres::Client> {
    let mut config: tokio_postgres::Config = service.floor_url.parse()?;
    config.dbname("tidegate");
    let (client, connection) = config.connect(tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

/// Creates the members that are measured, in one request. Each has its name as its id.
async fn create(service: &Service, prefix: &str, members: u32) -> Result<()> {
    let member = |number: u32| {
        let name = format!("{prefix}-{number}");
        json!({ "name": name, "id": name, "kind": "member", "user_group": "people",
            "password": PASSWORD })
    };
    let members: Vec<Value> = (0..members).map(member).collect();
    let owner = format!("Authorization: Bearer {}\r\n", service.owner_token);
    let body = json!(members).to_string();
    service::post(service.address, "/api/v4/users", &owner, &body).await?;
    Ok(())
}

/// Creates a table with one row of each member.
async fn rows(service: &Service, members: u32) -> Result<()> {
    let first = json!({ "grant_type": "password", "client_id": "demo-app", "database": "demo",
        "username": "few-0", "password": PASSWORD });
    let token = service::token(service.address, "/api/v4/oauth", &first.to_string()).await?;
    table(service, ("cards", KNOWN_POLICY), &token).await?;
    let insert = format!(
        "insert into bench_cards (author, title) select id, 'card of ' || id \
         from generate_series(0, {members} - 1) n, \
             lateral (values ('few-' || n), ('many-' || n)) m (id); \
         analyze bench_cards"
    );
    service.run(&insert).await
}

/// The times of a step, and the CPU time of the service and PostgreSQL before the step.
struct Step {
    times: Vec<Duration>,
    cpu: (f64, f64),
}

impl Step {
    fn begin(service: &Service) -> Result<Self> {
        Ok(Self {
            times: Vec::new(),
            cpu: cpu(service)?,
        })
    }

    fn end(mut self, service: &Service, (what, when): (&str, &str)) -> Result<()> {
        self.times.sort_unstable();
        let (server, database) = cpu(service)?;
        let each = |seconds: f64| seconds * 1e6 / self.times.len() as f64;
        println!(
            "oauth members: {what} {when}: p50 {:.2} ms, p99 {:.2} ms, server {:.0} us, pg {:.0} us",
            percentile(&self.times, 0.5),
            percentile(&self.times, 0.99),
            each(server - self.cpu.0),
            each(database - self.cpu.1),
        );
        Ok(())
    }
}

fn cpu(service: &Service) -> Result<(f64, f64)> {
    Ok((
        process::cpu(service.server)?,
        process::family_cpu(service.postmaster)?,
    ))
}

/// Measures three steps: all members sign in, then all send their first request, then all refresh
/// their token. In each step one member follows the other.
async fn steps(service: &Service, (prefix, members): (&str, u32), when: &str) -> Result<()> {
    let address = service.address;
    let mut connection = Connection::open(address).await?;
    let mut tokens = Vec::new();
    let mut step = Step::begin(service)?;
    for number in 0..members {
        let body = format!(
            "grant_type=password&client_id=demo-app&database=demo&username={prefix}-{number}\
             &password={PASSWORD}"
        );
        let sent = Instant::now();
        let response = connection.ask(&form(address, "", &body)).await?;
        step.times.push(sent.elapsed());
        tokens.push(serde_json::from_str::<Value>(&response.body)?);
    }
    step.end(service, ("sign-in", when))?;
    let mut step = Step::begin(service)?;
    for (number, token) in tokens.iter().enumerate() {
        let access = token["access_token"].as_str().ok_or("no token")?;
        let body = r#"{"query":"{ getBenchCards { title } }"}"#;
        let request = format!(
            "POST /api/graphql/schema/public HTTP/1.1\r\nHost: {address}\r\n\
             Authorization: Bearer {access}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let sent = Instant::now();
        let response = connection.ask(request.as_bytes()).await?;
        step.times.push(sent.elapsed());
        let own = format!("[{{\"title\":\"card of {prefix}-{number}\"}}]");
        if response.body != format!("{{\"data\":{{\"getBenchCards\":{own}}}}}") {
            return Err(format!("{prefix}-{number} sees {}", response.body).into());
        }
    }
    step.end(service, ("first request", when))?;
    let mut step = Step::begin(service)?;
    for token in &tokens {
        let token = refresh_token(token)?;
        let body = format!("grant_type=refresh_token&client_id=demo-app&refresh_token={token}");
        let sent = Instant::now();
        let response = connection.ask(&form(address, "", &body)).await?;
        step.times.push(sent.elapsed());
        refresh_token(&serde_json::from_str(&response.body)?)?;
    }
    step.end(service, ("refresh", when))
}
