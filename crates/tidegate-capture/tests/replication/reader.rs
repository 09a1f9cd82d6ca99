//! The reader that several nodes share.

use std::time::Duration;

use tidegate_capture::ReplicationSettings;
use tidegate_changelog::{ChangeLog as _, LogPosition, LogStream, SharedLog as _};
use tidegate_embedded::testing;
use tidegate_testkit::eventually;

use super::fixture::Fixture;

async fn open(fixture: &Fixture) -> Option<Box<dyn LogStream>> {
    fixture.log.open_reader(&fixture.database).await.unwrap()
}

async fn confirmed(fixture: &Fixture) -> String {
    let query = "SELECT confirmed_flush_lsn::text FROM pg_replication_slots \
                 WHERE database = current_database() AND NOT temporary";
    fixture.value(query).await
}

#[tokio::test]
async fn one_node_at_a_time_is_the_reader() {
    let fixture = Fixture::new("capture_reader").await;
    let first = open(&fixture).await.expect("nobody reads yet");
    assert!(open(&fixture).await.is_none());
    // Another stream is still possible, and does not make anybody the reader.
    let other = fixture.open(None).await.unwrap();
    assert_eq!(other.lineage(), first.lineage());
    drop(first);
    eventually("another reader", async || open(&fixture).await.is_some()).await;
}

#[tokio::test]
async fn what_the_reader_has_not_confirmed_comes_again() {
    let fixture = Fixture::new("capture_unconfirmed").await;
    let mut reader = open(&fixture).await.expect("nobody reads yet");
    let start = reader.start();
    fixture.run("CREATE TABLE filler (id int)").await;
    reader.request_position();
    reader.next(&mut Vec::new()).await.unwrap();
    drop(reader);
    let mut again = None;
    eventually("another reader", async || {
        again = open(&fixture).await;
        again.is_some()
    })
    .await;
    assert_eq!(again.unwrap().start(), start);
    assert_eq!(confirmed(&fixture).await, start.to_string());
}

#[tokio::test]
async fn a_silent_reader_is_closed_and_a_new_one_is_not() {
    let fixture = Fixture::new("capture_silent_reader").await;
    let (log, database) = (&fixture.log, &fixture.database);
    let mut reader = open(&fixture).await.expect("nobody reads yet");
    let hour = Duration::from_hours(1);
    log.close_reader(database, hour).await.unwrap();
    assert!(open(&fixture).await.is_none());
    log.close_reader(database, Duration::ZERO).await.unwrap();
    eventually("another reader", async || open(&fixture).await.is_some()).await;
    let mut batch = Vec::new();
    while reader.next(&mut batch).await.is_ok() {}
}

#[tokio::test]
async fn the_end_of_the_log_is_read_without_moving_a_window_that_is_too_large() {
    let settings = ReplicationSettings {
        retention: Some(1000),
        ..ReplicationSettings::default()
    };
    let fixture = Fixture::on(testing::cluster(), "capture_end", settings).await;
    let (log, database) = (&fixture.log, &fixture.database);
    let start = fixture.open(None).await.unwrap().start();
    let kept = confirmed(&fixture).await;
    fixture
        .run("SET synchronous_commit = on; CREATE TABLE t AS SELECT generate_series(1, 5000)")
        .await;
    let end = log.end(database).await.unwrap();
    assert!(end.0 > start.0 + 1000, "{start} {end}");
    assert_eq!(confirmed(&fixture).await, kept);
    log.retain(database, LogPosition(0)).await.unwrap();
    assert_ne!(confirmed(&fixture).await, kept);
}
