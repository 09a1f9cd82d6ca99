//! Coming back: every event once, or a gap that is named.

use std::time::Duration;

use tidegate_embedded::Shutdown;
use tidegate_feed::{Cursor, Ended, Item, Resync, Settings};
use tidegate_postgres::ReplicationSettings;

use crate::SOURCE;
use crate::scene::{Listener, Scene, Setup, Source, listen, node, own_cluster};

/// A table in which every event has a number.
const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, pad text); GRANT SELECT ON t TO PUBLIC";

async fn insert(scene: &Scene, from: u32, to: u32) {
    let fill =
        format!("INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series({from}, {to}) i");
    scene.run(&fill).await;
}

async fn expect(listener: &mut Listener, from: u32, to: u32) {
    for id in from..=to {
        assert_eq!(listener.event().await, format!("+{{\"id\":{id}}}"));
    }
}

#[tokio::test]
async fn every_cursor_resumes_behind_its_event_on_every_node() {
    let scene = Scene::new("feed_resume").await;
    scene.run(TABLE).await;
    let mut listener = scene.all("t", &["id"]).await;
    let mut cursors = vec![listener.cursor];
    // One transaction of one, one of three, and two of one.
    for (from, to) in [(1, 1), (2, 4), (5, 5), (6, 6)] {
        insert(&scene, from, to).await;
    }
    for id in 1..=6 {
        expect(&mut listener, id, id).await;
        cursors.push(listener.cursor);
    }
    let other = node(&Setup::default());
    for feed in [&scene.feed, &other] {
        for (seen, cursor) in (0..).zip(&cursors) {
            let mut request = scene.request("t", &["id"]).await;
            request.after = Some(cursor.to_string().parse::<Cursor>().unwrap());
            let mut listener = listen(feed, request).await.unwrap();
            assert_eq!(listener.cursor, *cursor);
            expect(&mut listener, seen + 1, 6).await;
        }
    }
    let mut request = scene.request("t", &["id"]).await;
    request.after = Some(cursors[3]);
    let mut early = listen(&other, request).await.unwrap();
    insert(&scene, 7, 7).await;
    expect(&mut early, 4, 7).await;
    expect(&mut listener, 7, 7).await;
}

