//! The constants for requests, and for WAL of other databases.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;

use super::cluster::Cluster;
use super::constants::Constants;
use super::load::{Load, usage};
use crate::load::{Caller, Plan, run};
use crate::node::Node;
use crate::shape::body::Body;
use crate::{Result, load, process};

const MIB: f64 = 1_048_576.0;

/// Measures the CPU time that a walsender takes to skip a MiB of WAL with changes of another
/// database.
pub(crate) async fn foreign(
    cluster: &Cluster,
    node: &Node,
    constants: &mut Constants,
) -> Result<()> {
    // Starts the walsender of the demo's database. The walsender continues to run for minutes after
    // the load.
    let load = Load {
        sockets: 1,
        events: 1,
        rate: 10,
        seconds: 1,
        is_settled: false,
    };
    load.run(cluster, &[node]).await?;
    let (server, options) = cluster
        .demo
        .floor_url
        .split_once("/demo")
        .ok_or("no database")?;
    let url = format!("{server}/postgres{options}");
    let (client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await?;
    tokio::spawn(connection);
    client
        .batch_execute(
            "create table bench_foreign (id int, note text); set synchronous_commit = off",
        )
        .await?;
    let before = usage(cluster, &[]).await?;
    client
        .batch_execute(
            "do $$begin for i in 1..100000 loop insert into bench_foreign \
             values (i, 'a note of thirty characters, 30'); commit; end loop; end$$",
        )
        .await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = usage(cluster, &[]).await?;
    let mib = (after.wal - before.wal) / MIB;
    let milliseconds = (after.walsenders - before.walsenders) * 1e3;
    constants.postgresql.foreign_ms_per_mib = milliseconds / mib;
    Ok(())
}

/// Measures the CPU time of a read by key over GraphQL.
pub(crate) async fn requests(
    cluster: &Cluster,
    node: &Node,
    constants: &mut Constants,
) -> Result<()> {
    let demo = &cluster.demo;
    demo.run(
        "create table bench_row (id int primary key, note text); grant select on bench_row to demo; \
         insert into bench_row select i, 'a note' from generate_series(1, 1000) i; \
         analyze bench_row",
    )
    .await?;
    let body = json!({ "query": "{ getBenchRow(id: 7) { id note } }" }).to_string();
    let caller = Caller {
        token: Some(demo.owner_token.clone()),
        number: 0,
    };
    let plan = Arc::new(Plan {
        address: node.address,
        path: "/api/graphql/schema/public".to_owned(),
        accept: "application/json".to_owned(),
        callers: [caller].into(),
        body: Body::new([body, String::new()], vec![], vec![]),
    });
    let load = |milliseconds| load::Load {
        connections: 16,
        threads: 1,
        time: Duration::from_millis(milliseconds),
        interval: None,
        once: false,
    };
    run(&plan, load(500)).await?;
    let before = (node.cpu()?, process::family_cpu(demo.postmaster)?);
    let result = run(&plan, load(3000)).await?;
    let after = (node.cpu()?, process::family_cpu(demo.postmaster)?);
    if result.failures > 0 {
        return Err(format!("{} of the reads failed", result.failures).into());
    }
    let count = result.latencies.len() as f64;
    constants.node.request_us = (after.0 - before.0) * 1e6 / count;
    constants.postgresql.request_us = (after.1 - before.1) * 1e6 / count;
    Ok(())
}
