//! Tests the order of streams, resuming them, and their slots.

use std::time::{Duration, Instant};

use tidegate_capture::{Replication, ReplicationSettings};
use tidegate_changelog::{ChangeLog as _, LogError, LogPosition, LogStart};
use tidegate_embedded::{Cluster, Shutdown, testing};

use super::fixture::{Fixture, StreamReader, config};
use tidegate_testkit::connect;

/// A cluster for one test, which runs until the process ends.
fn own_cluster() -> &'static Cluster {
    Box::leak(Box::new(
        Cluster::start_blocking(&testing::settings()).unwrap(),
    ))
}

#[tokio::test]
async fn transactions_come_in_the_order_of_their_commits_and_only_they() {
    let fixture = Fixture::new("log_order").await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY, a text)")
        .await;
    let mut reader = StreamReader::new(fixture.open(None).await.unwrap());
    let captured = fixture.capture("t", true, false).await.unwrap();
    reader.reach(captured.barrier).await;
    let (first, second) = (fixture.session().await, fixture.session().await);
    first
        .batch_execute("BEGIN; INSERT INTO t VALUES (1, 'early')")
        .await
        .unwrap();
    second
        .batch_execute("INSERT INTO t VALUES (2, 'middle')")
        .await
        .unwrap();
    second
        .batch_execute("BEGIN; INSERT INTO t VALUES (3, 'never'); ROLLBACK")
        .await
        .unwrap();
    first
        .batch_execute(
            "SAVEPOINT s; INSERT INTO t VALUES (4, 'nor this'); ROLLBACK TO s; \
             INSERT INTO t VALUES (5, 'late'); COMMIT",
        )
        .await
        .unwrap();
    reader.read(2).await;
    let words: Vec<_> = ["middle", "early", "late"].into();
    assert_eq!(reader.rows.len(), words.len(), "{:?}", reader.rows);
    for (row, word) in reader.rows.iter().zip(words) {
        assert!(row.ends_with(word), "{row:?} is not {word}");
    }
}

#[tokio::test]
async fn a_stream_resumes_exactly_behind_a_position() {
    let fixture = Fixture::new("log_resume").await;
    fixture.run("CREATE TABLE t (id int PRIMARY KEY)").await;
    let mut reader = StreamReader::new(fixture.open(None).await.unwrap());
    fixture.capture("t", true, false).await.unwrap();
    for id in 1..=5 {
        fixture.run(&format!("INSERT INTO t VALUES ({id})")).await;
    }
    reader.read(5).await;
    let seen = reader.commits.clone();
    let identity = reader.stream.lineage().log;
    drop(reader);
    fixture.run("INSERT INTO t VALUES (6)").await;
    let mut reader = StreamReader::new(fixture.open(Some((identity, seen[2]))).await.unwrap());
    reader.read(3).await;
    assert_eq!(
        reader.commits[..2],
        seen[3..],
        "what came before comes again, once"
    );
    assert_eq!(reader.rows.len(), 3);
    assert_eq!(reader.stream.lineage().log, identity);
}

#[tokio::test]
async fn a_position_before_the_window_or_from_the_future_is_gone() {
    let fixture = Fixture::new("log_gone").await;
    fixture.run("CREATE TABLE t (id int PRIMARY KEY)").await;
    let reader = StreamReader::new(fixture.open(None).await.unwrap());
    let log = reader.stream.lineage().log;
    let early = LogPosition(1);
    assert!(matches!(
        fixture.open(Some((log, early))).await,
        Err(LogError::Gone)
    ));
    let future = LogPosition(u64::MAX / 2);
    assert!(matches!(
        fixture.open(Some((log, future))).await,
        Err(LogError::Gone)
    ));
    let start = reader.stream.start();
    fixture
        .run("SET synchronous_commit = on; INSERT INTO t VALUES (1)")
        .await;
    // A lock that any user can take does not block the retention window.
    let stranger = fixture.session().await;
    stranger
        .batch_execute("SELECT pg_advisory_lock(7133, 2)")
        .await
        .unwrap();
    // The retention window now starts after `start`.
    let now = fixture.log.retain(&fixture.database, start).await.unwrap();
    fixture.log.retain(&fixture.database, now).await.unwrap();
    assert!(now > start);
    assert!(matches!(
        fixture.open(Some((log, start))).await,
        Err(LogError::Gone)
    ));
    assert!(fixture.open(Some((log, now))).await.is_ok());
}

#[tokio::test]
async fn a_window_that_was_moved_recently_costs_no_login() {
    let fixture = Fixture::new("log_no_login").await;
    let start = fixture.open(None).await.unwrap().start();
    let retain = async |keep| fixture.log.retain(&fixture.database, keep).await.unwrap();
    fixture
        .run("SET synchronous_commit = on; CREATE TABLE t ()")
        .await;
    let moved = retain(LogPosition(0)).await;
    retain(moved).await;
    fixture.run("CREATE TABLE u ()").await;
    let end = retain(LogPosition(0)).await;
    assert!(start < moved && moved < end, "{start} {moved} {end}");
    // From here on a login would fail.
    let admin = connect(&fixture.cluster.url("postgres")).await;
    admin
        .batch_execute("ALTER DATABASE log_no_login ALLOW_CONNECTIONS false")
        .await
        .unwrap();
    assert!(retain(end).await >= end);
    let kept: LogPosition = fixture
        .value(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots \
             WHERE database = 'log_no_login' AND NOT temporary",
        )
        .await
        .parse()
        .unwrap();
    assert_eq!(kept, moved);
}

