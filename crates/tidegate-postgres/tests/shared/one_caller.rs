//! One user's slow statements beside the requests of others on the same authenticator.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tidegate_embedded::testing;
use tidegate_pool::Settings;
use tidegate_sql::Error;
use tidegate_testkit::eventually;
use tokio::time::timeout;

use super::{ours, tenant_on, user};
use crate::fixture::{Fixture, connect};

const READ: &str = "select id from slow where id = 1";

/// Holds up all reads of the table `slow` until the connection is closed.
async fn lock(fixture: &Fixture) -> tokio_postgres::Client {
    let locker = connect(&fixture.url()).await;
    locker
        .batch_execute("BEGIN; LOCK TABLE slow")
        .await
        .unwrap();
    locker
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_user_leaves_connections_for_the_others() {
    let settings = Settings {
        wait: Duration::from_secs(30),
        ..Settings::default()
    };
    let most = i64::try_from(settings.of_caller()).unwrap();
    // The largest number of reads that wait on multiplexed connections, for 0.1 s.
    let multiplexed = i64::try_from(settings.of_user() / 4).unwrap();
    let fixture = Fixture::on(testing::cluster(), "shared_one_caller", settings).await;
    let (fixture, _) = tenant_on(fixture, 2).await;
    let grant = format!(
        "CREATE TABLE slow AS SELECT 1 AS id; GRANT SELECT ON slow TO \"{}/all\"",
        fixture.name
    );
    fixture.admin.batch_execute(&grant).await.unwrap();
    let (greedy, other) = (user(&fixture, 1), user(&fixture, 2));
    // The reads of the second round may be multiplexed when they begin to wait.
    for round in 0..2 {
        let (least, most) = (most, most + round * multiplexed);
        let locker = lock(&fixture).await;
        let reads: Vec<_> = (0..40)
            .map(|_| {
                let (fixture, greedy) = (fixture.clone(), greedy.clone());
                tokio::spawn(async move { ours(READ).run(&fixture, &greedy).await })
            })
            .collect();
        fixture.wait_for_running(READ, least).await;
        for _ in 0..10 {
            let response = ours("select 'in'").run(&fixture, &other);
            let response = timeout(Duration::from_secs(2), response).await;
            assert_eq!(
                response.expect("the other user waits").unwrap().values,
                [["\"in\""]]
            );
            assert!(fixture.running(READ).await <= most, "round {round}");
        }
        locker.batch_execute("COMMIT").await.unwrap();
        for read in join_all(reads).await {
            assert_eq!(read.unwrap().unwrap().values, [["1"]]);
        }
        share(&fixture).await;
    }
}

/// A request may wait for others of its user first, and for a connection then.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_waits_no_longer_than_the_pool_allows() {
    let wait = Duration::from_secs(3);
    let settings = Settings {
        capacity: 4,
        per_role: 1,
        wait,
        ..Settings::default()
    };
    let fixture = Fixture::on(testing::cluster(), "shared_one_wait", settings).await;
    let (fixture, _) = tenant_on(fixture, 2).await;
    let tables = "CREATE TABLE slow AS SELECT 1 AS id; CREATE TABLE other AS SELECT 1 AS id; \
                  GRANT SELECT ON slow, other TO \"shared_one_wait/all\"";
    fixture.admin.batch_execute(tables).await.unwrap();
    let locker = lock(&fixture).await;
    let for_ever = connect(&fixture.url()).await;
    let lock_other = "BEGIN; LOCK TABLE other";
    for_ever.batch_execute(lock_other).await.unwrap();
    let run = |number, text: &'static str| {
        let fixture = fixture.clone();
        async move { ours(text).run(&fixture, &user(&fixture, number)).await }
    };
    let first = tokio::spawn(run(1, READ));
    fixture.wait_for_running(READ, 1).await;
    // The only connection is in use. The second user gets it next, and keeps it.
    let second = tokio::spawn(run(2, "select id from other"));
    let is_waiting = async || {
        fixture
            .users
            .pool()
            .stats()
            .roles
            .iter()
            .any(|role| role.waiting > 0)
    };
    eventually("the second user waits", is_waiting).await;
    let began = Instant::now();
    let mut third = std::pin::pin!(run(1, "select 1"));
    assert!(timeout(wait / 2, &mut third).await.is_err());
    locker.batch_execute("COMMIT").await.unwrap();
    first.await.unwrap().unwrap();
    let refused = third.await.unwrap_err();
    assert!(matches!(refused, Error::PoolTimeout { .. }), "{refused:?}");
    let waited = began.elapsed();
    assert!(waited < wait * 13 / 10, "{waited:?}");
    for_ever.batch_execute("COMMIT").await.unwrap();
    second.await.unwrap().unwrap();
}

/// Runs reads of both users until some are multiplexed.
async fn share(fixture: &Arc<Fixture>) {
    let before = fixture.users.multiplexed_requests();
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while fixture.users.multiplexed_requests() == before {
        assert!(std::time::Instant::now() < deadline, "nothing is shared");
        let reads = (0..40).map(|number| async move {
            let login = user(fixture, number % 2 + 1);
            ours(READ).run(fixture, &login).await.unwrap();
        });
        join_all(reads).await;
    }
}
