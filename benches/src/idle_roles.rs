//! Measures the CPU time that PostgreSQL uses for an idle service with many roles and many
//! databases in use.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::accounts::BenchTenant;
use crate::arguments::Arguments;
use crate::service::{Service, post};
use crate::statistics::median;
use crate::{Result, process, setup};

const NAME: &str = "idle with 100,000 roles";
const ROLES: u32 = 100_000;
const DATABASES: u32 = 50;
/// How long a round is measured. It is shorter than the half minute for which the service treats a
/// database as used after a request.
const TIME: Duration = Duration::from_secs(25);
const ROUNDS: usize = 3;
/// The aim: the largest share of a core that PostgreSQL may use.
const AIM: f64 = 0.02;

/// Measures, unless only other cases are selected.
pub(crate) async fn run(arguments: &Arguments) -> Result<()> {
    if !arguments.wants(NAME) {
        return Ok(());
    }
    let arguments = Arguments::with_defaults_of_postgresql(arguments.binary.as_deref())?;
    let service = Service::start(&arguments, None).await?;
    let tenants = prepare(&service).await?;
    let mut shares = Vec::new();
    for _ in 0..ROUNDS {
        for tenant in &tenants {
            use_database(tenant).await?;
        }
        let before = process::family_cpu(service.postmaster)?;
        let started = Instant::now();
        tokio::time::sleep(TIME).await;
        let seconds = started.elapsed().as_secs_f64();
        shares.push((process::family_cpu(service.postmaster)? - before) / seconds);
    }
    let share = median(shares);
    let met = if share <= AIM { "met" } else { "missed" };
    println!(
        "\n{NAME}: {:.2} % of a core of PostgreSQL in the {} s after a request to each of {DATABASES} \
         databases, median of {ROUNDS} rounds; {met}: at most {:.0} %",
        share * 100.0,
        TIME.as_secs(),
        AIM * 100.0
    );
    Ok(())
}

/// Creates roles with SQL, and tenants whose databases are in use.
async fn prepare(service: &Service) -> Result<Vec<BenchTenant>> {
    // Autovacuum is turned off, because it visits each database once a minute even without the
    // service.
    service.run("alter system set autovacuum = off").await?;
    service.run("select pg_reload_conf()").await?;
    let roles = format!(
        "do $$begin for i in 1..{ROLES} loop execute format('create role bench_role_%s', i); \
         if i % 1000 = 0 then commit; end if; end loop; end$$"
    );
    service.run(&roles).await?;
    let mut tenants = Vec::new();
    for number in 0..DATABASES {
        let (tenant, _) = setup::owner(service, number).await?;
        use_database(&tenant).await?;
        tenants.push(tenant);
    }
    service.run("vacuum analyze").await?;
    service.run("checkpoint").await?;
    // The work that the new roles and databases cause must not be measured.
    tokio::time::sleep(TIME).await;
    Ok(tenants)
}

async fn use_database(tenant: &BenchTenant) -> Result<()> {
    let authorization = format!("Authorization: Bearer {}\r\n", tenant.owner_token);
    let body = json!({ "query": "{ __typename }" }).to_string();
    let path = "/api/graphql/schema/public";
    post(tenant.address, path, &authorization, &body).await?;
    Ok(())
}
