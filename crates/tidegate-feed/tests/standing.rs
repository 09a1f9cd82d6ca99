//! Tables that somebody takes out of the capture, or of their keys, while others listen.

use std::time::Duration;

use tidegate_feed::{Ended, Item, Operation, Operations, Resync, Selection, Settings};
use tokio::time::{Instant, sleep, timeout};

use crate::asked::Asked;
use crate::log::Warnings;
use crate::scene::{Listener, Scene, Setup, listen, node};

pub(crate) const TABLE: &str =
    "CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT ON t TO PUBLIC;
                     INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'x')";

/// Waits until it has been looked at how tables stand, from now on: until the question behind the
/// one that comes next is asked.
pub(crate) async fn look(asked: &Asked) {
    asked.looked(2).await;
}

/// Writes until that is accepted, which must be soon.
async fn write(scene: &Scene, sql: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match scene.sql.batch_execute(sql).await {
            Ok(()) => return,
            Err(error) => assert!(Instant::now() < deadline, "{sql}: {error:?}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// A listener to DELETE that shows the key alone.
async fn deletes(scene: &Scene) -> Listener {
    let mut request = scene.request("t", &["id"]).await;
    request.operations = Operation::Delete.into();
    scene.subscribe(request).await.unwrap()
}

#[tokio::test]
async fn writers_go_on_when_the_key_is_dropped() {
    for (name, make, change) in [
        ("feed_key", "SELECT", "ALTER TABLE t DROP CONSTRAINT t_pkey"),
        (
            "feed_index",
            "CREATE UNIQUE INDEX u ON t (id); ALTER TABLE t REPLICA IDENTITY USING INDEX u",
            "DROP INDEX u",
        ),
        (
            "feed_nothing",
            "SELECT",
            "ALTER TABLE t REPLICA IDENTITY NOTHING",
        ),
    ] {
        let scene = Scene::new(name).await;
        scene.run(TABLE).await;
        scene.run(make).await;
        let mut deletes = deletes(&scene).await;
        scene.run("DELETE FROM t WHERE id = 1").await;
        assert_eq!(deletes.event().await, "-{\"id\":1}");
        scene.run(change).await;
        write(&scene, "UPDATE t SET a = 'y'").await;
        write(&scene, "DELETE FROM t WHERE id = 2").await;
        // Nobody was let write, so that nothing is missing.
        assert_eq!(deletes.event().await, "-{\"id\":2}", "{change}");
    }
}

#[tokio::test]
async fn writers_go_on_when_the_key_is_dropped_and_nobody_listens_any_more() {
    let scene = Scene::new("feed_key_alone").await;
    scene.run(TABLE).await;
    drop(deletes(&scene).await);
    scene.run("ALTER TABLE t DROP CONSTRAINT t_pkey").await;
    write(&scene, "UPDATE t SET a = 'y'").await;
}

/// Whole old rows of it cannot be had.
const PARTED: &str = "CREATE TABLE t (id int PRIMARY KEY, a text) PARTITION BY RANGE (id);
                      CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (100);
                      GRANT SELECT ON t TO PUBLIC; INSERT INTO t VALUES (1, 'x')";

#[tokio::test]
async fn a_table_that_is_given_up_when_the_stream_comes_back_is_named_in_the_log() {
    let setup = Setup::with(Settings {
        standing: Duration::from_hours(1),
        ..Settings::default()
    });
    let scene = Scene::with("feed_key_away", &setup).await;
    scene.run(PARTED).await;
    let mut deletes = deletes(&scene).await;
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    scene.run("ALTER TABLE t DROP CONSTRAINT t_pkey").await;
    scene.break_streams().await;
    match deletes.next().await {
        Item::Ended(Ended::Changed { problem }) => {
            assert!(problem.contains("primary key"), "{problem}");
        }
        other => panic!("{other:?}"),
    }
    let warnings = warnings.0.lock();
    let named =
        |text: &&String| text.contains(r#"table="public.t""#) && text.contains("primary key");
    assert_eq!(warnings.iter().filter(named).count(), 1, "{warnings:?}");
}

#[tokio::test]
async fn writers_go_on_where_whole_old_rows_cannot_be_had() {
    let scene = Scene::new("feed_key_parted").await;
    scene.run(PARTED).await;
    let mut deletes = deletes(&scene).await;
    let mut request = scene.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    let mut inserts = scene.subscribe(request).await.unwrap();
    scene.run("ALTER TABLE t DROP CONSTRAINT t_pkey").await;
    write(&scene, "UPDATE t SET a = 'y'").await;
    match deletes.next().await {
        Item::Ended(Ended::Changed { problem }) => {
            assert!(problem.contains("primary key"), "{problem}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(inserts.resync().await, Resync::Interrupted);
    scene.run("INSERT INTO t VALUES (2, 'x')").await;
    assert_eq!(inserts.event().await, "+{\"id\":2}");
}

/// The next gap; events may come before.
pub(crate) async fn gap(listener: &mut Listener) -> Resync {
    loop {
        match listener.next().await {
            Item::Resync { reason, .. } => return reason,
            Item::Event { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Inserts rows until one of them is told, which every table without a gap does.
pub(crate) async fn until_told(scene: &Scene, listener: &mut Listener) {
    for id in 1000.. {
        scene
            .run(&format!("INSERT INTO t VALUES ({id}, 'x')"))
            .await;
        if let Ok(Item::Event { .. }) = timeout(Duration::from_millis(200), listener.next()).await {
            return;
        }
        assert!(id < 1100, "no row is told any more");
    }
}

#[tokio::test]
async fn a_table_that_is_taken_out_comes_back_with_a_gap() {
    let changes = [
        "ALTER PUBLICATION tidegate DROP TABLE t",
        "ALTER PUBLICATION tidegate SET (publish = 'delete')",
        "ALTER PUBLICATION tidegate RENAME TO other",
        "DROP PUBLICATION tidegate",
        "DROP PUBLICATION tidegate, tidegate_inserts",
        "ALTER PUBLICATION tidegate DROP TABLE t; INSERT INTO t VALUES (9, 'lost');
         ALTER PUBLICATION tidegate ADD TABLE t",
        "ALTER PUBLICATION tidegate SET TABLE t (id)",
        "ALTER PUBLICATION tidegate SET TABLE t WHERE (id > 5000)",
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let name = format!("feed_taken_out_{at}");
        let (scene, asked) = Asked::scene(&name, &Setup::default()).await;
        if scene.version() < 15 && change.contains("SET TABLE") {
            continue;
        }
        scene.run(TABLE).await;
        let mut all = scene.all("t", &["id"]).await;
        scene.run("INSERT INTO t VALUES (4, 'x')").await;
        assert_eq!(all.event().await, "+{\"id\":4}");
        let before = all.cursor;
        look(&asked).await;
        scene.run(change).await;
        assert_eq!(gap(&mut all).await, Resync::Interrupted, "{change}");
        until_told(&scene, &mut all).await;
        // Who was away meanwhile is told as well.
        let mut request = scene.request("t", &["id"]).await;
        request.after = Some(before);
        let mut late = scene.subscribe(request).await.unwrap();
        assert_eq!(late.resync().await, Resync::Expired, "{change}");
    }
}

#[tokio::test]
async fn every_node_tells_of_a_table_that_was_taken_out() {
    let setup = Setup::default();
    let (scene, asked) = Asked::scene("feed_taken_out_twice", &setup).await;
    scene.run(TABLE).await;
    let (other, others) = Asked::node(&setup);
    let mut listeners = [
        scene.all("t", &["id"]).await,
        listen(&other, scene.request("t", &["id"]).await)
            .await
            .unwrap(),
    ];
    tokio::join!(look(&asked), look(&others));
    scene
        .run("ALTER PUBLICATION tidegate DROP TABLE t; INSERT INTO t VALUES (4, 'lost')")
        .await;
    for listener in &mut listeners {
        assert_eq!(gap(listener).await, Resync::Interrupted);
    }
}

#[tokio::test]
async fn what_others_need_of_a_table_is_no_gap() {
    let (scene, asked) = Asked::scene("feed_more_needed", &Setup::default()).await;
    scene
        .run("CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT ON t TO PUBLIC")
        .await;
    let mut request = scene.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    let mut inserts = scene.subscribe(request).await.unwrap();
    look(&asked).await;
    let other = node(&Setup::default());
    let mut request = scene.request("t", &["id"]).await;
    for operations in [Operation::Delete.into(), Operations::ALL] {
        request.operations = operations;
        request.selection = Selection::of(["id", "a"]);
        listen(&other, request.clone()).await.unwrap();
        look(&asked).await;
    }
    scene.run("INSERT INTO t VALUES (1, 'x')").await;
    assert_eq!(inserts.event().await, "+{\"id\":1}");
}

#[tokio::test]
async fn writers_go_on_while_a_reader_holds_the_table_whose_key_is_dropped() {
    let scene = Scene::new("feed_key_read").await;
    scene.run(TABLE).await;
    let mut deletes = deletes(&scene).await;
    let reader = scene.session().await;
    // The reader comes with the change, so that nobody can lock the table behind it.
    scene
        .run("BEGIN; ALTER TABLE t DROP CONSTRAINT t_pkey")
        .await;
    let (read, ()) = tokio::join!(reader.batch_execute("BEGIN; SELECT FROM t"), async {
        let waits = "SELECT FROM pg_locks WHERE relation = 't'::regclass AND NOT granted";
        while scene.sql.query(waits, &[]).await.unwrap().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
        scene.run("COMMIT").await;
    });
    read.unwrap();
    let begin = Instant::now();
    write(&scene, "UPDATE t SET a = 'y'").await;
    assert!(begin.elapsed() < Duration::from_secs(10));
    reader.batch_execute("COMMIT").await.unwrap();
    assert_eq!(gap(&mut deletes).await, Resync::Interrupted);
    let begin = Instant::now();
    for id in 1000.. {
        let both = format!("INSERT INTO t VALUES ({id}); DELETE FROM t WHERE id = {id}");
        write(&scene, &both).await;
        let next = timeout(Duration::from_millis(200), deletes.next()).await;
        if matches!(next, Ok(Item::Event { .. })) {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
}

#[tokio::test]
async fn an_image_without_a_column_that_the_policy_reads_is_not_shown() {
    let scene = Scene::with("feed_absent", &Setup::never_looking()).await;
    scene
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, secret text); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY p ON t USING (secret IS NULL)",
        )
        .await;
    let mut alice = scene.all("t", &["id"]).await;
    // Whole old rows were seen to; somebody takes them away again. The log tells the key alone then,
    // of which nobody can say whether the policy lets it through.
    scene
        .run(
            "ALTER TABLE t REPLICA IDENTITY DEFAULT;
             INSERT INTO t VALUES (1, 'hidden'); DELETE FROM t; INSERT INTO t VALUES (2, NULL)",
        )
        .await;
    assert_eq!(alice.event().await, "+{\"id\":2}");
}
