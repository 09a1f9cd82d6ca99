//! Crashes of PostgreSQL while many users run pipelines.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tidegate_embedded::{Cluster, Shutdown};
use tidegate_pool::Settings;
use tidegate_sql::{Error, TransactionOutcome};

use super::{ours, tenant_on, user};
use crate::fixture::Fixture;
use crate::pipeline::Plan;

const USERS: usize = 12;

/// The numbers that one user wrote, by outcome.
#[derive(Default)]
struct WriteOutcomes {
    confirmed: Vec<u32>,
    undone: Vec<u32>,
    unknown: Vec<u32>,
}

/// Writes one number after the other, each in a pipeline that also reads.
async fn write_on(
    fixture: Arc<Fixture>,
    number: usize,
    (next, over): (Arc<AtomicU32>, Arc<AtomicBool>),
) -> WriteOutcomes {
    let login = user(&fixture, number);
    let who = format!("\"{}\"", login.role);
    let mut written = WriteOutcomes::default();
    while !over.load(Ordering::SeqCst) {
        let id = next.fetch_add(1, Ordering::SeqCst);
        let insert = "insert into log values (:id, current_user) returning id, who";
        let plan = Plan::new([
            ours("select current_user"),
            ours(insert).set([&id.to_string()]),
            ours("select bool_and(who = current_user) from log"),
        ]);
        let plan = plan.ours();
        let ran = tokio::time::timeout(Duration::from_secs(30), plan.run(&fixture, &login));
        match ran.await.expect("a request hangs") {
            Ok(rows) => {
                assert_eq!(rows[0].values, [[who.clone()]]);
                assert_eq!(rows[1].values, [[id.to_string(), who.clone()]]);
                assert_eq!(rows[2].values, [["true"]]);
                written.confirmed.push(id);
            }
            Err(error) => {
                let away = matches!(
                    error.error,
                    Error::Unavailable { .. } | Error::PoolTimeout { .. }
                );
                assert!(away, "{error:?}");
                match error.outcome {
                    TransactionOutcome::RolledBack => written.undone.push(id),
                    _ => written.unknown.push(id),
                }
                tokio::task::yield_now().await;
            }
        }
    }
    written
}

/// Crashes PostgreSQL three times under load, and waits for its recovery.
async fn crash(cluster: &Cluster, fixture: &Fixture, next: &AtomicU32) {
    for _ in 0..3 {
        let mark = next.load(Ordering::SeqCst) + 200;
        let deadline = Instant::now() + Duration::from_mins(1);
        while next.load(Ordering::SeqCst) < mark {
            assert!(Instant::now() < deadline, "it does not recover");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cluster.restart(Shutdown::Immediate).await.unwrap();
    }
    let recovered = async {
        while ours("select 1")
            .run(fixture, &user(fixture, 1))
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), recovered)
        .await
        .expect("it does not recover");
}

/// Compares the reported outcomes with the table.
async fn compare(admin: &tokio_postgres::Client, fixture: &Fixture, all: &[WriteOutcomes]) {
    let rows = admin.query("SELECT id, who FROM log", &[]).await.unwrap();
    let mut found: HashMap<u32, String> = HashMap::new();
    for row in rows {
        let id = u32::try_from(row.get::<_, i32>(0)).unwrap();
        assert!(found.insert(id, row.get(1)).is_none(), "{id} twice");
    }
    let mut disturbed = 0;
    for (place, written) in all.iter().enumerate() {
        let role = user(fixture, place + 1).role;
        for id in &written.confirmed {
            assert_eq!(found.remove(id).as_deref(), Some(role.as_str()), "{id}");
        }
        for id in &written.undone {
            assert_eq!(found.get(id), None, "{id}");
        }
        for id in &written.unknown {
            found.remove(id);
        }
        disturbed += written.undone.len() + written.unknown.len();
    }
    assert!(found.is_empty(), "{found:?}");
    assert!(disturbed > 0, "nothing was disturbed");
}

/// Nothing is written twice or for another user, and nothing confirmed is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_postgresql_that_dies_under_pipelines_loses_nothing_that_was_confirmed() {
    // Without `synchronous_commit`, a crash can undo what was confirmed.
    let settings = tidegate_embedded::testing::settings().with("synchronous_commit", "on");
    let cluster = Cluster::start(settings).await.unwrap();
    let cluster: &'static Cluster = Box::leak(Box::new(cluster));
    let fixture = Fixture::on(cluster, "shared_outage", Settings::default()).await;
    let (fixture, _) = tenant_on(fixture, USERS).await;
    fixture
        .admin
        .batch_execute(
            "CREATE TABLE log (id int, who text); GRANT SELECT, INSERT ON log TO PUBLIC; \
             ALTER TABLE log ENABLE ROW LEVEL SECURITY; \
             CREATE POLICY own ON log USING (who = current_user)",
        )
        .await
        .unwrap();
    let (next, over) = (
        Arc::new(AtomicU32::new(1)),
        Arc::new(AtomicBool::new(false)),
    );
    let tasks = (1..=USERS).map(|number| {
        let run = write_on(fixture.clone(), number, (next.clone(), over.clone()));
        tokio::spawn(run)
    });
    let tasks: Vec<_> = tasks.collect();
    crash(cluster, &fixture, &next).await;
    over.store(true, Ordering::SeqCst);
    let admin = crate::fixture::connect(&cluster.url("shared_outage")).await;
    let mut all = Vec::new();
    for task in tasks {
        all.push(task.await.unwrap());
    }
    compare(&admin, &fixture, &all).await;
    cluster.halt(Shutdown::Immediate).await.unwrap();
}
