//! Tests transactions that the change log contains but that are not visible yet, because they wait
//! for a standby.

use std::time::Duration;

use tidegate_testkit::eventually;
use tokio::task::JoinHandle;
use tokio_postgres::Client;

use crate::fixture::{Fixture, Listener, Setup, own_cluster_with};
use crate::query_log::QueryLog;

/// A setup with a cluster for one test. Sessions with synchronous commits wait for a standby that
/// does not exist.
fn without_standby() -> Setup {
    Setup {
        cluster: own_cluster_with(&[("synchronous_standby_names", "nobody")]),
        ..Setup::default()
    }
}

async fn fixture(name: &str) -> Fixture {
    Fixture::with(name, &without_standby()).await
}

/// Commits a change that is not visible before [`make_visible`]. Returns when the change log
/// contains it.
async fn write_invisibly(fixture: &Fixture, sql: &str) -> JoinHandle<Client> {
    let session = fixture.session().await;
    let sql = format!("SET synchronous_commit = on; SELECT; BEGIN; {sql}; COMMIT");
    let writer = tokio::spawn(async move {
        session.batch_execute(&sql).await.unwrap();
        session
    });
    let waits = "EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep' \
                 AND datname = current_database())";
    until(fixture, waits).await;
    writer
}

/// Ends the wait for the standby, which makes the commit visible.
async fn make_visible(fixture: &Fixture, writer: JoinHandle<Client>) {
    fixture
        .run(
            "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' \
             AND datname = current_database()",
        )
        .await;
    writer.await.unwrap();
}

async fn until(fixture: &Fixture, condition: &str) {
    let query = format!("SELECT {condition}");
    let holds = async || fixture.sql.query_one(&query, &[]).await.unwrap().get(0);
    eventually(condition, holds).await;
}

/// Waits until the feed has delivered everything that committed before this call.
async fn wait_until_delivered(fixture: &Fixture, marker: &mut Listener) {
    fixture.run("INSERT INTO marker VALUES (1)").await;
    assert_eq!(marker.event().await, "+{\"id\":1}");
}

#[tokio::test]
async fn a_policy_is_read_when_it_is_visible() {
    let (fixture, queries) = QueryLog::fixture("feed_unseen_policy", &without_standby()).await;
    let mut alice = fixture.table_with_policy().await;
    let change = "ALTER POLICY p ON t USING (id <> 2); INSERT INTO t VALUES (2), (3)";
    let writer = write_invisibly(&fixture, change).await;
    // The feed checks whether the table was left unchanged. The answer is no, however often it
    // checks.
    let checked_twice = async {
        while queries.count("pg_locks") < 2 {
            tokio::task::yield_now().await;
        }
    };
    let checked_twice = tokio::time::timeout(Duration::from_secs(30), checked_twice).await;
    checked_twice.expect("the policy is waited for");
    make_visible(&fixture, writer).await;
    assert_eq!(alice.event().await, "+{\"id\":3}");
}

#[tokio::test]
async fn the_first_row_of_a_table_does_not_wait_for_a_standby_that_is_without_standby() {
    let fixture = fixture("feed_unseen_first").await;
    fixture
        .run(
            "CREATE TYPE mood AS ENUM ('glad');
             CREATE TABLE t (id int PRIMARY KEY, feels mood); GRANT SELECT ON t TO PUBLIC;
             CREATE TABLE marker (id int); GRANT SELECT ON marker TO PUBLIC",
        )
        .await;
    let mut alice = fixture.all("t", &["id", "feels"]).await;
    let mut marker = fixture.all("marker", &["id"]).await;
    let writer = write_invisibly(&fixture, "INSERT INTO t VALUES (1, 'glad')").await;
    assert_eq!(alice.event().await, "+{\"id\":1,\"feels\":\"glad\"}");
    wait_until_delivered(&fixture, &mut marker).await;
    assert!(!writer.is_finished());
    make_visible(&fixture, writer).await;
}

#[tokio::test]
async fn policies_are_evaluated_with_what_was_changed_together_with_the_row() {
    let fixture = fixture("feed_unseen_member").await;
    fixture
        .run(
            "CREATE TABLE members (who name); GRANT SELECT ON members TO PUBLIC;
             INSERT INTO members VALUES ('feed_unseen_member/alice');
             CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING \
                 (id = 3 OR EXISTS (SELECT FROM members WHERE who = current_user AND t.id > 0));
             CREATE TABLE marker (id int); GRANT SELECT ON marker TO PUBLIC",
        )
        .await;
    let mut alice = fixture.all("t", &["id"]).await;
    let mut marker = fixture.all("marker", &["id"]).await;
    fixture.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(alice.event().await, "+{\"id\":1}");
    let change = "DELETE FROM members; INSERT INTO t VALUES (2), (3)";
    let writer = write_invisibly(&fixture, change).await;
    // A subscription without a policy does not wait for the commit to become visible.
    wait_until_delivered(&fixture, &mut marker).await;
    make_visible(&fixture, writer).await;
    assert_eq!(alice.event().await, "+{\"id\":3}");
}
