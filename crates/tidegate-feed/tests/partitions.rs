//! Rows that come or go with a partition as a whole, which the log of the root leaves out.

use std::time::Duration;

use tidegate_feed::{QueueLimits, Resync, Settings};

use crate::scene::{Scene, Setup, listen, listen_within, node};

/// Looks often, so that tests need not wait.
fn setup() -> Setup {
    Setup {
        settings: Settings {
            standing: Duration::from_millis(50),
            ..Settings::default()
        },
        ..Setup::default()
    }
}

async fn parted(name: &str) -> Scene {
    let scene = Scene::with(name, &setup()).await;
    scene
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
    scene
}

#[tokio::test]
async fn rows_that_come_or_go_with_a_partition_are_a_gap() {
    let scene = parted("feed_partition_rows").await;
    let mut listener = scene.all("t", &["id"]).await;
    for command in [
        "TRUNCATE t0",
        "DROP TABLE t2a",
        "ALTER TABLE t DETACH PARTITION t1",
        "ALTER TABLE t ATTACH PARTITION full_one FOR VALUES FROM (40) TO (50)",
        "ALTER TABLE t DETACH PARTITION t2",
        "BEGIN; CREATE TABLE copied (id int NOT NULL PRIMARY KEY); INSERT INTO copied VALUES (55);
         ALTER TABLE t ATTACH PARTITION copied FOR VALUES FROM (50) TO (60); COMMIT",
    ] {
        scene.run(command).await;
        assert_eq!(listener.resync().await, Resync::Partitions, "{command}");
    }
    // Events go on, in what came too.
    scene.run("INSERT INTO t VALUES (2), (42)").await;
    assert_eq!(listener.events(2).await, ["+{\"id\":2}", "+{\"id\":42}"]);
}

#[tokio::test]
async fn a_partition_that_is_detached_without_a_lock_is_a_gap() {
    let scene = parted("feed_partition_concurrently").await;
    if scene.version() < 14 {
        return;
    }
    let mut listener = scene.all("t", &["id"]).await;
    scene
        .run("ALTER TABLE t DETACH PARTITION t1 CONCURRENTLY")
        .await;
    assert_eq!(listener.resync().await, Resync::Partitions);
}

#[tokio::test]
async fn what_moves_no_row_or_was_told_is_no_gap() {
    let scene = parted("feed_partition_calm").await;
    let mut listener = scene.all("t", &["id"]).await;
    // The next look at the partitions finds what this left.
    let mut probe = scene.all("t", &["id"]).await;
    scene
        .run(
            "CREATE TABLE t4 PARTITION OF t FOR VALUES FROM (60) TO (70);
             CREATE TABLE empty (id int NOT NULL PRIMARY KEY);
             ALTER TABLE t ATTACH PARTITION empty FOR VALUES FROM (70) TO (80);
             ALTER TABLE t ADD COLUMN note text",
        )
        .await;
    scene.run("TRUNCATE t").await;
    scene.run("INSERT INTO t VALUES (3)").await;
    assert_eq!(listener.resync().await, Resync::Truncated);
    assert_eq!(listener.event().await, "+{\"id\":3}");
    assert_eq!(probe.resync().await, Resync::Truncated);
    assert_eq!(probe.event().await, "+{\"id\":3}");
    // Only this is told, and once.
    scene.run("TRUNCATE t0").await;
    assert_eq!(listener.resync().await, Resync::Partitions);
    scene.run("INSERT INTO t VALUES (4)").await;
    assert_eq!(listener.event().await, "+{\"id\":4}");
}

#[tokio::test]
async fn who_comes_back_to_another_node_is_told_of_what_happened_meanwhile() {
    let scene = parted("feed_partition_resume").await;
    let listener = scene.all("t", &["id"]).await;
    let cursor = listener.cursor;
    scene.feed.stop();
    drop(listener);
    scene.run("TRUNCATE t0").await;
    // Nobody has seen it, and the log does not tell it.
    let other = node(&setup());
    let mut request = scene.request("t", &["id"]).await;
    request.after = Some(cursor);
    let mut back = listen(&other, request.clone()).await.unwrap();
    assert_eq!(back.resync().await, Resync::Partitions);
    // Now it is known, also to a third one.
    let third = node(&setup());
    let mut late = listen(&third, request).await.unwrap();
    assert_eq!(late.resync().await, Resync::Expired);
    scene.run("INSERT INTO t VALUES (5)").await;
    assert_eq!(late.event().await, "+{\"id\":5}");
    assert_eq!(back.event().await, "+{\"id\":5}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_catches_up_hears_of_a_gap_behind_what_is_older() {
    let scene = parted("feed_partition_late").await;
    let mut listener = scene.all("t", &["id"]).await;
    let begin = listener.cursor;
    scene
        .run("INSERT INTO t SELECT i FROM generate_series(2, 39) i WHERE i % 10 > 1")
        .await;
    let all = listener.events(32).await;
    let mut request = scene.request("t", &["id"]).await;
    request.after = Some(begin);
    let limits = QueueLimits {
        events: 4,
        ..QueueLimits::default()
    };
    let mut late = listen_within(&scene.feed, request, limits).await.unwrap();
    scene.run("ALTER TABLE t DETACH PARTITION t1").await;
    assert_eq!(listener.resync().await, Resync::Partitions);
    // Rows of the partition that is gone come first: whoever reads again has nothing of them.
    assert_eq!(late.events(32).await, all);
    assert_eq!(late.resync().await, Resync::Partitions);
    scene.run("INSERT INTO t VALUES (30)").await;
    assert_eq!(late.event().await, "+{\"id\":30}");
}