#[tokio::test]
async fn the_window_never_grows_beyond_its_size() {
    let settings = ReplicationSettings {
        retention: Some(100_000),
        ..ReplicationSettings::default()
    };
    let fixture = Fixture::on(testing::cluster(), "log_size", settings).await;
    let start = fixture.open(None).await.unwrap().start();
    fixture.run("SET synchronous_commit = on; CREATE TABLE t AS SELECT repeat('x', 100) FROM generate_series(1, 5000)").await;
    let now = fixture.log.retain(&fixture.database, start).await.unwrap();
    let kept: LogPosition = fixture
        .value(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots \
             WHERE database = 'log_size' AND NOT temporary",
        )
        .await
        .parse()
        .unwrap();
    assert!(
        kept > start && now.0 - kept.0 <= 110_000,
        "{start} {kept} {now}"
    );
}

#[tokio::test]
async fn without_a_window_nothing_is_kept_and_nothing_resumes() {
    let settings = ReplicationSettings {
        retention: None,
        ..ReplicationSettings::default()
    };
    let fixture = Fixture::on(own_cluster(), "log_none", settings).await;
    let stream = fixture.open(None).await.unwrap();
    let slots = "SELECT count(*)::text FROM pg_replication_slots WHERE NOT temporary";
    assert_eq!(fixture.value(slots).await, "0");
    let after = Some((stream.lineage().log, stream.start()));
    assert!(matches!(fixture.open(after).await, Err(LogError::Gone)));
}

#[tokio::test]
async fn a_slot_is_not_waited_for_without_end() {
    let settings = ReplicationSettings {
        slot_timeout: Duration::from_millis(700),
        ..ReplicationSettings::default()
    };
    let fixture = Fixture::on(own_cluster(), "log_slot", settings).await;
    fixture.run("CREATE TABLE t (id int)").await;
    // An open transaction of another database blocks the creation of a slot.
    let other = connect(&fixture.cluster.url("postgres")).await;
    other
        .batch_execute("CREATE TABLE o (id int); BEGIN; INSERT INTO o VALUES (1)")
        .await
        .unwrap();
    let started = Instant::now();
    let refused = fixture.open(None).await.err();
    assert!(
        matches!(refused, Some(LogError::TimedOut { .. })),
        "{refused:?}"
    );
    assert!(started.elapsed() < Duration::from_secs(10));
    let waiting = "SELECT count(*)::text FROM pg_stat_activity WHERE backend_type = 'walsender'";
    let deadline = Instant::now() + Duration::from_secs(10);
    while fixture.value(waiting).await != "0" {
        assert!(Instant::now() < deadline, "a walsender waits for nobody");
    }
    assert_eq!(
        fixture
            .value("SELECT count(*)::text FROM pg_replication_slots")
            .await,
        "0"
    );
    other.batch_execute("COMMIT").await.unwrap();
    let config = config(fixture.cluster);
    let waiting = Replication::new(config.clone(), config, None, ReplicationSettings::default());
    let opened = waiting.open(&fixture.database, LogStart::Now).await;
    drop(opened.unwrap());
    // With the retention slot, opening a stream does not wait for open transactions.
    other
        .batch_execute("BEGIN; INSERT INTO o VALUES (1)")
        .await
        .unwrap();
    fixture.open(None).await.unwrap();
}

#[tokio::test]
async fn a_restart_of_postgresql_loses_nothing() {
    for mode in [Shutdown::Fast, Shutdown::Immediate] {
        let fixture =
            Fixture::on(own_cluster(), "log_restart", ReplicationSettings::default()).await;
        fixture.run("CREATE TABLE t (id int PRIMARY KEY)").await;
        let mut reader = StreamReader::new(fixture.open(None).await.unwrap());
        fixture.capture("t", true, false).await.unwrap();
        fixture
            .run("SET synchronous_commit = on; INSERT INTO t VALUES (1)")
            .await;
        reader.read(1).await;
        let (log, last) = (reader.stream.lineage().log, reader.commits[0]);
        fixture.run("INSERT INTO t VALUES (2)").await;
        // PostgreSQL stops only after its readers have confirmed the end of the log.
        let (restarted, failed) = tokio::join!(fixture.cluster.restart(mode), async {
            loop {
                if let Err(error) = reader.step().await {
                    break error;
                }
            }
        });
        restarted.unwrap();
        assert!(matches!(failed, LogError::Unavailable(_)), "{failed:?}");
        let mut reader = StreamReader::new(fixture.open(Some((log, last))).await.unwrap());
        reader.read(1).await;
        assert_eq!(reader.rows.len(), 1);
        assert!(reader.rows[0].ends_with('2'), "{:?}", reader.rows);
    }
}
