//! Measures what a policy costs PostgreSQL that compares a column with `tidegate.user_id()`, beside
//! a policy with a constant and a table without a policy.
//!
//! pgbench sends what the service sends for a read of a member: the statement that seals the
//! member's claims and the read by key, in one pipeline, which is one transaction. pgbench does not
//! log in as the role of a group. The functions of claims accept the seal nevertheless, because a
//! seal depends on the key, the backend and the transaction, and not on the role.

use tidegate_postgres::{CLAIMS_GENERATION, SET_CLAIMS};

use crate::arguments::Arguments;
use crate::floor::{Floor, number};
use crate::service::Service;
use crate::statistics::median;
use crate::{Result, process};

const NAME: &str = "policy by claims";
/// The number of rows of each table.
const ROWS: u32 = 20_000;
/// The aim: the policy by claims takes fewer than this many microseconds more than the policy with
/// a constant.
const AIM: f64 = 10.0;
/// The tables, and the condition of the policy of each.
const TABLES: [(&str, Option<&str>); 3] = [
    ("without a policy", None),
    ("with a constant", Some("owner = 'ada'")),
    (
        "with `tidegate.user_id()`",
        Some("owner = (select tidegate.user_id())"),
    ),
];

/// Measures and prints the CPU time of PostgreSQL, unless only other cases are selected. Slices of
/// the tables take turns.
pub(crate) async fn run(service: &Service, arguments: &Arguments) -> Result<()> {
    if !arguments.wants(NAME) {
        return Ok(());
    }
    let mut floors = Vec::new();
    let begin = begin(service).await?;
    for (table, (_, condition)) in TABLES.iter().enumerate() {
        service.run(&create(table, *condition)).await?;
        check(service, &begin, table).await?;
        floors.push(Floor {
            script: format!("{begin}\\startpipeline\n{}\\endpipeline\n", read(table)),
            time: arguments.slice(),
            ..one_transaction()
        });
    }
    service.run("vacuum analyze").await?;
    let mut slices = vec![Vec::new(); floors.len()];
    for _ in 0..arguments.slices() {
        for (floor, slices) in floors.iter().zip(&mut slices) {
            slices.push(microseconds(service, floor).await?);
        }
    }
    let medians: Vec<f64> = slices.into_iter().map(median).collect();
    report(&medians, arguments);
    Ok(())
}

fn report(medians: &[f64], arguments: &Arguments) {
    println!();
    for ((name, _), cost) in TABLES.iter().zip(medians) {
        println!("{NAME}: a seal and a read by key {name}: pg {cost:.1} us");
    }
    if let [none, constant, claims] = *medians {
        let more = claims - constant;
        let met = if more < AIM { "met" } else { "missed" };
        println!(
            "{NAME}: {more:.1} us more than with a constant, {:.1} us more than without a policy; \
             medians of {} slices; {met}: less than {AIM:.0} us",
            claims - none,
            arguments.slices()
        );
    }
}

/// The parameters of a short run of pgbench on one connection. Callers set the script, and some set
/// a longer time.
fn one_transaction() -> Floor {
    Floor {
        script: String::new(),
        role: None,
        requests: 1,
        clients: 1,
        time: std::time::Duration::ZERO,
    }
}

/// The commands before the first transaction of a connection: they compute what the service sends
/// to seal claims, and take the role for which the policies apply.
async fn begin(service: &Service) -> Result<String> {
    let client = service.client().await?;
    let generation: i32 = client.query_one(CLAIMS_GENERATION, &[]).await?.get(0);
    let key = |half: &str| {
        format!(
            "int8send(pg_sequence_last_value('tidegate_private.key_{generation}_{half}'::regclass))"
        )
    };
    Ok(format!(
        "\\if :switched\n\\else\n\\set switched 1\n\
         select claims, head, \
             sha384({a} || {b} || int4send(pg_backend_pid()) || head::bytea)::text as token \
         from (select claims, encode(sha256(claims::bytea), 'hex') || 'ada' as head \
               from (select '{{\"org\": \"acme\"}}'::text as claims) c) h \\gset\n\
         select set_config('role', 'bench_reader', false);\n\\endif\n\
         \\set id random(1, {ROWS})\n",
        a = key("a"),
        b = key("b"),
    ))
}

/// The statements of a transaction.
fn read(table: usize) -> String {
    let seal = SET_CLAIMS
        .replace("$1", ":token")
        .replace("$2", ":head")
        .replace("$3", ":claims");
    format!("{seal};\nselect id, title from bench_policy_{table} where id = :id;\n")
}

/// Fails if the read returns no row, because `\gset` fails without a row.
async fn check(service: &Service, begin: &str, table: usize) -> Result<()> {
    let read = read(table);
    let read = read.trim_end().trim_end_matches(';');
    let floor = Floor {
        script: format!("{begin}begin;\n{read} \\gset\ncommit;\n"),
        ..one_transaction()
    };
    floor.run(service).await?;
    Ok(())
}

/// The SQL that creates a table whose rows all belong to `ada`, unless it exists.
fn create(table: usize, condition: Option<&str>) -> String {
    let policy = condition.map_or_else(String::new, |condition| {
        format!(
            "alter table bench_policy_{table} enable row level security; \
             create policy own on bench_policy_{table} using ({condition});"
        )
    });
    format!(
        "do $$ begin \
         if to_regrole('bench_reader') is null then create role bench_reader; end if; \
         grant usage on schema public to bench_reader; \
         if to_regclass('bench_policy_{table}') is null then \
             create table bench_policy_{table} (id int primary key, owner text not null, \
                 title text not null); \
             insert into bench_policy_{table} select n, 'ada', 'title ' || n \
                 from generate_series(1, {ROWS}) n; \
             grant select on bench_policy_{table} to bench_reader; \
             {policy} \
         end if; end $$"
    )
}

/// Microseconds of PostgreSQL's CPU for each transaction of a run of pgbench.
async fn microseconds(service: &Service, floor: &Floor) -> Result<f64> {
    let before = process::family_cpu(service.postmaster)?;
    let transactions = number(&floor.output(service).await?, "actually processed: ")?;
    let seconds = process::family_cpu(service.postmaster)? - before;
    Ok(seconds * 1e6 / transactions)
}
