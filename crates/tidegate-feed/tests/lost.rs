//! Tables that cannot be captured again at once, and what is remembered of what was missed.

use std::time::Duration;

use tidegate_feed::{Error, Operation, Resync, Settings};
use tidegate_sql::DatabaseName;

use tokio::time::Instant;

use crate::asked::Asked;
use crate::scene::{Scene, Setup, listen, node, own_cluster};
use crate::standing::{TABLE, gap, look, until_told};

const TAKE_OUT: &str = "ALTER PUBLICATION tidegate DROP TABLE t; INSERT INTO t VALUES (5, 'lost')";

/// Nobody waits longer than a second for the writers of a table; the streams of others wait for
/// them too.
fn impatient(standing: Duration) -> Setup {
    Setup {
        cluster: own_cluster(),
        settings: Settings {
            patience: Duration::from_secs(1),
            standing,
            ..Settings::default()
        },
        ..Setup::default()
    }
}

#[tokio::test]
async fn a_table_with_a_slow_writer_is_captured_again_when_that_ends() {
    let (scene, asked) =
        Asked::scene("feed_lost_slowly", &impatient(Duration::from_millis(200))).await;
    scene.run(TABLE).await;
    let mut all = scene.first("t", &["id"]).await;
    look(&asked).await;
    let writer = scene.session().await;
    let write = "BEGIN; INSERT INTO t VALUES (4, 'x')";
    writer.batch_execute(write).await.unwrap();
    scene.run(TAKE_OUT).await;
    // Meanwhile it could not be captured.
    asked.looked(10).await;
    writer.batch_execute("COMMIT").await.unwrap();
    assert_eq!(gap(&mut all).await, Resync::Interrupted);
    until_told(&scene, &mut all).await;
}

#[tokio::test]
async fn a_table_that_is_busy_when_the_stream_comes_back_is_captured_later() {
    let setup = impatient(Duration::from_hours(1));
    let scene = Scene::with("feed_lost_busy", &setup).await;
    scene.run(TABLE).await;
    let mut all = scene.first("t", &["id"]).await;
    let writer = scene.session().await;
    let write = "BEGIN; INSERT INTO t VALUES (4, 'x')";
    writer.batch_execute(write).await.unwrap();
    scene.run(TAKE_OUT).await;
    scene.break_streams().await;
    // The stream is there again when somebody else has to wait for the writer.
    let request = scene.request("t", &["id"]).await;
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match scene.subscribe(request.clone()).await {
            Err(Error::Timeout { what, .. }) if what.contains("open before") => break,
            Err(error @ (Error::Timeout { .. } | Error::Unavailable(_))) => {
                assert!(Instant::now() < deadline, "{error:?}");
            }
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("what was written meanwhile may be missed"),
        }
    }
    writer.batch_execute("COMMIT").await.unwrap();
    scene.feed.redefined(&DatabaseName::new(&scene.name));
    assert_eq!(gap(&mut all).await, Resync::Interrupted);
    until_told(&scene, &mut all).await;
}

#[tokio::test]
async fn what_was_missed_is_known_when_the_stream_comes_back() {
    const READER: &str = "SELECT coalesce(max(active_pid), 0) FROM pg_replication_slots \
                          WHERE database = current_database()";
    let (scene, asked) = Asked::scene("feed_lost_before", &Setup::default()).await;
    scene.run(TABLE).await;
    let mut all = scene.first("t", &["id"]).await;
    let before = all.cursor;
    look(&asked).await;
    scene.run(TAKE_OUT).await;
    scene.run("ALTER PUBLICATION tidegate ADD TABLE t").await;
    assert_eq!(gap(&mut all).await, Resync::Interrupted);
    until_told(&scene, &mut all).await;
    let reader = async || -> i32 { scene.sql.query_one(READER, &[]).await.unwrap().get(0) };
    let old = reader().await;
    scene.break_streams().await;
    while [0, old].contains(&reader().await) {}
    let mut request = scene.request("t", &["id"]).await;
    request.after = Some(before);
    let mut late = scene.subscribe(request).await.unwrap();
    assert_eq!(late.resync().await, Resync::Expired);
}

/// Nobody looks by himself how tables stand.
fn unwatched() -> Setup {
    Setup::with(Settings {
        standing: Duration::from_hours(1),
        ..Settings::default()
    })
}

#[tokio::test]
async fn a_table_that_another_node_captured_again_before_the_stream_broke_has_a_gap() {
    let setup = unwatched();
    let scene = Scene::with("feed_lost_unseen", &setup).await;
    scene.run(TABLE).await;
    let mut all = scene.first("t", &["id"]).await;
    scene.run(TAKE_OUT).await;
    let other = node(&setup);
    let request = scene.request("t", &["id"]).await;
    let mut there = listen(&other, request).await.unwrap();
    // The stream is behind the new beginning when it breaks.
    scene.run("INSERT INTO t VALUES (6, 'x')").await;
    for listener in [&mut all, &mut there] {
        assert_eq!(listener.event().await, "+{\"id\":6}");
    }
    scene.break_streams().await;
    assert_eq!(all.resync().await, Resync::Interrupted);
    // Nothing is missing there.
    scene.run("INSERT INTO t VALUES (7, 'x')").await;
    for listener in [&mut all, &mut there] {
        assert_eq!(listener.event().await, "+{\"id\":7}");
    }
}

#[tokio::test]
async fn a_table_that_is_taken_out_after_it_was_found_to_stand_has_a_gap() {
    let (scene, asked) = Asked::scene("feed_lost_between", &unwatched()).await;
    scene.run(TABLE).await;
    let mut all = scene.first("t", &["id"]).await;
    // Whoever needs whole old rows captures it for more.
    let mut request = scene.request("t", &["id", "a"]).await;
    request.operations = Operation::Delete.into();
    let held = asked.hold().await;
    let (late, ()) = tokio::join!(scene.subscribe(request), async {
        asked.held().await;
        scene.run(TAKE_OUT).await;
        drop(held);
    });
    let mut late = late.unwrap();
    assert_eq!(all.resync().await, Resync::Interrupted);
    scene.run("DELETE FROM t WHERE id = 2").await;
    assert_eq!(late.event().await, "-{\"id\":2,\"a\":\"x\"}");
    assert_eq!(all.event().await, "-{\"id\":2}");
}