#[tokio::test]
async fn what_the_memory_has_lost_comes_from_the_log() {
    let settings = Settings {
        ring_bytes: 4096,
        ..Settings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    let scene = Scene::with("feed_catch_up", &setup).await;
    scene.run(TABLE).await;
    let mut listener = scene.all("t", &["id"]).await;
    insert(&scene, 1, 10).await;
    expect(&mut listener, 1, 5).await;
    let cursor = listener.cursor;
    for from in [11, 21, 31] {
        insert(&scene, from, from + 9).await;
    }
    expect(&mut listener, 6, 40).await;
    let mut resumed = Vec::new();
    for _ in 0..5 {
        let mut request = scene.request("t", &["id"]).await;
        request.after = Some(cursor);
        resumed.push(scene.subscribe(request).await.unwrap());
    }
    insert(&scene, 41, 41).await;
    for listener in &mut resumed {
        expect(listener, 6, 41).await;
    }
    insert(&scene, 42, 50).await;
    for listener in &mut resumed {
        expect(listener, 42, 50).await;
    }
}

#[tokio::test]
async fn a_restart_of_postgresql_and_of_the_node_gives_every_event_once() {
    for mode in [Shutdown::Fast, Shutdown::Immediate] {
        let setup = Setup {
            cluster: own_cluster(),
            ..Setup::default()
        };
        let scene = Scene::with("feed_restart", &setup).await;
        scene.run(TABLE).await;
        let mut listener = scene.all("t", &["id"]).await;
        insert(&scene, 1, 3).await;
        expect(&mut listener, 1, 2).await;
        let cursor = listener.cursor;
        setup.cluster.restart(mode).await.unwrap();
        let sql = scene.session().await;
        sql.batch_execute("INSERT INTO t VALUES (4); INSERT INTO t VALUES (5)")
            .await
            .unwrap();
        // The listener that stayed.
        expect(&mut listener, 3, 5).await;
        // The node that comes back.
        scene.feed.stop();
        assert_eq!(listener.next().await, Item::Ended(Ended::Stopped));
        sql.batch_execute("INSERT INTO t VALUES (6)").await.unwrap();
        let mut request = scene_request(&sql, &scene).await;
        request.after = Some(cursor);
        let node = node(&setup);
        let mut listener = listen(&node, request).await.unwrap();
        expect(&mut listener, 3, 6).await;
        sql.batch_execute("INSERT INTO t VALUES (7)").await.unwrap();
        expect(&mut listener, 7, 7).await;
    }
}

/// A request by a session that has outlived the scene's.
async fn scene_request(sql: &tokio_postgres::Client, scene: &Scene) -> tidegate_feed::Request {
    let row = sql
        .query_one("SELECT 't'::regclass::oid", &[])
        .await
        .unwrap();
    tidegate_feed::Request {
        login: scene.login("/alice"),
        tag: 1,
        relation: row.get(0),
        operations: tidegate_feed::Operations::ALL,
        selection: tidegate_feed::Selection::of(["id"]),
        predicate: None,
        after: None,
    }
}

#[tokio::test]
async fn a_gap_is_always_named() {
    let scene = Scene::new("feed_gap").await;
    scene.run(TABLE).await;
    scene
        .run("CREATE TABLE u (id int PRIMARY KEY); GRANT SELECT ON u TO PUBLIC")
        .await;
    let mut listener = scene.all("t", &["id"]).await;
    insert(&scene, 1, 1).await;
    expect(&mut listener, 1, 1).await;
    let cursor = listener.cursor;
    // What happened to another table before anybody listened to it is not in the log.
    scene.run("INSERT INTO u VALUES (1)").await;
    for _ in 0..2 {
        let mut request = scene.request("u", &["id"]).await;
        request.after = Some(cursor);
        let mut late = scene.subscribe(request).await.unwrap();
        assert_eq!(late.resync().await, Resync::Expired);
        scene.run("UPDATE u SET id = id + 1").await;
        assert!(late.event().await.starts_with('~'));
    }
    // A cursor of another cluster.
    let text = cursor.to_string();
    let foreign = format!("1{}{}", "00000001", &text[9..]);
    let mut request = scene.request("t", &["id"]).await;
    request.after = Some(foreign.parse().unwrap());
    let mut listener = scene.subscribe(request).await.unwrap();
    assert_eq!(listener.resync().await, Resync::OtherLog);
    insert(&scene, 2, 2).await;
    expect(&mut listener, 2, 2).await;
}

#[tokio::test]
async fn beyond_the_window_there_is_a_gap() {
    let settings = Settings {
        ring_bytes: 1024,
        window: Duration::ZERO,
        retain: Duration::from_millis(20),
        ..Settings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    let scene = Scene::with("feed_window", &setup).await;
    scene.run(TABLE).await;
    let mut listener = scene.all("t", &["id"]).await;
    let cursor = listener.cursor;
    insert(&scene, 1, 20).await;
    expect(&mut listener, 1, 20).await;
    // Until the window has moved on.
    let kept = match SOURCE {
        Source::Log => {
            "SELECT count(*) FROM pg_replication_slots \
             WHERE database = 'feed_window' AND NOT temporary \
             AND confirmed_flush_lsn > $1::text::pg_lsn"
        }
        Source::Outbox => {
            "SELECT count(*) FROM tidegate_outbox.state WHERE earliest > $1::text::numeric"
        }
    };
    let cursor_text = cursor.to_string();
    let place = match SOURCE {
        Source::Log => format!("{}/{}", &cursor_text[9..17], &cursor_text[17..25]),
        Source::Outbox => u64::from_str_radix(&cursor_text[9..25], 16)
            .unwrap()
            .to_string(),
    };
    while scene
        .sql
        .query_one(kept, &[&place])
        .await
        .unwrap()
        .get::<_, i64>(0)
        == 0
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut request = scene.request("t", &["id"]).await;
    request.after = Some(cursor);
    let mut late = scene.subscribe(request).await.unwrap();
    assert_eq!(late.resync().await, Resync::Expired);
    insert(&scene, 21, 21).await;
    expect(&mut late, 21, 21).await;
}

#[tokio::test]
async fn without_a_window_a_broken_stream_is_a_gap() {
    if SOURCE == Source::Outbox {
        // It always has a window.
        return;
    }
    let setup = Setup {
        cluster: own_cluster(),
        replication: ReplicationSettings {
            retention: None,
            ..ReplicationSettings::default()
        },
        ..Setup::default()
    };
    let scene = Scene::with("feed_none", &setup).await;
    scene.run(TABLE).await;
    let mut listener = scene.all("t", &["id"]).await;
    insert(&scene, 1, 1).await;
    expect(&mut listener, 1, 1).await;
    scene.break_streams().await;
    assert_eq!(listener.resync().await, Resync::Interrupted);
    insert(&scene, 2, 2).await;
    expect(&mut listener, 2, 2).await;
}

#[tokio::test]
async fn a_stream_that_breaks_inside_a_transaction_goes_on_inside() {
    let scene = Scene::new("feed_inside").await;
    scene.run(TABLE).await;
    let mut listener = scene.all("t", &["id"]).await;
    insert(&scene, 1, 20_000).await;
    expect(&mut listener, 1, 10).await;
    scene.break_streams().await;
    expect(&mut listener, 11, 20_000).await;
    insert(&scene, 20_001, 20_001).await;
    expect(&mut listener, 20_001, 20_001).await;
}
