//! Tests the subscriptions of one connection. Their events come in the order of the commits, and
//! the cursor with which a slow connection is closed is valid for each of them.

use std::time::{Duration, Instant};

use tidegate_feed::{
    Cursor, Delivery, Ended, EventReceiver, EventSender, Item, QueueLimits, SubscribeRequest,
    Subscription, event_queue,
};

use crate::fixture::Fixture;

const TABLES: &str = "\
    CREATE TABLE open (id int PRIMARY KEY); CREATE TABLE guarded (id int PRIMARY KEY); \
    CREATE TABLE other (id int PRIMARY KEY); GRANT SELECT ON open, guarded, other TO PUBLIC";
const POLICIES: &str = "\
    ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; \
    CREATE POLICY even ON guarded USING (id % 2 = 0); \
    ALTER TABLE other ENABLE ROW LEVEL SECURITY; CREATE POLICY all_rows ON other USING (true)";

/// A connection with subscriptions.
struct Connection {
    sender: EventSender,
    receiver: EventReceiver,
    subscriptions: Vec<Subscription>,
}

impl Connection {
    fn new(limits: QueueLimits) -> Self {
        let (sender, receiver) = event_queue(limits);
        Self {
            sender,
            receiver,
            subscriptions: Vec::new(),
        }
    }

    async fn subscribe(&mut self, fixture: &Fixture, tag: u64, table: &str, after: Option<Cursor>) {
        let request = SubscribeRequest {
            tag,
            after,
            ..fixture.request(table, &["id"]).await
        };
        let subscription = fixture.feed.subscribe(&self.sender, request).await.unwrap();
        self.subscriptions.push(subscription);
    }

    /// The next deliveries, without acknowledgements.
    async fn next(&mut self) -> Vec<Delivery> {
        let next = tokio::time::timeout(Duration::from_secs(30), self.receiver.next());
        let mut next = next
            .await
            .expect("nothing came")
            .expect("the queue was closed");
        next.retain(|one| !matches!(one.item, Item::Acknowledged { .. }));
        next
    }

