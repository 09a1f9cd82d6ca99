//! Tests resuming: every event is delivered once, or a gap is reported.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tidegate_capture::ReplicationSettings;
use tidegate_changelog::LogError;
use tidegate_embedded::Shutdown;
use tidegate_feed::{Cursor, Ended, Feed, FeedSettings, Item, Resync};

use crate::SOURCE;
use crate::fixture::{
    FailingLog, Failure, Fixture, Listener, LogSource, Setup, change_log, executor, listen, node,
    own_cluster,
};

/// Creates a table in which every event has an id.
const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, pad text); GRANT SELECT ON t TO PUBLIC";

async fn insert(fixture: &Fixture, from: u32, to: u32) {
    let fill =
        format!("INSERT INTO t SELECT i, repeat('x', 200) FROM generate_series({from}, {to}) i");
    fixture.run(&fill).await;
}

async fn expect(listener: &mut Listener, from: u32, to: u32) {
    for id in from..=to {
        assert_eq!(listener.event().await, format!("+{{\"id\":{id}}}"));
    }
}

#[tokio::test]
async fn every_cursor_resumes_after_its_event_on_every_node() {
    let fixture = Fixture::new("feed_resume").await;
    fixture.run(TABLE).await;
    let mut listener = fixture.all("t", &["id"]).await;
    let mut cursors = vec![listener.cursor];
    // These are four transactions, with one row, three rows, one row and one row.
    for (from, to) in [(1, 1), (2, 4), (5, 5), (6, 6)] {
        insert(&fixture, from, to).await;
    }
    for id in 1..=6 {
        expect(&mut listener, id, id).await;
        cursors.push(listener.cursor);
    }
    let other = node(&Setup::default());
    for feed in [&fixture.feed, &other] {
        for (seen, cursor) in (0..).zip(&cursors) {
            let mut request = fixture.request("t", &["id"]).await;
            request.after = Some(cursor.to_string().parse::<Cursor>().unwrap());
            let mut listener = listen(feed, request).await.unwrap();
            assert_eq!(listener.cursor, *cursor);
            expect(&mut listener, seen + 1, 6).await;
        }
    }
    let mut request = fixture.request("t", &["id"]).await;
    request.after = Some(cursors[3]);
    let mut early = listen(&other, request).await.unwrap();
    insert(&fixture, 7, 7).await;
    expect(&mut early, 4, 7).await;
    expect(&mut listener, 7, 7).await;
}

