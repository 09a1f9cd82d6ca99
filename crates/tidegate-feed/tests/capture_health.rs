//! Tests captures that are damaged while there are subscriptions: tables without publication or
//! key.

use std::time::Duration;

use tidegate_feed::{Ended, FeedSettings, Item, Operation, Operations, Resync, Selection};
use tokio::time::{Instant, sleep, timeout};

use crate::fixture::{Fixture, Listener, Setup, listen, node};
use crate::query_log::QueryLog;
use crate::warnings::Warnings;

pub(crate) const TABLE: &str =
    "CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT ON t TO PUBLIC;
                     INSERT INTO t VALUES (1, 'x'), (2, 'x'), (3, 'x')";

/// Waits until a poll has finished that began after this call. That is the case when the poll after
/// the next one begins.
pub(crate) async fn wait_for_poll(queries: &QueryLog) {
    queries.polled(2).await;
}

/// Repeats a write until it is accepted, which must be soon.
async fn write(fixture: &Fixture, sql: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        match fixture.sql.batch_execute(sql).await {
            Ok(()) => return,
            Err(error) => assert!(Instant::now() < deadline, "{sql}: {error:?}"),
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// A listener to DELETE events that selects only the key.
async fn deletes(fixture: &Fixture) -> Listener {
    let mut request = fixture.request("t", &["id"]).await;
    request.operations = Operation::Delete.into();
    fixture.subscribe(request).await.unwrap()
}

#[tokio::test]
async fn writers_continue_after_the_key_is_dropped() {
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
        let fixture = Fixture::new(name).await;
        fixture.run(TABLE).await;
        fixture.run(make).await;
        let mut deletes = deletes(&fixture).await;
        fixture.run("DELETE FROM t WHERE id = 1").await;
        assert_eq!(deletes.event().await, "-{\"id\":1}");
        fixture.run(change).await;
        write(&fixture, "UPDATE t SET a = 'y'").await;
        write(&fixture, "DELETE FROM t WHERE id = 2").await;
        // PostgreSQL rejected writes until the capture was repaired, so no event is missing.
        assert_eq!(deletes.event().await, "-{\"id\":2}", "{change}");
    }
}

#[tokio::test]
async fn writers_continue_after_the_key_is_dropped_without_subscriptions() {
    let fixture = Fixture::new("feed_key_alone").await;
    fixture.run(TABLE).await;
    drop(deletes(&fixture).await);
    fixture.run("ALTER TABLE t DROP CONSTRAINT t_pkey").await;
    write(&fixture, "UPDATE t SET a = 'y'").await;
}

/// Creates a partitioned table, whose whole old rows cannot be captured.
const PARTITIONED: &str = "CREATE TABLE t (id int PRIMARY KEY, a text) PARTITION BY RANGE (id);
                      CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (100);
                      GRANT SELECT ON t TO PUBLIC; INSERT INTO t VALUES (1, 'x')";

#[tokio::test]
async fn a_table_whose_capture_stops_with_a_new_stream_is_named_in_the_log() {
    let setup = Setup::with(FeedSettings {
        poll_interval: Duration::from_hours(1),
        ..FeedSettings::default()
    });
    let fixture = Fixture::with("feed_key_away", &setup).await;
    fixture.run(PARTITIONED).await;
    let mut deletes = deletes(&fixture).await;
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    fixture.run("ALTER TABLE t DROP CONSTRAINT t_pkey").await;
    fixture.break_streams().await;
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
async fn writers_continue_where_whole_old_rows_cannot_be_captured() {
    let fixture = Fixture::new("feed_key_parted").await;
    fixture.run(PARTITIONED).await;
    let mut deletes = deletes(&fixture).await;
    let mut request = fixture.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    let mut inserts = fixture.subscribe(request).await.unwrap();
    fixture.run("ALTER TABLE t DROP CONSTRAINT t_pkey").await;
    write(&fixture, "UPDATE t SET a = 'y'").await;
    match deletes.next().await {
        Item::Ended(Ended::Changed { problem }) => {
            assert!(problem.contains("primary key"), "{problem}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(inserts.resync().await, Resync::Interrupted);
    fixture.run("INSERT INTO t VALUES (2, 'x')").await;
    assert_eq!(inserts.event().await, "+{\"id\":2}");
}

/// Waits for the next gap and returns its reason. Skips events before it.
pub(crate) async fn gap(listener: &mut Listener) -> Resync {
    loop {
        match listener.next().await {
            Item::Resync { reason, .. } => return reason,
            Item::Event { .. } => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Inserts rows until one of them is delivered.
pub(crate) async fn until_delivered(fixture: &Fixture, listener: &mut Listener) {
    for id in 1000.. {
        fixture
            .run(&format!("INSERT INTO t VALUES ({id}, 'x')"))
            .await;
        if let Ok(Item::Event { .. }) = timeout(Duration::from_millis(200), listener.next()).await {
            return;
        }
        assert!(id < 1100, "no row is delivered any more");
    }
}

#[tokio::test]
async fn a_table_removed_from_the_publication_is_captured_again_with_a_gap() {
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
        let (fixture, queries) = QueryLog::fixture(&name, &Setup::default()).await;
        if fixture.version() < 15 && change.contains("SET TABLE") {
            continue;
        }
        fixture.run(TABLE).await;
        let mut all = fixture.all("t", &["id"]).await;
        fixture.run("INSERT INTO t VALUES (4, 'x')").await;
        assert_eq!(all.event().await, "+{\"id\":4}");
        let before = all.cursor;
        wait_for_poll(&queries).await;
        fixture.run(change).await;
        assert_eq!(gap(&mut all).await, Resync::Interrupted, "{change}");
        until_delivered(&fixture, &mut all).await;
        // A subscription that resumes at an earlier cursor gets the gap too.
        let mut request = fixture.request("t", &["id"]).await;
        request.after = Some(before);
        let mut late = fixture.subscribe(request).await.unwrap();
        assert_eq!(late.resync().await, Resync::Expired, "{change}");
    }
}

#[tokio::test]
async fn every_node_reports_the_gap_of_a_removed_table() {
    let setup = Setup::default();
    let (fixture, queries) = QueryLog::fixture("feed_taken_out_twice", &setup).await;
    fixture.run(TABLE).await;
    let (other, others) = QueryLog::node(&setup);
    let mut listeners = [
        fixture.all("t", &["id"]).await,
        listen(&other, fixture.request("t", &["id"]).await)
            .await
            .unwrap(),
    ];
    tokio::join!(wait_for_poll(&queries), wait_for_poll(&others));
    fixture
        .run("ALTER PUBLICATION tidegate DROP TABLE t; INSERT INTO t VALUES (4, 'lost')")
        .await;
    for listener in &mut listeners {
        assert_eq!(gap(listener).await, Resync::Interrupted);
    }
}

#[tokio::test]
async fn a_wider_capture_by_another_node_is_no_gap() {
    let (fixture, queries) = QueryLog::fixture("feed_more_needed", &Setup::default()).await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT ON t TO PUBLIC")
        .await;
    let mut request = fixture.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    let mut inserts = fixture.subscribe(request).await.unwrap();
    wait_for_poll(&queries).await;
    let other = node(&Setup::default());
    let mut request = fixture.request("t", &["id"]).await;
    for operations in [Operation::Delete.into(), Operations::ALL] {
        request.operations = operations;
        request.selection = Selection::of(["id", "a"]);
        listen(&other, request.clone()).await.unwrap();
        wait_for_poll(&queries).await;
    }
    fixture.run("INSERT INTO t VALUES (1, 'x')").await;
    assert_eq!(inserts.event().await, "+{\"id\":1}");
}

#[tokio::test]
async fn writers_continue_while_a_reader_locks_the_table_whose_key_is_dropped() {
    let fixture = Fixture::new("feed_key_read").await;
    fixture.run(TABLE).await;
    let mut deletes = deletes(&fixture).await;
    let reader = fixture.session().await;
    // The reader waits for the lock of the change, and gets the lock when the change has committed.
    fixture
        .run("BEGIN; ALTER TABLE t DROP CONSTRAINT t_pkey")
        .await;
    let (read, ()) = tokio::join!(reader.batch_execute("BEGIN; SELECT FROM t"), async {
        let waits = "SELECT FROM pg_locks WHERE relation = 't'::regclass AND NOT granted";
        while fixture.sql.query(waits, &[]).await.unwrap().is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
        fixture.run("COMMIT").await;
    });
    read.unwrap();
    let begin = Instant::now();
    write(&fixture, "UPDATE t SET a = 'y'").await;
    assert!(begin.elapsed() < Duration::from_secs(10));
    reader.batch_execute("COMMIT").await.unwrap();
    assert_eq!(gap(&mut deletes).await, Resync::Interrupted);
    let begin = Instant::now();
    for id in 1000.. {
        let both = format!("INSERT INTO t VALUES ({id}); DELETE FROM t WHERE id = {id}");
        write(&fixture, &both).await;
        let next = timeout(Duration::from_millis(200), deletes.next()).await;
        if matches!(next, Ok(Item::Event { .. })) {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(20));
    }
}

#[tokio::test]
async fn an_image_without_a_column_that_the_policy_reads_is_not_delivered() {
    let fixture = Fixture::with("feed_absent", &Setup::without_polls()).await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, secret text); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY p ON t USING (secret IS NULL)",
        )
        .await;
    let mut alice = fixture.all("t", &["id"]).await;
    // The owner lowers the replica identity that the feed has raised. The change log then contains
    // only the key, for which the policy cannot be evaluated.
    fixture
        .run(
            "ALTER TABLE t REPLICA IDENTITY DEFAULT;
             INSERT INTO t VALUES (1, 'hidden'); DELETE FROM t; INSERT INTO t VALUES (2, NULL)",
        )
        .await;
    assert_eq!(alice.event().await, "+{\"id\":2}");
}
