//! Tests tables that cannot be captured again at once, and gaps that must not be forgotten.

use std::time::Duration;

use tidegate_feed::{Error, FeedSettings, Operation, Resync};
use tidegate_sql::DatabaseName;

use tokio::time::Instant;

use crate::capture_health::{TABLE, gap, until_delivered, wait_for_poll};
use crate::fixture::{Fixture, Setup, listen, node, own_cluster};
use crate::query_log::QueryLog;

const TAKE_OUT: &str = "ALTER PUBLICATION tidegate DROP TABLE t; INSERT INTO t VALUES (5, 'lost')";

/// A setup whose feed waits only a second for the writers of a table. It has a separate cluster,
/// because streams of other tests would wait for the writers too.
fn with_short_timeout(poll_interval: Duration) -> Setup {
    Setup {
        cluster: own_cluster(),
        settings: FeedSettings {
            subscribe_timeout: Duration::from_secs(1),
            poll_interval,
            ..FeedSettings::default()
        },
        ..Setup::default()
    }
}

#[tokio::test]
async fn a_table_with_a_slow_writer_is_captured_again_when_the_writer_ends() {
    let (fixture, queries) = QueryLog::fixture(
        "feed_lost_slowly",
        &with_short_timeout(Duration::from_millis(200)),
    )
    .await;
    fixture.run(TABLE).await;
    let mut all = fixture.first("t", &["id"]).await;
    wait_for_poll(&queries).await;
    let writer = fixture.session().await;
    let write = "BEGIN; INSERT INTO t VALUES (4, 'x')";
    writer.batch_execute(write).await.unwrap();
    fixture.run(TAKE_OUT).await;
    // While the writer is open, the feed polls but cannot capture the table again.
    queries.polled(10).await;
    writer.batch_execute("COMMIT").await.unwrap();
    assert_eq!(gap(&mut all).await, Resync::Interrupted);
    until_delivered(&fixture, &mut all).await;
}

#[tokio::test]
async fn a_table_that_is_locked_when_the_stream_reopens_is_captured_later() {
    let setup = with_short_timeout(Duration::from_hours(1));
    let fixture = Fixture::with("feed_lost_busy", &setup).await;
    fixture.run(TABLE).await;
    let mut all = fixture.first("t", &["id"]).await;
    let writer = fixture.session().await;
    let write = "BEGIN; INSERT INTO t VALUES (4, 'x')";
    writer.batch_execute(write).await.unwrap();
    fixture.run(TAKE_OUT).await;
    fixture.break_streams().await;
    // The stream is open again once a subscription fails only because it waits for the writer.
    let request = fixture.request("t", &["id"]).await;
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match fixture.subscribe(request.clone()).await {
            Err(Error::Timeout { what, .. }) if what.contains("open before") => break,
            Err(error @ (Error::Timeout { .. } | Error::Unavailable(_))) => {
                assert!(Instant::now() < deadline, "{error:?}");
            }
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("changes that were written meanwhile may be missing"),
        }
    }
    writer.batch_execute("COMMIT").await.unwrap();
    fixture
        .feed
        .schema_changed(&DatabaseName::new(&fixture.name));
    assert_eq!(gap(&mut all).await, Resync::Interrupted);
    until_delivered(&fixture, &mut all).await;
}

#[tokio::test]
async fn a_gap_is_still_known_after_the_stream_was_reopened() {
    const READER: &str = "SELECT coalesce(max(active_pid), 0) FROM pg_replication_slots \
                          WHERE database = current_database()";
    let (fixture, queries) = QueryLog::fixture("feed_lost_before", &Setup::default()).await;
    fixture.run(TABLE).await;
    let mut all = fixture.first("t", &["id"]).await;
    let before = all.cursor;
    wait_for_poll(&queries).await;
    fixture.run(TAKE_OUT).await;
    fixture.run("ALTER PUBLICATION tidegate ADD TABLE t").await;
    assert_eq!(gap(&mut all).await, Resync::Interrupted);
    until_delivered(&fixture, &mut all).await;
    let reader = async || -> i32 { fixture.sql.query_one(READER, &[]).await.unwrap().get(0) };
    let old = reader().await;
    fixture.break_streams().await;
    while [0, old].contains(&reader().await) {}
    let mut request = fixture.request("t", &["id"]).await;
    request.after = Some(before);
    let mut late = fixture.subscribe(request).await.unwrap();
    assert_eq!(late.resync().await, Resync::Expired);
}

/// A setup whose feed polls the catalog only on request.
fn polled_on_request() -> Setup {
    Setup::with(FeedSettings {
        poll_interval: Duration::from_hours(1),
        ..FeedSettings::default()
    })
}

#[tokio::test]
async fn a_table_that_another_node_captured_again_before_the_stream_broke_has_a_gap() {
    let setup = polled_on_request();
    let fixture = Fixture::with("feed_lost_unseen", &setup).await;
    fixture.run(TABLE).await;
    let mut all = fixture.first("t", &["id"]).await;
    fixture.run(TAKE_OUT).await;
    let other = node(&setup);
    let request = fixture.request("t", &["id"]).await;
    let mut there = listen(&other, request).await.unwrap();
    // The stream breaks before it reaches the new start of the capture.
    fixture.run("INSERT INTO t VALUES (6, 'x')").await;
    for listener in [&mut all, &mut there] {
        assert_eq!(listener.event().await, "+{\"id\":6}");
    }
    fixture.break_streams().await;
    assert_eq!(all.resync().await, Resync::Interrupted);
    // No event is missing on the other node.
    fixture.run("INSERT INTO t VALUES (7, 'x')").await;
    for listener in [&mut all, &mut there] {
        assert_eq!(listener.event().await, "+{\"id\":7}");
    }
}

#[tokio::test]
async fn a_table_that_is_removed_after_its_health_was_checked_has_a_gap() {
    let (fixture, queries) = QueryLog::fixture("feed_lost_between", &polled_on_request()).await;
    fixture.run(TABLE).await;
    let mut all = fixture.first("t", &["id"]).await;
    // A subscription that needs whole old rows extends the capture.
    let mut request = fixture.request("t", &["id", "a"]).await;
    request.operations = Operation::Delete.into();
    let held = queries.hold_poll().await;
    let (late, ()) = tokio::join!(fixture.subscribe(request), async {
        queries.held().await;
        fixture.run(TAKE_OUT).await;
        drop(held);
    });
    let mut late = late.unwrap();
    assert_eq!(all.resync().await, Resync::Interrupted);
    fixture.run("DELETE FROM t WHERE id = 2").await;
    assert_eq!(late.event().await, "-{\"id\":2,\"a\":\"x\"}");
    assert_eq!(all.event().await, "-{\"id\":2}");
}
