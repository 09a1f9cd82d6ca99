//! Tests rows that come or go with a whole partition, which the change log does not contain.

use std::time::Duration;

use tidegate_feed::{Ended, FeedSettings, Item, QueueLimits, Resync};

use crate::fixture::{Fixture, Setup, listen, listen_within, node};

/// A setup whose feed polls often, so that tests need not wait.
fn setup() -> Setup {
    Setup {
        settings: FeedSettings {
            poll_interval: Duration::from_millis(50),
            ..FeedSettings::default()
        },
        ..Setup::default()
    }
}

async fn partitioned(name: &str) -> Fixture {
    let fixture = Fixture::with(name, &setup()).await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id);
             CREATE TABLE t0 PARTITION OF t FOR VALUES FROM (0) TO (10);
             CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (10) TO (20);
             CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (20) TO (40) PARTITION BY RANGE (id);
             CREATE TABLE t2a PARTITION OF t2 FOR VALUES FROM (20) TO (30);
             CREATE TABLE t2b PARTITION OF t2 FOR VALUES FROM (30) TO (40);
             INSERT INTO t VALUES (1), (11), (21), (31);
             CREATE TABLE full_one (id int PRIMARY KEY);
             INSERT INTO full_one VALUES (41);
             GRANT SELECT ON t TO PUBLIC",
        )
        .await;
    fixture
}

#[tokio::test]
async fn rows_that_come_or_go_with_a_partition_are_a_gap() {
    let fixture = partitioned("feed_partition_rows").await;
    let mut listener = fixture.all("t", &["id"]).await;
    for command in [
        "TRUNCATE t0",
        "DROP TABLE t2a",
        "ALTER TABLE t DETACH PARTITION t1",
        "ALTER TABLE t ATTACH PARTITION full_one FOR VALUES FROM (40) TO (50)",
        "ALTER TABLE t DETACH PARTITION t2",
        "BEGIN; CREATE TABLE copied (id int NOT NULL PRIMARY KEY); INSERT INTO copied VALUES (55);
         ALTER TABLE t ATTACH PARTITION copied FOR VALUES FROM (50) TO (60); COMMIT",
    ] {
        fixture.run(command).await;
        assert_eq!(listener.resync().await, Resync::Partitions, "{command}");
    }
    // Events continue, including those of the attached partition.
    fixture.run("INSERT INTO t VALUES (2), (42)").await;
    assert_eq!(listener.events(2).await, ["+{\"id\":2}", "+{\"id\":42}"]);
}

#[tokio::test]
async fn a_partition_that_is_detached_concurrently_is_a_gap() {
    let fixture = partitioned("feed_partition_concurrently").await;
    if fixture.version() < 14 {
        return;
    }
    let mut listener = fixture.all("t", &["id"]).await;
    fixture
        .run("ALTER TABLE t DETACH PARTITION t1 CONCURRENTLY")
        .await;
    assert_eq!(listener.resync().await, Resync::Partitions);
}

#[tokio::test]
async fn changes_without_rows_and_reported_changes_are_no_gap() {
    let fixture = partitioned("feed_partition_calm").await;
    let mut listener = fixture.all("t", &["id"]).await;
    // The next poll finds the result of these statements.
    let mut probe = fixture.all("t", &["id"]).await;
    fixture
        .run(
            "CREATE TABLE t4 PARTITION OF t FOR VALUES FROM (60) TO (70);
             CREATE TABLE empty (id int NOT NULL PRIMARY KEY);
             ALTER TABLE t ATTACH PARTITION empty FOR VALUES FROM (70) TO (80);
             ALTER TABLE t ADD COLUMN note text",
        )
        .await;
    fixture.run("TRUNCATE t").await;
    fixture.run("INSERT INTO t VALUES (3)").await;
    assert_eq!(listener.resync().await, Resync::Truncated);
    assert_eq!(listener.event().await, "+{\"id\":3}");
    assert_eq!(probe.resync().await, Resync::Truncated);
    assert_eq!(probe.event().await, "+{\"id\":3}");
    // Only this TRUNCATE is reported, and only once.
    fixture.run("TRUNCATE t0").await;
    assert_eq!(listener.resync().await, Resync::Partitions);
    fixture.run("INSERT INTO t VALUES (4)").await;
    assert_eq!(listener.event().await, "+{\"id\":4}");
}

#[tokio::test]
async fn a_subscription_that_resumes_on_another_node_gets_the_gap() {
    let fixture = partitioned("feed_partition_resume").await;
    let listener = fixture.all("t", &["id"]).await;
    let cursor = listener.cursor;
    fixture.feed.stop();
    drop(listener);
    fixture.run("TRUNCATE t0").await;
    // No node has polled this change, and the change log does not contain it.
    let other = node(&setup());
    let mut request = fixture.request("t", &["id"]).await;
    request.after = Some(cursor);
    let mut back = listen(&other, request.clone()).await.unwrap();
    assert_eq!(back.resync().await, Resync::Partitions);
    // The change is now recorded, so a third node reads it too.
    let third = node(&setup());
    let mut late = listen(&third, request).await.unwrap();
    assert_eq!(late.resync().await, Resync::Expired);
    fixture.run("INSERT INTO t VALUES (5)").await;
    assert_eq!(late.event().await, "+{\"id\":5}");
    assert_eq!(back.event().await, "+{\"id\":5}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_delivers_older_events_before_the_gap() {
    let fixture = partitioned("feed_partition_late").await;
    let mut listener = fixture.all("t", &["id"]).await;
    let begin = listener.cursor;
    fixture
        .run("INSERT INTO t SELECT i FROM generate_series(2, 39) i WHERE i % 10 > 1")
        .await;
    let all = listener.events(32).await;
    let mut request = fixture.request("t", &["id"]).await;
    request.after = Some(begin);
    let limits = QueueLimits {
        events: 4,
        ..QueueLimits::default()
    };
    let mut late = listen_within(&fixture.feed, request, limits).await.unwrap();
    fixture.run("ALTER TABLE t DETACH PARTITION t1").await;
    assert_eq!(listener.resync().await, Resync::Partitions);
    // The rows of the detached partition come first. A client that reads the table again after the
    // gap drops them.
    assert_eq!(late.events(32).await, all);
    assert_eq!(late.resync().await, Resync::Partitions);
    fixture.run("INSERT INTO t VALUES (30)").await;
    assert_eq!(late.event().await, "+{\"id\":30}");
}

#[tokio::test]
async fn a_table_that_becomes_a_partition_ends_its_subscriptions() {
    let fixture = partitioned("feed_became_partition").await;
    fixture.run("GRANT SELECT ON full_one TO PUBLIC").await;
    let mut listener = fixture.all("full_one", &["id"]).await;
    fixture
        .run("ALTER TABLE t ATTACH PARTITION full_one FOR VALUES FROM (40) TO (50)")
        .await;
    match listener.next().await {
        Item::Ended(Ended::Changed { problem }) => {
            assert_eq!(problem, "the table was attached to a partitioned table");
        }
        other => panic!("{other:?}"),
    }
}
