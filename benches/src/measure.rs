//! Measures the variants of a shape and its floor alternately in slices, so that other load on the
//! machine affects all of them equally.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio_postgres::Client;

use crate::arguments::Arguments;
use crate::connection::Connection;
use crate::floor::Floor;
use crate::load::{self, Caller, Load, Plan};
use crate::peer::Peer;
use crate::service::Service;
use crate::setup::People;
use crate::shape::Shape;
use crate::shape::header::{Callers, Endpoint};
use crate::shape::value::Random;
use crate::statistics::{Sample, mean};
use crate::table::Table;
use crate::variant::{self, Variant};
use crate::{Result, accounts, process};

/// The parameters of all measurements.
pub(crate) struct Bench<'a> {
    /// The running demo.
    pub(crate) service: &'a Service,
    /// The callers of the requests.
    pub(crate) people: &'a People,
    /// The command line.
    pub(crate) arguments: &'a Arguments,
    /// The other server, if there is one.
    pub(crate) peer: Option<&'a Peer>,
    /// The form of the table in which rows are printed.
    pub(crate) table: Table,
    /// The administrator's connection. It stays open, so that counting logins causes no login.
    pub(crate) admin: Client,
}

impl Bench<'_> {
    /// Measures the variants of a shape and prints their rows.
    pub(crate) async fn shape(&self, shape: &Shape, variants: &[Variant]) -> Result<()> {
        let connections = shape
            .header
            .connections
            .unwrap_or(self.arguments.connections());
        let load = Load {
            connections,
            threads: self.arguments.threads,
            time: self.arguments.slice(),
            interval: None,
            once: false,
        };
        let senders = variants.iter().map(|v| self.sender(shape, v, load));
        let senders: Vec<Sender> = senders.collect();
        for (variant, sender) in variants.iter().zip(&senders) {
            let Sender::Load(plan) = sender else { continue };
            let checked = check(plan).await;
            checked.map_err(|error| format!("{}: {error}", variant.name))?;
            self.warm_up(plan, load).await?;
        }
        let peer = self.checked_peer(shape, load).await;
        // The dirty pages of the previous case are written now, so that they are not written during
        // this case.
        self.admin.batch_execute("checkpoint").await?;
        let floor = shape.script().map(|script| Floor {
            script,
            role: Some(variant::floor_role(variants, self.arguments.members)),
            requests: 1,
            clients: connections,
            time: load.time,
        });
        let (mut samples, mut floors, mut peers) = (Vec::new(), Vec::new(), Vec::new());
        samples.resize_with(variants.len(), Sample::default);
        for _ in 0..self.arguments.slices() {
            for ((variant, sender), sample) in variants.iter().zip(&senders).zip(&mut samples) {
                match sender {
                    Sender::Load(plan) => self.slice(variant, plan, load, sample).await?,
                    Sender::Pgbench(floor) => sample.add_rate(floor.run(self.service).await?),
                }
            }
            if let Some(floor) = &floor {
                floors.push(floor.run(self.service).await?);
            }
            if let Some(plan) = &peer {
                let outcome = load::run(plan, load).await?;
                peers.push(outcome.latencies.len() as f64 / outcome.elapsed.as_secs_f64());
            }
        }
        for sample in &mut samples {
            sample.sort();
        }
        let rates = [mean(&floors), mean(&peers)];
        self.table.rows(variants, &samples, rates);
        Ok(())
    }

    /// The plan for the other server. `None` if there is no document for it, or if its response is
    /// an error. Such an error is printed and does not fail the case.
    async fn checked_peer(&self, shape: &Shape, load: Load) -> Option<Arc<Plan>> {
        let peer = self.peer?;
        let plan = Arc::new(peer.plan(shape)?);
        let warm = async {
            check(&plan).await?;
            load::run(&plan, load).await
        };
        match warm.await {
            Ok(_) => Some(plan),
            Err(error) => {
                println!("{} at {}: {error}", peer.name, shape.header.name);
                None
            }
        }
    }

    /// Fills the caches of the service and of PostgreSQL: first every caller sends one request,
    /// then random callers send requests for 0.7 s.
    async fn warm_up(&self, plan: &Arc<Plan>, load: Load) -> Result<()> {
        if self.arguments.quick {
            return Ok(());
        }
        let (time, once) = (WARM_UP, true);
        load::run(plan, Load { time, once, ..load }).await?;
        let time = Duration::from_millis(700);
        load::run(plan, Load { time, ..load }).await?;
        Ok(())
    }

    fn sender(&self, shape: &Shape, variant: &Variant, load: Load) -> Sender {
        match variant.endpoint {
            Endpoint::Pgbench => Sender::Pgbench(pgbench(shape, variant, load)),
            _ => Sender::Load(self.plan(shape, variant)),
        }
    }

    fn plan(&self, shape: &Shape, variant: &Variant) -> Arc<Plan> {
        let people = self.people;
        let owner = || Caller {
            token: Some(self.service.owner_token.clone()),
            number: 0,
        };
        let callers = match variant.callers {
            Callers::Owner => [owner()].into(),
            Callers::Guest => [people.guest.clone()].into(),
            Callers::Tenants => people.of_tenants.clone(),
            _ => people.first_users(variant.users),
        };
        Arc::new(variant.plan(shape, self.service, callers))
    }

    async fn slice(
        &self,
        variant: &Variant,
        plan: &Arc<Plan>,
        load: Load,
        sample: &mut Sample,
    ) -> Result<()> {
        if !self.arguments.quick {
            // These requests are not measured. They reopen connections that the pool may have
            // closed during the previous variant.
            let time = LEAD_IN;
            load::run(plan, Load { time, ..load }).await?;
        }
        let logins = self.logins().await?;
        let database = process::family_cpu(self.service.postmaster)?;
        let (server, generator) = (
            process::cpu(self.service.server)?,
            process::cpu(std::process::id())?,
        );
        let outcome = if variant.callers == Callers::UsersWithSignUps {
            let (outcome, signed_up) =
                tokio::join!(load::run(plan, load), self.sign_ups(load.time));
            sample.sign_ups += signed_up?;
            outcome?
        } else {
            load::run(plan, load).await?
        };
        sample.generator += process::cpu(std::process::id())? - generator;
        sample.server += process::cpu(self.service.server)? - server;
        sample.database += process::family_cpu(self.service.postmaster)? - database;
        sample.logins += self.logins().await?.saturating_sub(logins);
        sample.add(&outcome.latencies, outcome.elapsed, outcome.failures);
        Ok(())
    }

    /// Signs people up at a constant rate until `time` has passed. Returns the number of people.
    async fn sign_ups(&self, time: Duration) -> Result<u32> {
        let end = Instant::now() + time;
        let interval = Duration::from_secs(1) / self.arguments.sign_ups.max(1);
        let mut connection = Connection::open(self.service.address).await?;
        let mut due = tokio::time::interval(interval);
        let mut count = 0;
        loop {
            due.tick().await;
            if Instant::now() >= end {
                return Ok(count);
            }
            let name = format!("new-{}-{}", std::process::id(), next_number());
            let tenant = &self.people.tenant;
            tenant.sign_up(&mut connection, &name, count).await?;
            count += 1;
        }
    }

    /// The number of sessions that PostgreSQL has started; 0 before PostgreSQL 14.
    async fn logins(&self) -> Result<u64> {
        const COUNT: &str = "select coalesce(sum((to_jsonb(d)->>'sessions')::bigint), 0)::bigint \
            from pg_stat_database d";
        let count: i64 = self.admin.query_one(COUNT, &[]).await?.get(0);
        Ok(count.try_into()?)
    }
}

