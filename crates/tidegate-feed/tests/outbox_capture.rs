//! What only an outbox has: triggers, a lease, transactions that see old definitions.

use std::time::Duration;

use tidegate_feed::{Error, Item, Resync, Settings};
use tidegate_postgres::OutboxSettings;
use tokio::time::{Instant, sleep, timeout};

use crate::scene::{Scene, Setup, listen, node};

const TABLE: &str = "CREATE TABLE t (id int, a text); GRANT SELECT ON t TO PUBLIC";

async fn count(scene: &Scene, query: &str) -> i64 {
    let row = scene.sql.query_one(query, &[]).await.unwrap();
    row.get(0)
}

async fn until(scene: &Scene, query: &str, wanted: i64) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while count(scene, query).await != wanted {
        assert!(Instant::now() < deadline, "{query} never gives {wanted}");
        sleep(Duration::from_millis(20)).await;
    }
}

const TRIGGERS: &str = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE '!tidegate%'";

/// The sessions of streams, until their database is retired.
const READERS: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND application_name = 'tidegate outbox reader'";

fn brief() -> Settings {
    Settings {
        linger: Duration::from_millis(200),
        retain: Duration::from_millis(50),
        patience: Duration::from_secs(2),
        ..Settings::default()
    }
}

#[tokio::test]
async fn who_writes_is_waited_for_and_who_commits_late_is_not_lost() {
    let setup = Setup::with(brief());
    let scene = Scene::with("outbox_late", &setup).await;
    scene.run(TABLE).await;
    scene
        .run("CREATE TABLE ready (id int); GRANT SELECT ON ready TO PUBLIC")
        .await;
    scene.first("ready", &["id"]).await;
    let (open, other) = (scene.session().await, scene.session().await);
    open.batch_execute("BEGIN; INSERT INTO t VALUES (1, 'before')")
        .await
        .unwrap();
    let refused = scene.subscribe(scene.request("t", &["id"]).await).await;
    let Err(Error::Timeout { what, .. }) = refused else {
        panic!("{:?}", refused.err());
    };
    assert!(what.contains("public.t"), "{what}");
    // The attempts have not kept other writers out for good.
    other
        .batch_execute("INSERT INTO t VALUES (2, 'before')")
        .await
        .unwrap();
    open.batch_execute("COMMIT").await.unwrap();
    let mut listener = scene.all("t", &["id"]).await;
    // The lower number commits last, long after the higher one was told.
    open.batch_execute("BEGIN; INSERT INTO t VALUES (3, 'late')")
        .await
        .unwrap();
    other
        .batch_execute("INSERT INTO t VALUES (4, 'early')")
        .await
        .unwrap();
    assert_eq!(listener.event().await, "+{\"id\":4}");
    open.batch_execute("SAVEPOINT s; INSERT INTO t VALUES (5, 'never'); ROLLBACK TO s; COMMIT")
        .await
        .unwrap();
    assert_eq!(listener.event().await, "+{\"id\":3}");
    other
        .batch_execute("UPDATE t SET id = 6 WHERE id = 3")
        .await
        .unwrap();
    assert_eq!(listener.event().await, "~{\"id\":6}");
}

#[tokio::test]
async fn triggers_go_with_the_last_subscriber_and_nothing_stays() {
    let setup = Setup::with(brief());
    let scene = Scene::with("outbox_gone", &setup).await;
    scene
        .run(&format!("{TABLE}; ALTER TABLE t OWNER TO outbox_gone"))
        .await;
    let listener = scene.all("t", &["id"]).await;
    assert_eq!(count(&scene, TRIGGERS).await, 2);
    // Another node needs them still.
    let second = node(&setup);
    let mut stays = listen(&second, scene.request("t", &["id", "a"]).await)
        .await
        .unwrap();
    assert_eq!(count(&scene, READERS).await, 2);
    drop(listener);
    until(&scene, READERS, 1).await;
    scene
        .run("INSERT INTO t VALUES (1, 'x'); UPDATE t SET a = 'y'; DELETE FROM t")
        .await;
    assert_eq!(
        stays.events(3).await,
        [
            "+{\"id\":1,\"a\":\"x\"}",
            "~{\"id\":1,\"a\":\"y\"}",
            "-{\"id\":1,\"a\":\"y\"}"
        ]
    );
    drop(stays);
    until(&scene, TRIGGERS, 0).await;
    until(&scene, "SELECT count(*) FROM tidegate_outbox.change", 0).await;
    scene.run("INSERT INTO t VALUES (2, 'x')").await;
    let mut again = scene.all("t", &["id"]).await;
    scene.run("INSERT INTO t VALUES (3, 'x')").await;
    assert_eq!(again.event().await, "+{\"id\":3}");
}

