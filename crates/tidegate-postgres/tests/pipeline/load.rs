//! Pipelines under load.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidegate_embedded::testing;
use tidegate_sql::{Error, TransactionOutcome};

use super::{Plan, by_key, fixture, write, write_returning};
use crate::fixture::{Fixture, Sql, connect};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_batches_of_sixteen_tasks_have_their_own_results() {
    let fixture = Arc::new(fixture("pipeline_many_tasks").await);
    let tasks = (0..16_u32).map(|task| {
        let fixture = fixture.clone();
        tokio::spawn(async move {
            let login = if task % 2 == 0 {
                fixture.owner()
            } else {
                fixture.alice()
            };
            for round in 0..625_u32 {
                let ids = (0..10).map(|step| (task * 7 + round * 3 + step * 11) % 100 + 1);
                let ids: Vec<_> = ids.collect();
                let plan = Plan::new(ids.iter().map(|id| by_key(*id)));
                let plan = if round % 3 == 0 {
                    plan.snapshot()
                } else {
                    plan
                };
                let rows = plan.run(&fixture, &login).await.unwrap();
                for (id, rows) in ids.iter().zip(rows) {
                    assert_eq!(rows.values, [[format!("\"item {id}\"")]]);
                }
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    for task in tasks {
        task.await.unwrap();
    }
}

/// Runs pipelines. Returns the first numbers of those that were confirmed and of those that were
/// rolled back, and how many have an unknown outcome.
async fn write_on(fixture: &Fixture, next: &AtomicU32, task: u32) -> (Vec<u32>, Vec<u32>, usize) {
    let (mut confirmed, mut undone, mut unknown) = (Vec::new(), Vec::new(), 0);
    for _ in 0..150 {
        let first = next.fetch_add(3, Ordering::Relaxed);
        let plan = match task % 2 {
            0 => Plan::new([write(first), write(first + 1), write(first + 2)]),
            _ => Plan::new([write_returning(first), by_key(1), write(first + 1)]),
        };
        let Err(error) = plan.run(fixture, &fixture.owner()).await else {
            confirmed.push(first);
            continue;
        };
        let away = matches!(
            error.error,
            Error::Unavailable { .. } | Error::PoolTimeout { .. }
        );
        assert!(away, "{error:?}");
        match error.outcome {
            TransactionOutcome::RolledBack => undone.push(first),
            _ => unknown += 1,
        }
    }
    (confirmed, undone, unknown)
}

/// Every number that was confirmed is in the table once; no number that was rolled back is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_backends_lose_nothing_that_was_confirmed() {
    let fixture = Arc::new(fixture("pipeline_killed").await);
    let next = Arc::new(AtomicU32::new(1));
    let killer = tokio::spawn(async {
        let admin = connect(&testing::cluster().url("postgres")).await;
        let kill = "select count(pg_terminate_backend(pid)) from pg_stat_activity
            where datname = 'pipeline_killed' and usename like 'pipeline_killed%'";
        loop {
            admin.query(kill, &[]).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let tasks = (0..8).map(|task| {
        let (fixture, next) = (fixture.clone(), next.clone());
        tokio::spawn(async move { write_on(&fixture, &next, task).await })
    });
    let tasks: Vec<_> = tasks.collect();
    let (mut confirmed, mut undone, mut unknown) = (Vec::new(), Vec::new(), 0);
    for task in tasks {
        let (yes, no, perhaps) = task.await.unwrap();
        confirmed.extend(yes);
        undone.extend(no);
        unknown += perhaps;
    }
    killer.abort();
    let there = |ids: &[u32]| {
        let list: Vec<_> = ids.iter().map(ToString::to_string).collect();
        format!(
            "select count(*)::text from note where id in ({})",
            list.join(",")
        )
    };
    assert_eq!(
        fixture.value(&there(&confirmed)).await,
        confirmed.len().to_string()
    );
    undone.push(0);
    assert_eq!(fixture.value(&there(&undone)).await, "0");
    assert!(undone.len() + unknown > 1, "nothing was killed");
    let recovered = Sql::new("select 1");
    assert_eq!(recovered.value(&fixture, &fixture.owner()).await, "1");
}
