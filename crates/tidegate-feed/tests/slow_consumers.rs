//! Tests subscriptions that are read slowly, and large transactions.

use std::time::Duration;

use tidegate_feed::{Ended, FeedSettings, Item, Operation, QueueLimits, event_queue};

use crate::fixture::{Fixture, Setup, listen, listen_within};

const TABLE: &str = "CREATE TABLE t (id int PRIMARY KEY, pad text); GRANT SELECT ON t TO PUBLIC";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stuck_connection_is_closed_with_its_cursor_and_delays_no_other() {
    let fixture = Fixture::new("feed_stuck").await;
    fixture.run(TABLE).await;
    let mut request = fixture.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    let mut brisk = fixture.subscribe(request.clone()).await.unwrap();
    let limits = QueueLimits {
        events: 100,
        bytes: 1 << 20,
        stall_timeout: Duration::from_millis(500),
    };
    let (sender, mut receiver) = event_queue(limits);
    let stuck = fixture
        .feed
        .subscribe(&sender, request.clone())
        .await
        .unwrap();
    let started = std::time::Instant::now();
    fixture
        .run("INSERT INTO t SELECT i FROM generate_series(1, 20000) i")
        .await;
    for id in 1..=20_000 {
        assert_eq!(brisk.event().await, format!("+{{\"id\":{id}}}"));
    }
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!(sender.depth() <= 100);
    while !stuck.is_ended() {
        assert!(started.elapsed() < Duration::from_mins(1), "never closed");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut items: Vec<_> = receiver
        .next()
        .await
        .unwrap()
        .into_iter()
        .map(|one| one.item)
        .collect();
    assert!(
        receiver.next().await.is_none(),
        "nothing comes after the end"
    );
    let Some(Item::Ended(Ended::SlowConsumer {
        cursor: Some(cursor),
    })) = items.pop()
    else {
        panic!("{:?}", items.last());
    };
    assert_eq!(
        items.len(),
        101,
        "the acknowledgement and what the queue held"
    );
    // A new subscription resumes after the cursor with which the queue was closed.
    request.after = Some(cursor);
    let mut again = listen(&fixture.feed, request).await.unwrap();
    for id in 101..=20_000 {
        assert_eq!(again.event().await, format!("+{{\"id\":{id}}}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_gets_everything() {
    let fixture = Fixture::new("feed_slow").await;
    fixture.run(TABLE).await;
    let limits = QueueLimits {
        events: 16,
        ..QueueLimits::default()
    };
    let request = fixture.request("t", &["id"]).await;
    let mut slow = listen_within(&fixture.feed, request, limits).await.unwrap();
    fixture
        .run("INSERT INTO t SELECT i FROM generate_series(1, 2000) i")
        .await;
    for id in 1..=2000 {
        assert_eq!(slow.event().await, format!("+{{\"id\":{id}}}"));
        assert!(slow.sender.depth() <= 16);
        if id % 100 == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    // The connection has caught up and is live again.
    for id in 2001..=2010 {
        fixture.run(&format!("INSERT INTO t VALUES ({id})")).await;
        assert_eq!(slow.event().await, format!("+{{\"id\":{id}}}"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_transaction_needs_no_large_memory() {
    let settings = FeedSettings {
        ring_bytes: 8 << 20,
        ..FeedSettings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    let fixture = Fixture::with("feed_large", &setup).await;
    fixture.run(TABLE).await;
    let mut all = fixture.all("t", &["id"]).await;
    let mut request = fixture.request("t", &["id"]).await;
    request.predicate = Some(
        fixture
            .filter("/alice", "t", r#"{"id": 49999}"#)
            .await
            .unwrap(),
    );
    let mut one = fixture.subscribe(request).await.unwrap();
    fixture
        .run("INSERT INTO t SELECT i, repeat('x', 100) FROM generate_series(1, 50000) i")
        .await;
    for id in 1..=50_000 {
        assert_eq!(all.event().await, format!("+{{\"id\":{id}}}"));
    }
    assert_eq!(one.event().await, "+{\"id\":49999}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_under_row_level_security_come_in_order() {
    let fixture = Fixture::new("feed_judged").await;
    fixture.run(TABLE).await;
    fixture
        .run("ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY odd ON t USING (id % 2 = 1)")
        .await;
    let mut alice = fixture.all("t", &["id"]).await;
    let mut other = fixture.all("t", &["id"]).await;
    fixture
        .run("INSERT INTO t SELECT i FROM generate_series(1, 10000) i")
        .await;
    for listener in [&mut alice, &mut other] {
        for id in (1..=10_000).step_by(2) {
            assert_eq!(listener.event().await, format!("+{{\"id\":{id}}}"));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn large_values_pass_one_by_one() {
    let fixture = Fixture::new("feed_megabytes").await;
    fixture.run(TABLE).await;
    let limits = QueueLimits {
        bytes: 1 << 20,
        ..QueueLimits::default()
    };
    let mut request = fixture.request("t", &["id", "pad"]).await;
    request.operations = Operation::Insert.into();
    let mut listener = listen_within(&fixture.feed, request, limits).await.unwrap();
    fixture
        .run("INSERT INTO t SELECT i, repeat(chr(96 + i), 1048576) FROM generate_series(1, 20) i")
        .await;
    for id in 1..=20_u8 {
        let letter = char::from(96 + id).to_string();
        let expected = format!("+{{\"id\":{id},\"pad\":\"{}\"}}", letter.repeat(1 << 20));
        assert!(listener.event().await == expected, "{id}");
    }
}

#[tokio::test]
async fn a_queue_is_bounded_by_bytes_however_few_events_it_holds() {
    let defaults = QueueLimits::default();
    assert_eq!((defaults.events, defaults.bytes), (1024, 4 << 20));
    let fixture = Fixture::new("feed_queue_bytes").await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT ON t TO PUBLIC")
        .await;
    let limits = QueueLimits {
        bytes: 64 << 10,
        ..defaults
    };
    let request = fixture.request("t", &["id", "a"]).await;
    let mut unread = listen_within(&fixture.feed, request, limits).await.unwrap();
    let mut read = fixture.all("t", &["id"]).await;
    fixture
        .run("INSERT INTO t SELECT n, repeat('x', 16000) FROM generate_series(1, 20) n")
        .await;
    read.events(20).await;
    // Four rows fit into the queue. The others wait in the ring, which all connections share.
    assert_eq!(unread.sender.depth(), 4);
    let rows = unread.events(20).await;
    assert!(rows[19].starts_with("+{\"id\":20,"), "{}", &rows[19][..20]);
}
