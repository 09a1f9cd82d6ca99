//! Tests what only an outbox has: triggers, a lease, and transactions that see old definitions.

use std::time::Duration;

use tidegate_capture::OutboxSettings;
use tidegate_feed::{Error, FeedSettings, Item, Resync};
use tidegate_testkit::eventually;
use tokio::time::{Instant, timeout};

use crate::fixture::{Fixture, Setup, listen, node};

const TABLE: &str = "CREATE TABLE t (id int, a text); GRANT SELECT ON t TO PUBLIC";

async fn count(fixture: &Fixture, query: &str) -> i64 {
    let row = fixture.sql.query_one(query, &[]).await.unwrap();
    row.get(0)
}

async fn until(fixture: &Fixture, query: &str, wanted: i64) {
    eventually(query, async || count(fixture, query).await == wanted).await;
}

const TRIGGERS: &str = "SELECT count(*) FROM pg_trigger WHERE tgname LIKE '!tidegate%'";

/// Counts the sessions of streams, which exist until their database is retired.
const READERS: &str = "SELECT count(*) FROM pg_stat_activity \
    WHERE datname = current_database() AND application_name = 'tidegate outbox reader'";

fn with_short_times() -> FeedSettings {
    FeedSettings {
        idle_timeout: Duration::from_millis(200),
        retention_interval: Duration::from_millis(50),
        subscribe_timeout: Duration::from_secs(2),
        ..FeedSettings::default()
    }
}