/// The program that sends the requests of a variant.
enum Sender {
    /// The load generator, to the service.
    Load(Arc<Plan>),
    /// pgbench, to PostgreSQL.
    Pgbench(Floor),
}

/// The run of pgbench for a variant without the service. For one user, as many requests are in
/// flight as with the load generator. pgbench sends them in pipelines on as many connections as
/// there are processors, because the service multiplexes the requests of one user in this way. For
/// many users, each user has a connection with one request in flight, because pgbench cannot choose
/// a connection at random.
fn pgbench(shape: &Shape, variant: &Variant, load: Load) -> Floor {
    let processors = available_parallelism().map_or(1, usize::from);
    let clients = processors.min(load.connections);
    let pipelined = (load.connections / clients) as u32;
    let time = load.time;
    if variant.users > 1 {
        return Floor {
            script: shape.script_of_users(accounts::ROLE_OF_CLIENT),
            role: None,
            requests: 1,
            clients: variant.users as usize,
            time,
        };
    }
    Floor {
        script: shape.pipeline_script(pipelined),
        role: Some(variant::floor_role(std::slice::from_ref(variant), false)),
        requests: pipelined,
        clients,
        time,
    }
}

/// The number of the next person who signs up.
fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Sends one request and checks its response, which must have rows and no error. Only the size of a
/// large response is read.
async fn check(plan: &Plan) -> Result<()> {
    let (mut body, mut request) = (Vec::new(), Vec::new());
    plan.write(0, &mut Random::new(1), [&mut body, &mut request]);
    let mut connection = Connection::open(plan.address).await?;
    if connection.exchange(&request).await?.size > MAX_CHECKED_SIZE {
        return Ok(());
    }
    let response = connection.ask(&request).await?;
    let wrong = |what: &str| {
        let body: String = response.body.chars().take(500).collect();
        format!("{what}: {} {body}", response.status)
    };
    let Ok(json) = serde_json::from_str::<Value>(&response.body) else {
        return Err(wrong("no JSON").into());
    };
    let failed = |json: &Value| json.get("error").is_some() || json.get("errors").is_some();
    let calls = json
        .as_array()
        .is_some_and(|calls| calls.iter().any(failed));
    if response.status != 200 || failed(&json) || calls {
        return Err(wrong("an error").into());
    }
    let fields = json.get("data").and_then(Value::as_object);
    let empty = |field: &Value| field.is_null() || field.as_array().is_some_and(Vec::is_empty);
    if fields.is_some_and(|fields| fields.values().any(empty)) {
        return Err(wrong("no rows").into());
    }
    Ok(())
}

/// The timeout for the warm-up in which every caller sends one request. Each of these requests may
/// need a login.
const WARM_UP: Duration = Duration::from_mins(2);

/// The time before each slice in which requests are sent but not measured.
const LEAD_IN: Duration = Duration::from_millis(200);

/// The largest size in bytes of a response that is checked. A larger response may be streamed
/// without `Content-Length`, which the check needs.
const MAX_CHECKED_SIZE: u64 = 64 << 10;
