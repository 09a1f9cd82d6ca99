//! One user's slow statements beside the requests of others on the same authenticator.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tidegate_embedded::testing;
use tidegate_pool::Settings;
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
            let answer = ours("select 'in'").run(&fixture, &other);
            let answer = timeout(Duration::from_secs(2), answer).await;
            assert_eq!(
                answer.expect("the other user waits").unwrap().values,
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

/// Runs reads of both users until some are multiplexed.
async fn share(fixture: &Arc<Fixture>) {
    let before = fixture.users.shared_reads();
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while fixture.users.shared_reads() == before {
        assert!(std::time::Instant::now() < deadline, "nothing is shared");
        let reads = (0..40).map(|number| async move {
            let login = user(fixture, number % 2 + 1);
            ours(READ).run(fixture, &login).await.unwrap();
        });
        join_all(reads).await;
    }
}