    /// Waits without reading until the queue is closed. Returns the content of the queue and the
    /// cursor.
    async fn closed_slow(&mut self) -> (Vec<Delivery>, Cursor) {
        let began = Instant::now();
        while self.subscriptions.iter().any(|one| !one.is_ended()) {
            assert!(
                began.elapsed() < Duration::from_secs(30),
                "the queue is not closed"
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut last = self.next().await;
        match last.pop().unwrap().item {
            Item::Ended(Ended::SlowConsumer { cursor }) => (last, cursor.unwrap()),
            other => panic!("{other:?} is not the end of a slow connection"),
        }
    }

    /// The next `count` events.
    async fn events(&mut self, count: usize) -> Vec<(u64, Cursor, String)> {
        let mut events = Vec::new();
        while events.len() < count {
            events.extend(self.next().await.into_iter().map(event));
        }
        assert_eq!(events.len(), count, "{:?}", events.last());
        events
    }
}

fn event(delivery: Delivery) -> (u64, Cursor, String) {
    let Item::Event { cursor, row, .. } = delivery.item else {
        panic!("{delivery:?} is not an event");
    };
    let row = String::from_utf8(row.to_vec()).unwrap();
    (delivery.subscription, cursor, row)
}

/// Inserts rows into each table, each row in a separate transaction.
async fn write(fixture: &Fixture, ids: std::ops::RangeInclusive<u32>, tables: &[&str]) {
    for id in ids {
        for table in tables {
            let insert = format!("INSERT INTO {table} VALUES ({id})");
            fixture.run(&insert).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn events_with_and_without_row_level_security_come_in_commit_order() {
    let fixture = Fixture::new("feed_sequence").await;
    fixture.run(TABLES).await;
    fixture.run(POLICIES).await;
    let mut connection = Connection::new(QueueLimits::default());
    // The subscription is live until the next one, which has row level security, is added.
    connection.subscribe(&fixture, 1, "open", None).await;
    write(&fixture, 1..=2, &["open"]).await;
    connection.subscribe(&fixture, 2, "guarded", None).await;
    connection.subscribe(&fixture, 3, "other", None).await;
    write(&fixture, 3..=300, &["guarded", "open", "other"]).await;
    let mut expected: Vec<_> = (1..=2).map(|id| (1, id)).collect();
    for id in 3..=300 {
        expected.extend((id % 2 == 0).then_some((2, id)));
        expected.extend([(1, id), (3, id)]);
    }
    let events = connection.events(expected.len()).await;
    for ((tag, _, row), expected) in events.iter().zip(&expected) {
        let (table, id) = expected;
        assert_eq!((tag, row), (table, &format!("{{\"id\":{id}}}")));
    }
    let mut cursors = events.windows(2);
    assert!(cursors.all(|two| two[0].1 < two[1].1));
    // The connection becomes live again without the subscriptions under row level security.
    connection.subscriptions.truncate(1);
    write(&fixture, 301..=310, &["other", "open"]).await;
    for (id, (tag, _, row)) in (301..).zip(connection.events(10).await) {
        assert_eq!((tag, row), (1, format!("{{\"id\":{id}}}")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_whose_queue_was_full_continues_in_commit_order() {
    let fixture = Fixture::new("feed_full").await;
    fixture.run(TABLES).await;
    let limits = QueueLimits {
        events: 8,
        ..QueueLimits::default()
    };
    let mut connection = Connection::new(limits);
    for (tag, table) in [(1, "open"), (2, "guarded"), (3, "open")] {
        connection.subscribe(&fixture, tag, table, None).await;
    }
    // The queue becomes full while a change is pushed to several subscriptions.
    let insert = "INSERT INTO open SELECT i FROM generate_series(1, 500) i; \
                  INSERT INTO guarded SELECT i FROM generate_series(1, 500) i";
    fixture.run(insert).await;
    let events = connection.events(1500).await;
    assert!(events.windows(2).all(|two| two[0].1 <= two[1].1));
    for tag in 1..=3 {
        let theirs = events.iter().filter(|(one, ..)| *one == tag);
        let rows: Vec<_> = theirs.map(|(.., row)| row.clone()).collect();
        let all: Vec<_> = (1..=500).map(|id| format!("{{\"id\":{id}}}")).collect();
        assert_eq!(rows, all, "{tag}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cursor_of_a_slow_connection_is_valid_for_all_its_subscriptions() {
    let fixture = Fixture::new("feed_cut").await;
    fixture.run(TABLES).await;
    fixture.run(POLICIES).await;
    let limits = QueueLimits {
        events: 20,
        bytes: 1 << 20,
        stall_timeout: Duration::from_millis(300),
    };
    let mut first = Connection::new(limits);
    first.subscribe(&fixture, 1, "open", None).await;
    // This subscription makes the feed capture the table from the beginning.
    let _other = fixture.all("other", &["id"]).await;
    let mut seen = Vec::new();
    for id in 1..=50 {
        write(&fixture, id..=id, &["open", "other"]).await;
        seen.extend(first.events(1).await);
    }
    // The subscription that resumes is behind the connection's first one.
    first.subscribe(&fixture, 2, "other", Some(seen[0].1)).await;
    let closed = first.closed_slow().await;
    seen.extend(closed.0.into_iter().map(event));
    fixture
        .run("INSERT INTO open VALUES (51); INSERT INTO other VALUES (51)")
        .await;
    let mut second = Connection::new(QueueLimits::default());
    for (tag, table) in [(1, "open"), (2, "other")] {
        second.subscribe(&fixture, tag, table, Some(closed.1)).await;
    }
    let other = seen.iter().filter(|(tag, ..)| *tag == 2).count();
    assert!((1..49).contains(&other), "{other} came before the close");
    let of = |all: &[(u64, Cursor, String)], tag| -> Vec<String> {
        let theirs = all.iter().filter(|(one, ..)| *one == tag);
        theirs.map(|(.., row)| row.clone()).collect()
    };
    let all: Vec<_> = (1..=51).map(|id| format!("{{\"id\":{id}}}")).collect();
    let mut again = Vec::new();
    while [1, 2]
        .iter()
        .any(|tag| of(&again, *tag).last() != all.last())
    {
        again.extend(second.next().await.into_iter().map(event));
    }
    // The second subscription continues exactly after the cursor. The first one misses no event.
    let second_table = [of(&seen, 2), of(&again, 2)].concat();
    assert_eq!(second_table, all);
    assert!(all.ends_with(&of(&again, 1)));
}