#[tokio::test]
async fn late_commits_of_open_writers_are_delivered() {
    let setup = Setup::with(with_short_times());
    let fixture = Fixture::with("outbox_late", &setup).await;
    fixture.run(TABLE).await;
    fixture
        .run("CREATE TABLE ready (id int); GRANT SELECT ON ready TO PUBLIC")
        .await;
    fixture.first("ready", &["id"]).await;
    let (open, other) = (fixture.session().await, fixture.session().await);
    open.batch_execute("BEGIN; INSERT INTO t VALUES (1, 'before')")
        .await
        .unwrap();
    let refused = fixture.subscribe(fixture.request("t", &["id"]).await).await;
    let Err(Error::Timeout { what, .. }) = refused else {
        panic!("{:?}", refused.err());
    };
    assert!(what.contains("public.t"), "{what}");
    // The attempts to lock the table do not block other writers permanently.
    other
        .batch_execute("INSERT INTO t VALUES (2, 'before')")
        .await
        .unwrap();
    open.batch_execute("COMMIT").await.unwrap();
    let mut listener = fixture.all("t", &["id"]).await;
    // The transaction with the lower id commits last, long after the other one was delivered.
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
async fn triggers_are_removed_with_the_last_subscription() {
    let setup = Setup::with(with_short_times());
    let fixture = Fixture::with("outbox_gone", &setup).await;
    fixture
        .run(&format!("{TABLE}; ALTER TABLE t OWNER TO outbox_gone"))
        .await;
    let listener = fixture.all("t", &["id"]).await;
    assert_eq!(count(&fixture, TRIGGERS).await, 2);
    // Another node still needs the triggers.
    let second = node(&setup);
    let mut stays = listen(&second, fixture.request("t", &["id", "a"]).await)
        .await
        .unwrap();
    assert_eq!(count(&fixture, READERS).await, 2);
    drop(listener);
    until(&fixture, READERS, 1).await;
    fixture
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
    until(&fixture, TRIGGERS, 0).await;
    until(&fixture, "SELECT count(*) FROM tidegate_outbox.change", 0).await;
    fixture.run("INSERT INTO t VALUES (2, 'x')").await;
    let mut again = fixture.all("t", &["id"]).await;
    fixture.run("INSERT INTO t VALUES (3, 'x')").await;
    assert_eq!(again.event().await, "+{\"id\":3}");
}

#[tokio::test]
async fn a_writer_that_sees_an_old_definition_causes_a_gap_and_no_wrong_column() {
    let fixture = Fixture::new("outbox_stale").await;
    fixture.run(TABLE).await;
    let mut listener = fixture.all("t", &["id", "a"]).await;
    fixture.run("INSERT INTO t VALUES (1, 'x')").await;
    assert_eq!(listener.event().await, "+{\"id\":1,\"a\":\"x\"}");
    let old = fixture.session().await;
    let begin = "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1";
    old.batch_execute(begin).await.unwrap();
    fixture
        .run("ALTER TABLE t RENAME a TO b; ALTER TABLE t ADD a text; ALTER TABLE t DROP b")
        .await;
    old.batch_execute("INSERT INTO t VALUES (2, 'y'); COMMIT")
        .await
        .unwrap();
    assert_eq!(listener.resync().await, Resync::Truncated);
    // This definition only adds a column.
    old.batch_execute(begin).await.unwrap();
    fixture.run("ALTER TABLE t ADD c int").await;
    old.batch_execute("INSERT INTO t VALUES (2, 'y'); COMMIT")
        .await
        .unwrap();
    assert_eq!(listener.resync().await, Resync::Truncated);
    // Without a change of the definition, the older snapshot of this transaction causes no gap.
    old.batch_execute(begin).await.unwrap();
    old.batch_execute("INSERT INTO t VALUES (3, 'z'); COMMIT")
        .await
        .unwrap();
    assert_eq!(listener.event().await, "+{\"id\":3,\"a\":\"z\"}");
}

#[tokio::test]
async fn an_expired_lease_is_a_gap() {
    let setup = Setup {
        settings: FeedSettings {
            retention_interval: Duration::from_millis(200),
            ..FeedSettings::default()
        },
        outbox: OutboxSettings {
            lease: Duration::from_secs(8),
            ..OutboxSettings::default()
        },
        ..Setup::default()
    };
    let fixture = Fixture::with("outbox_lease", &setup).await;
    fixture.run(TABLE).await;
    let mut listener = fixture.all("t", &["id"]).await;
    fixture.run("INSERT INTO t VALUES (1, 'x')").await;
    listener.event().await;
    let cursor = listener.cursor;
    fixture.feed.stop();
    let run_out = "SELECT (last_value < extract(epoch FROM clock_timestamp()) - 1)::int::bigint \
                   FROM tidegate_outbox.lease";
    until(&fixture, run_out, 1).await;
    let before = count(&fixture, "SELECT count(*) FROM tidegate_outbox.change").await;
    fixture.run("INSERT INTO t VALUES (2, 'unread')").await;
    let after = count(&fixture, "SELECT count(*) FROM tidegate_outbox.change").await;
    assert_eq!(before, after, "the outbox is filled without a reader");
    let second = node(&setup);
    let mut request = fixture.request("t", &["id"]).await;
    request.after = Some(cursor);
    let mut late = listen(&second, request).await.unwrap();
    assert_eq!(late.resync().await, Resync::Expired);
    fixture.run("INSERT INTO t VALUES (3, 'x')").await;
    assert_eq!(late.event().await, "+{\"id\":3}");
}

#[tokio::test]
async fn disabled_triggers_are_a_gap_and_are_restored() {
    let setup = Setup {
        settings: FeedSettings {
            retention_interval: Duration::from_millis(100),
            ..FeedSettings::default()
        },
        ..Setup::default()
    };
    let fixture = Fixture::with("outbox_disabled", &setup).await;
    fixture.run(TABLE).await;
    let mut listener = fixture.all("t", &["id"]).await;
    fixture
        .run(
            "ALTER TABLE t DISABLE TRIGGER ALL; INSERT INTO t VALUES (1, 'unseen'); \
             ALTER TABLE t ENABLE TRIGGER ALL",
        )
        .await;
    assert_eq!(listener.resync().await, Resync::Interrupted);
    until(
        &fixture,
        "SELECT count(*) FROM tidegate_outbox.captured WHERE since IS NOT NULL",
        1,
    )
    .await;
    fixture.run("INSERT INTO t VALUES (2, 'seen')").await;
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
async fn missing_triggers_are_noticed_soon() {
    let changes = [
        "ALTER TABLE t DISABLE TRIGGER ALL",
        "DROP TRIGGER \"!tidegate_outbox\" ON t",
        "DROP TRIGGER \"!tidegate_outbox_truncate\" ON t",
        "ALTER TABLE t1 DISABLE TRIGGER ALL",
    ];
    for (at, change) in changes.into_iter().enumerate() {
        let fixture = Fixture::new(&format!("outbox_away_{at}")).await;
        fixture
            .run(
                "CREATE TABLE t (id int, a text) PARTITION BY RANGE (id);
                 CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (100);
                 GRANT SELECT ON t TO PUBLIC",
            )
            .await;
        let mut listener = fixture.all("t", &["id"]).await;
        fixture.run("INSERT INTO t VALUES (1, 'seen')").await;
        assert_eq!(listener.event().await, "+{\"id\":1}");
        let begin = Instant::now();
        fixture.run(change).await;
        assert_eq!(listener.resync().await, Resync::Interrupted, "{change}");
        assert!(begin.elapsed() < Duration::from_secs(8), "{change}");
        // Until the table is captured again, each missing row is another gap.
        loop {
            fixture.run("INSERT INTO t VALUES (2, 'seen')").await;
            let next = timeout(Duration::from_millis(200), listener.next()).await;
            if matches!(next, Ok(Item::Event { .. })) {
                break;
            }
            assert!(begin.elapsed() < Duration::from_secs(20), "{change}");
        }
    }
}