#[tokio::test]
async fn who_sees_an_old_definition_makes_a_gap_and_no_wrong_column() {
    let scene = Scene::new("outbox_stale").await;
    scene.run(TABLE).await;
    let mut listener = scene.all("t", &["id", "a"]).await;
    scene.run("INSERT INTO t VALUES (1, 'x')").await;
    assert_eq!(listener.event().await, "+{\"id\":1,\"a\":\"x\"}");
    let old = scene.session().await;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    old.batch_execute(begin).await.unwrap();
    scene
        .run("ALTER TABLE t RENAME a TO b; ALTER TABLE t ADD a text; ALTER TABLE t DROP b")
        .await;
    old.batch_execute("INSERT INTO t VALUES (2, 'y'); COMMIT")
        .await
        .unwrap();
    assert_eq!(listener.resync().await, Resync::Truncated);
    // A column that was only added.
    old.batch_execute(begin).await.unwrap();
    scene.run("ALTER TABLE t ADD c int").await;
    old.batch_execute("INSERT INTO t VALUES (2, 'y'); COMMIT")
        .await
        .unwrap();
    assert_eq!(listener.resync().await, Resync::Truncated);
    // Without a change of the definition that isolation is no harm.
    old.batch_execute(begin).await.unwrap();
    old.batch_execute("INSERT INTO t VALUES (3, 'z'); COMMIT")
        .await
        .unwrap();
    assert_eq!(listener.event().await, "+{\"id\":3,\"a\":\"z\"}");
}

#[tokio::test]
async fn a_lease_that_ran_out_is_a_gap() {
    let setup = Setup {
        settings: Settings {
            retain: Duration::from_millis(200),
            ..Settings::default()
        },
        outbox: OutboxSettings {
            lease: Duration::from_secs(8),
            ..OutboxSettings::default()
        },
        ..Setup::default()
    };
    let scene = Scene::with("outbox_lease", &setup).await;
    scene.run(TABLE).await;
    let mut listener = scene.all("t", &["id"]).await;
    scene.run("INSERT INTO t VALUES (1, 'x')").await;
    listener.event().await;
    let cursor = listener.cursor;
    scene.feed.stop();
    let run_out = "SELECT (last_value < extract(epoch FROM clock_timestamp()) - 1)::int::bigint \
                   FROM tidegate_outbox.lease";
    until(&scene, run_out, 1).await;
    let before = count(&scene, "SELECT count(*) FROM tidegate_outbox.change").await;
    scene.run("INSERT INTO t VALUES (2, 'nobody reads')").await;
    let after = count(&scene, "SELECT count(*) FROM tidegate_outbox.change").await;
    assert_eq!(before, after, "nobody reads, and it is filled");
    let second = node(&setup);
    let mut request = scene.request("t", &["id"]).await;
    request.after = Some(cursor);
    let mut late = listen(&second, request).await.unwrap();
    assert_eq!(late.resync().await, Resync::Expired);
    scene.run("INSERT INTO t VALUES (3, 'x')").await;
    assert_eq!(late.event().await, "+{\"id\":3}");
}

#[tokio::test]
async fn triggers_that_somebody_disables_are_a_gap_and_come_back() {
    let setup = Setup {
        settings: Settings {
            retain: Duration::from_millis(100),
            ..Settings::default()
        },
        ..Setup::default()
    };
    let scene = Scene::with("outbox_disabled", &setup).await;
    scene.run(TABLE).await;
    let mut listener = scene.all("t", &["id"]).await;
    scene
        .run(
            "ALTER TABLE t DISABLE TRIGGER ALL; INSERT INTO t VALUES (1, 'unseen'); \
             ALTER TABLE t ENABLE TRIGGER ALL",
        )
        .await;
    assert_eq!(listener.resync().await, Resync::Interrupted);
    until(
        &scene,
        "SELECT count(*) FROM tidegate_outbox.captured WHERE since IS NOT NULL",
        1,
    )
    .await;
    scene.run("INSERT INTO t VALUES (2, 'seen')").await;
    loop {
        match listener.next().await {
            Item::Resync { .. } => {}
            Item::Event { row, .. } => {
                assert_eq!(row, "{\"id\":2}");
                break;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn triggers_that_somebody_takes_away_are_missed_soon() {
    let changes = [
        "ALTER TABLE t DISABLE TRIGGER ALL",
        "DROP TRIGGER \"!tidegate_outbox\" ON t",
        "DROP TRIGGER \"!tidegate_outbox_truncate\" ON t",
        "ALTER TABLE t1 DISABLE TRIGGER ALL",
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let scene = Scene::new(&format!("outbox_away_{at}")).await;
        scene
            .run(
                "CREATE TABLE t (id int, a text) PARTITION BY RANGE (id);
                 CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (100);
                 GRANT SELECT ON t TO PUBLIC",
            )
            .await;
        let mut listener = scene.all("t", &["id"]).await;
        scene.run("INSERT INTO t VALUES (1, 'seen')").await;
        assert_eq!(listener.event().await, "+{\"id\":1}");
        let begin = Instant::now();
        scene.run(change).await;
        assert_eq!(listener.resync().await, Resync::Interrupted, "{change}");
        assert!(begin.elapsed() < Duration::from_secs(8), "{change}");
        // Until it is captured again, each row that is lost is another gap.
        loop {
            scene.run("INSERT INTO t VALUES (2, 'seen')").await;
            let next = timeout(Duration::from_millis(200), listener.next()).await;
            if matches!(next, Ok(Item::Event { .. })) {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{change}");
        }
    }
}
