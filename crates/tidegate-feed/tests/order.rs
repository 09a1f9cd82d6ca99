//! The subscriptions of one connection: what it is told comes in the order of the commits, and the
//! cursor that it is cut with holds for each of them.

use std::time::{Duration, Instant};

use tidegate_feed::{
    Cursor, Delivery, Ended, Inbox, Item, Outbox, QueueLimits, Request, Subscription, queue,
};

use crate::scene::Scene;

const TABLES: &str = "\
    CREATE TABLE open (id int PRIMARY KEY); CREATE TABLE guarded (id int PRIMARY KEY); \
    CREATE TABLE other (id int PRIMARY KEY); GRANT SELECT ON open, guarded, other TO PUBLIC";
const POLICIES: &str = "\
    ALTER TABLE guarded ENABLE ROW LEVEL SECURITY; \
    CREATE POLICY even ON guarded USING (id % 2 = 0); \
    ALTER TABLE other ENABLE ROW LEVEL SECURITY; CREATE POLICY all_rows ON other USING (true)";

/// A connection with subscriptions to tables, which are told apart by their place in the list.
struct Connection {
    outbox: Outbox,
    inbox: Inbox,
    subscriptions: Vec<Subscription>,
}

impl Connection {
    fn new(limits: QueueLimits) -> Self {
        let (outbox, inbox) = queue(limits);
        Self {
            outbox,
            inbox,
            subscriptions: Vec::new(),
        }
    }

    async fn subscribe(&mut self, scene: &Scene, tag: u64, table: &str, after: Option<Cursor>) {
        let request = Request {
            tag,
            after,
            ..scene.request(table, &["id"]).await
        };
        let subscription = scene.feed.subscribe(&self.outbox, request).await.unwrap();
        self.subscriptions.push(subscription);
    }

    /// The next things that are no acknowledgement.
    async fn next(&mut self) -> Vec<Delivery> {
        let next = tokio::time::timeout(Duration::from_secs(30), self.inbox.next());
        let mut next = next.await.expect("nothing came").expect("it was cut");
        next.retain(|one| !matches!(one.item, Item::Acknowledged { .. }));
        next
    }

    /// What the queue held when it was cut, which nobody may read to wait for, and the cursor.
    async fn cut(&mut self) -> (Vec<Delivery>, Cursor) {
        let began = Instant::now();
        while self.subscriptions.iter().any(|one| !one.is_over()) {
            assert!(began.elapsed() < Duration::from_secs(30), "it was not cut");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut last = self.next().await;
        match last.pop().unwrap().item {
            Item::Ended(Ended::SlowConsumer { cursor }) => (last, cursor.unwrap()),
            other => panic!("{other:?} is no cut"),
        }
    }

    /// So many events.
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
        panic!("{delivery:?} is no event");
    };
    let row = String::from_utf8(row.to_vec()).unwrap();
    (delivery.subscription, cursor, row)
}

/// Writes a row into each of some tables, in a transaction each.
async fn write(scene: &Scene, ids: std::ops::RangeInclusive<u32>, tables: &[&str]) {
    for id in ids {
        for table in tables {
            let insert = format!("INSERT INTO {table} VALUES ({id})");
            scene.run(&insert).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn judged_and_other_events_of_a_connection_come_in_the_order_of_commits() {
    let scene = Scene::new("feed_sequence").await;
    scene.run(TABLES).await;
    scene.run(POLICIES).await;
    let mut connection = Connection::new(QueueLimits::default());
    // One that takes changes as they come, until the next one is judged.
    connection.subscribe(&scene, 1, "open", None).await;
    write(&scene, 1..=2, &["open"]).await;
    connection.subscribe(&scene, 2, "guarded", None).await;
    connection.subscribe(&scene, 3, "other", None).await;
    write(&scene, 3..=300, &["guarded", "open", "other"]).await;
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
    // Without the judged ones everything comes as it happens again.
    connection.subscriptions.truncate(1);
    write(&scene, 301..=310, &["other", "open"]).await;
    for (id, (tag, _, row)) in (301..).zip(connection.events(10).await) {
        assert_eq!((tag, row), (1, format!("{{\"id\":{id}}}")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_whose_queue_was_full_goes_on_in_the_order_of_commits() {
    let scene = Scene::new("feed_full").await;
    scene.run(TABLES).await;
    let limits = QueueLimits {
        events: 8,
        ..QueueLimits::default()
    };
    let mut connection = Connection::new(limits);
    for (tag, table) in [(1, "open"), (2, "guarded"), (3, "open")] {
        connection.subscribe(&scene, tag, table, None).await;
    }
    // Changes that fill the queue in the middle of what several subscriptions are due.
    let insert = "INSERT INTO open SELECT i FROM generate_series(1, 500) i; \
                  INSERT INTO guarded SELECT i FROM generate_series(1, 500) i";
    scene.run(insert).await;
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
async fn the_cursor_of_a_cut_holds_for_every_subscription_of_the_connection() {
    let scene = Scene::new("feed_cut").await;
    scene.run(TABLES).await;
    scene.run(POLICIES).await;
    let limits = QueueLimits {
        events: 20,
        bytes: 1 << 20,
        patience: Duration::from_millis(300),
    };
    let mut first = Connection::new(limits);
    first.subscribe(&scene, 1, "open", None).await;
    // Captured from the beginning.
    let _other = scene.all("other", &["id"]).await;
    let mut seen = Vec::new();
    for id in 1..=50 {
        write(&scene, id..=id, &["open", "other"]).await;
        seen.extend(first.events(1).await);
    }
    // One that comes back is behind the one that has been there.
    first.subscribe(&scene, 2, "other", Some(seen[0].1)).await;
    let cut = first.cut().await;
    seen.extend(cut.0.into_iter().map(event));
    scene
        .run("INSERT INTO open VALUES (51); INSERT INTO other VALUES (51)")
        .await;
    let mut second = Connection::new(QueueLimits::default());
    for (tag, table) in [(1, "open"), (2, "other")] {
        second.subscribe(&scene, tag, table, Some(cut.1)).await;
    }
    let other = seen.iter().filter(|(tag, ..)| *tag == 2).count();
    assert!((1..49).contains(&other), "{other} came before the cut");
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
    // The judged one goes on exactly behind the cut; nothing is missing of the other.
    let judged = [of(&seen, 2), of(&again, 2)].concat();
    assert_eq!(judged, all);
    assert!(all.ends_with(&of(&again, 1)));
}
