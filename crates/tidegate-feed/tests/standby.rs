//! Transactions that are in the log and not yet seen by others, because they wait for a standby.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::asked::Asked;
use crate::scene::{Listener, Scene, Setup, own_cluster_with};

/// A cluster of the test's own, in which the commits of sessions that ask for it wait for ever.
fn gone() -> Setup {
    Setup {
        cluster: own_cluster_with(&[("synchronous_standby_names", "nobody")]),
        ..Setup::default()
    }
}

async fn waiting(name: &str) -> Scene {
    Scene::with(name, &gone()).await
}

/// Commits something that others do not see before [`let_see`], and returns when it is in the log.
async fn write_unseen(scene: &Scene, sql: &str) -> JoinHandle<Client> {
    let session = scene.session().await;
    let sql = format!("SET synchronous_commit = on; SELECT; BEGIN; {sql}; COMMIT");
    let writer = tokio::spawn(async move {
        session.batch_execute(&sql).await.unwrap();
        session
    });
    let waits = "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' \
                 AND datname = current_database())";
    until(scene, waits).await;
    writer
}

/// Others see what was written from now on.
async fn let_see(scene: &Scene, writer: JoinHandle<Client>) {
    scene
        .run(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' \
             AND datname = current_database()",
        )
        .await;
    writer.await.unwrap();
}

async fn until(scene: &Scene, condition: &str) {
    let query = format!("SELECT {condition}");
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    let holds = async || -> bool { scene.sql.query_one(&query, &[]).await.unwrap().get(0) };
    while !holds().await {
        assert!(tokio::time::Instant::now() < deadline, "never: {condition}");
        tokio::task::yield_now().await;
    }
}

/// Waits until the feed has handed out what committed before.
async fn passed(scene: &Scene, marker: &mut Listener) {
    scene.run("INSERT INTO marker VALUES (1)").await;
    assert_eq!(marker.event().await, "+{\"id\":1}");
}

#[tokio::test]
async fn a_policy_is_read_when_it_is_seen() {
    let (scene, asked) = Asked::scene("feed_unseen_policy", &gone()).await;
    let mut alice = scene.judged().await;
    let change = "ALTER POLICY p ON t USING (id <> 2); INSERT INTO t VALUES (2), (3)";
    let writer = write_unseen(&scene, change).await;
    // However often it is asked whether the table was left alone: it was not.
    let asked_twice = async {
        while asked.count("pg_locks") < 2 {
            tokio::task::yield_now().await;
        }
    };
    let asked_twice = tokio::time::timeout(Duration::from_secs(30), asked_twice).await;
    asked_twice.expect("the policy is waited for");
    let_see(&scene, writer).await;
    assert_eq!(alice.event().await, "+{\"id\":3}");
}

#[tokio::test]
async fn the_first_row_of_a_table_does_not_wait_for_a_standby_that_is_gone() {
    let scene = waiting("feed_unseen_first").await;
    scene
        .run(
            "CREATE TYPE mood AS ENUM ('glad');
             CREATE TABLE t (id int PRIMARY KEY, feels mood); GRANT SELECT ON t TO PUBLIC;
             CREATE TABLE marker (id int); GRANT SELECT ON marker TO PUBLIC",
        )
        .await;
    let mut alice = scene.all("t", &["id", "feels"]).await;
    let mut marker = scene.all("marker", &["id"]).await;
    let writer = write_unseen(&scene, "INSERT INTO t VALUES (1, 'glad')").await;
    assert_eq!(alice.event().await, "+{\"id\":1,\"feels\":\"glad\"}");
    passed(&scene, &mut marker).await;
    assert!(!writer.is_finished());
    let_see(&scene, writer).await;
}

#[tokio::test]
async fn policies_judge_by_what_was_changed_with_the_row() {
    let scene = waiting("feed_unseen_member").await;
    scene
        .run(
            "CREATE TABLE members (who name); GRANT SELECT ON members TO PUBLIC;
             INSERT INTO members VALUES ('feed_unseen_member/alice');
             CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING \
                 (id = 3 OR EXISTS (SELECT FROM members WHERE who = current_user AND t.id > 0));
             CREATE TABLE marker (id int); GRANT SELECT ON marker TO PUBLIC",
        )
        .await;
    let mut alice = scene.all("t", &["id"]).await;
    let mut marker = scene.all("marker", &["id"]).await;
    scene.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(alice.event().await, "+{\"id\":1}");
    let change = "DELETE FROM members; INSERT INTO t VALUES (2), (3)";
    let writer = write_unseen(&scene, change).await;
    // Who needs no policy does not wait for it.
    passed(&scene, &mut marker).await;
    let_see(&scene, writer).await;
    assert_eq!(alice.event().await, "+{\"id\":3}");
}