#[tokio::test]
async fn changes_that_are_no_longer_in_memory_come_from_the_log() {
    let settings = FeedSettings {
        ring_bytes: 4096,
        ..FeedSettings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    let fixture = Fixture::with("feed_catch_up", &setup).await;
    fixture.run(TABLE).await;
    let mut listener = fixture.all("t", &["id"]).await;
    insert(&fixture, 1, 10).await;
    expect(&mut listener, 1, 5).await;
    let cursor = listener.cursor;
    for from in [11, 21, 31] {
        insert(&fixture, from, from + 9).await;
    }
    expect(&mut listener, 6, 40).await;
    let mut resumed = Vec::new();
    for _ in 0..5 {
        let mut request = fixture.request("t", &["id"]).await;
        request.after = Some(cursor);
        resumed.push(fixture.subscribe(request).await.unwrap());
    }
    insert(&fixture, 41, 41).await;
    for listener in &mut resumed {
        expect(listener, 6, 41).await;
    }
    insert(&fixture, 42, 50).await;
    for listener in &mut resumed {
        expect(listener, 42, 50).await;
    }
}

/// Resumes at a cursor whose changes are no longer in memory, while the change log has these
/// failures, the last one first. The cursor is from before 40 rows.
async fn resume_despite(
    fixture: &Fixture,
    setup: &Setup,
    failures: Vec<Failure>,
) -> (Feed, Listener) {
    let log = Arc::new(FailingLog {
        log: change_log(setup),
        failures: Mutex::default(),
    });
    let feed = Feed::new(log.clone(), executor(setup), setup.settings.clone());
    fixture.run(TABLE).await;
    let request = fixture.request("t", &["id"]).await;
    let mut listener = listen(&feed, request).await.unwrap();
    let cursor = listener.cursor;
    for from in [1, 11, 21, 31] {
        insert(fixture, from, from + 9).await;
    }
    expect(&mut listener, 1, 40).await;
    *log.failures.lock() = failures;
    let mut request = fixture.request("t", &["id"]).await;
    request.after = Some(cursor);
    let resumed = listen(&feed, request).await.unwrap();
    (feed, resumed)
}

fn outage() -> Failure {
    Failure::Error(LogError::Unavailable("no free slot".into()))
}

fn small_ring() -> Setup {
    Setup::with(FeedSettings {
        ring_bytes: 4096,
        ..FeedSettings::default()
    })
}

#[tokio::test]
async fn an_outage_while_a_cursor_resumes_makes_no_gap() {
    let setup = small_ring();
    let fixture = Fixture::with("feed_resume_outage", &setup).await;
    let timeout = LogError::TimedOut {
        what: "opening a slot".to_owned(),
        limit: Duration::from_secs(5),
    };
    let failures = vec![Failure::Error(timeout), Failure::OtherLog, outage()];
    let (_feed, mut resumed) = resume_despite(&fixture, &setup, failures).await;
    expect(&mut resumed, 1, 40).await;
    insert(&fixture, 41, 41).await;
    expect(&mut resumed, 41, 41).await;
}

#[tokio::test]
async fn the_reason_of_a_gap_is_why_the_log_was_not_read() {
    let setup = small_ring();
    let many = (0..1000).map(|_| outage()).collect();
    let error = Failure::Error;
    let cases: [(Vec<Failure>, _); 4] = [
        (vec![error(LogError::Gone)], Resync::Expired),
        (vec![error(LogError::Gone), outage()], Resync::Expired),
        (
            vec![error(LogError::Internal("a bug".into()))],
            Resync::Interrupted,
        ),
        (many, Resync::Interrupted),
    ];
    for (number, (failures, reason)) in cases.into_iter().enumerate() {
        let fixture = Fixture::with(&format!("feed_reason_{number}"), &setup).await;
        let (_feed, mut resumed) = resume_despite(&fixture, &setup, failures).await;
        assert_eq!(resumed.resync().await, reason);
        insert(&fixture, 41, 41).await;
        expect(&mut resumed, 41, 41).await;
    }
}

#[tokio::test]
async fn a_restart_of_postgresql_and_of_the_node_gives_every_event_once() {
    for mode in [Shutdown::Fast, Shutdown::Immediate] {
        let setup = Setup {
            cluster: own_cluster(),
            ..Setup::default()
        };
        let fixture = Fixture::with("feed_restart", &setup).await;
        fixture.run(TABLE).await;
        let mut listener = fixture.all("t", &["id"]).await;
        insert(&fixture, 1, 3).await;
        expect(&mut listener, 1, 2).await;
        let cursor = listener.cursor;
        setup.cluster.restart(mode).await.unwrap();
        let sql = fixture.session().await;
        sql.batch_execute("INSERT INTO t VALUES (4); INSERT INTO t VALUES (5)")
            .await
            .unwrap();
        // The live subscription gets the events.
        expect(&mut listener, 3, 5).await;
        // Another node takes over, as after a restart.
        fixture.feed.stop();
        assert_eq!(listener.next().await, Item::Ended(Ended::Stopped));
        sql.batch_execute("INSERT INTO t VALUES (6)").await.unwrap();
        let mut request = raw_request(&sql, &fixture).await;
        request.after = Some(cursor);
        let node = node(&setup);
        let mut listener = listen(&node, request).await.unwrap();
        expect(&mut listener, 3, 6).await;
        sql.batch_execute("INSERT INTO t VALUES (7)").await.unwrap();
        expect(&mut listener, 7, 7).await;
    }
}

/// A request made with a session that was opened after the restart.
async fn raw_request(
    sql: &tokio_postgres::Client,
    fixture: &Fixture,
) -> tidegate_feed::SubscribeRequest {
    let row = sql
        .query_one("SELECT 't'::regclass::oid", &[])
        .await
        .unwrap();
    tidegate_feed::SubscribeRequest {
        login: fixture.login("/alice"),
        tag: 1,
        relation: row.get(0),
        operations: tidegate_feed::Operations::ALL,
        selection: tidegate_feed::Selection::of(["id"]),
        predicate: None,
        after: None,
    }
}

#[tokio::test]
async fn a_gap_is_always_reported() {
    let fixture = Fixture::new("feed_gap").await;
    fixture.run(TABLE).await;
    fixture
        .run("CREATE TABLE u (id int PRIMARY KEY); GRANT SELECT ON u TO PUBLIC")
        .await;
    let mut listener = fixture.all("t", &["id"]).await;
    insert(&fixture, 1, 1).await;
    expect(&mut listener, 1, 1).await;
    let cursor = listener.cursor;
    // Changes of another table from before its first subscription are not in the change log.
    fixture.run("INSERT INTO u VALUES (1)").await;
    for _ in 0..2 {
        let mut request = fixture.request("u", &["id"]).await;
        request.after = Some(cursor);
        let mut late = fixture.subscribe(request).await.unwrap();
        assert_eq!(late.resync().await, Resync::Expired);
        fixture.run("UPDATE u SET id = id + 1").await;
        assert!(late.event().await.starts_with('~'));
    }
    // The cursor is from another cluster.
    let text = cursor.to_string();
    let foreign = format!("1{}{}", "00000001", &text[9..]);
    let mut request = fixture.request("t", &["id"]).await;
    request.after = Some(foreign.parse().unwrap());
    let mut listener = fixture.subscribe(request).await.unwrap();
    assert_eq!(listener.resync().await, Resync::OtherLog);
    insert(&fixture, 2, 2).await;
    expect(&mut listener, 2, 2).await;
}

#[tokio::test]
async fn before_the_retention_window_there_is_a_gap() {
    let settings = FeedSettings {
        ring_bytes: 1024,
        retention_window: Duration::ZERO,
        retention_interval: Duration::from_millis(20),
        ..FeedSettings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    let fixture = Fixture::with("feed_window", &setup).await;
    fixture.run(TABLE).await;
    let mut listener = fixture.all("t", &["id"]).await;
    let cursor = listener.cursor;
    insert(&fixture, 1, 20).await;
    expect(&mut listener, 1, 20).await;
    // The loop waits until the start of the retention window has moved.
    let kept = match SOURCE {
        LogSource::Log => {
            "SELECT count(*) FROM pg_replication_slots \
             WHERE database = 'feed_window' AND NOT temporary \
             AND confirmed_flush_lsn > $1::text::pg_lsn"
        }
        LogSource::Outbox => {
            "SELECT count(*) FROM tidegate_outbox.state WHERE earliest > $1::text::numeric"
        }
    };
    let cursor_text = cursor.to_string();
    let place = match SOURCE {
        LogSource::Log => format!("{}/{}", &cursor_text[9..17], &cursor_text[17..25]),
        LogSource::Outbox => u64::from_str_radix(&cursor_text[9..25], 16)
            .unwrap()
            .to_string(),
    };
    while fixture
        .sql
        .query_one(kept, &[&place])
        .await
        .unwrap()
        .get::<_, i64>(0)
        == 0
    {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut request = fixture.request("t", &["id"]).await;
    request.after = Some(cursor);
    let mut late = fixture.subscribe(request).await.unwrap();
    assert_eq!(late.resync().await, Resync::Expired);
    insert(&fixture, 21, 21).await;
    expect(&mut late, 21, 21).await;
}

#[tokio::test]
async fn without_retention_a_broken_stream_is_a_gap() {
    if SOURCE == LogSource::Outbox {
        // An outbox always retains changes, so this case does not exist.
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
    let fixture = Fixture::with("feed_none", &setup).await;
    fixture.run(TABLE).await;
    let mut listener = fixture.all("t", &["id"]).await;
    insert(&fixture, 1, 1).await;
    expect(&mut listener, 1, 1).await;
    fixture.break_streams().await;
    assert_eq!(listener.resync().await, Resync::Interrupted);
    insert(&fixture, 2, 2).await;
    expect(&mut listener, 2, 2).await;
}

#[tokio::test]
async fn a_stream_that_breaks_inside_a_transaction_continues_inside() {
    let fixture = Fixture::new("feed_inside").await;
    fixture.run(TABLE).await;
    let mut listener = fixture.all("t", &["id"]).await;
    insert(&fixture, 1, 20_000).await;
    expect(&mut listener, 1, 10).await;
    fixture.break_streams().await;
    expect(&mut listener, 11, 20_000).await;
    insert(&fixture, 20_001, 20_001).await;
    expect(&mut listener, 20_001, 20_001).await;
}
