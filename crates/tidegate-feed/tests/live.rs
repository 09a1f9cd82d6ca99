//! Tests what a live subscription gets.

use tidegate_feed::{Item, Operation, Operations, Resync};

use crate::fixture::Fixture;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_means_live() {
    let fixture = Fixture::new("feed_live").await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT ON t TO PUBLIC")
        .await;
    let mut first = fixture.all("t", &["id"]).await;
    for round in 1..=1000 {
        let mut listener = fixture.all("t", &["id"]).await;
        fixture
            .run(&format!("INSERT INTO t VALUES ({round})"))
            .await;
        assert_eq!(listener.event().await, format!("+{{\"id\":{round}}}"));
    }
    for (at, event) in first.events(1000).await.into_iter().enumerate() {
        assert_eq!(event, format!("+{{\"id\":{}}}", at + 1));
    }
}

#[tokio::test]
async fn a_table_that_was_just_captured_loses_nothing() {
    let fixture = Fixture::new("feed_fresh").await;
    for round in 0..25 {
        fixture
            .run(&format!(
                "CREATE TABLE t{round} (id int); GRANT SELECT ON t{round} TO PUBLIC"
            ))
            .await;
        let mut listener = fixture.all(&format!("t{round}"), &["id"]).await;
        fixture
            .run(&format!("INSERT INTO t{round} VALUES (1)"))
            .await;
        assert_eq!(listener.event().await, "+{\"id\":1}");
    }
}

#[tokio::test]
async fn events_come_in_commit_order_and_nothing_else_comes() {
    let fixture = Fixture::new("feed_order").await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT ON t TO PUBLIC")
        .await;
    let mut listener = fixture.all("t", &["id", "a"]).await;
    let (one, two) = (fixture.session().await, fixture.session().await);
    one.batch_execute("BEGIN; INSERT INTO t VALUES (1, 'first written')")
        .await
        .unwrap();
    two.batch_execute("INSERT INTO t VALUES (2, NULL); UPDATE t SET a = 'x' WHERE id = 2")
        .await
        .unwrap();
    two.batch_execute("BEGIN; DELETE FROM t; ROLLBACK")
        .await
        .unwrap();
    one.batch_execute(
        "SAVEPOINT s; INSERT INTO t VALUES (3); ROLLBACK TO s; UPDATE t SET id = 4 WHERE id = 1; \
         COMMIT",
    )
    .await
    .unwrap();
    two.batch_execute("DELETE FROM t WHERE id = 2")
        .await
        .unwrap();
    let mut cursors = vec![listener.cursor];
    let mut events = Vec::new();
    for _ in 0..5 {
        events.push(listener.event().await);
        cursors.push(listener.cursor);
    }
    assert_eq!(
        events,
        [
            r#"+{"id":2,"a":null}"#,
            r#"~{"id":2,"a":"x"}"#,
            r#"+{"id":1,"a":"first written"}"#,
            r#"~{"id":4,"a":"first written"}"#,
            r#"-{"id":2,"a":"x"}"#,
        ]
    );
    assert!(
        cursors.windows(2).all(|pair| pair[0] < pair[1]),
        "{cursors:?}"
    );
}

#[tokio::test]
async fn only_requested_events_come() {
    let fixture = Fixture::new("feed_asked").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, a text); CREATE TABLE u (id int PRIMARY KEY); \
             GRANT SELECT ON t, u TO PUBLIC",
        )
        .await;
    for filter in [
        r#"{"a": "yes"}"#,
        r#"{"a": {"in": ["maybe", "yes"]}, "id": {"gt": 0}}"#,
        r#"{"a": {"like": "ye_"}}"#,
        r#"{"not": {"or": [{"a": {"neq": "yes"}}, {"a": null}]}}"#,
    ] {
        let mut request = fixture.request("t", &["id"]).await;
        request.operations = Operations::from(Operation::Update).with(Operation::Delete);
        request.predicate = Some(fixture.filter("/alice", "t", filter).await.unwrap());
        let mut listener = fixture.subscribe(request).await.unwrap();
        fixture
            .run(
                "INSERT INTO t VALUES (1, 'yes'), (2, 'no'), (3, NULL); INSERT INTO u VALUES (1);
                 UPDATE t SET a = 'yes' WHERE id = 2; UPDATE t SET a = 'yess' WHERE id = 1;
                 DELETE FROM t WHERE id = 1; DELETE FROM t; DELETE FROM u",
            )
            .await;
        assert_eq!(listener.events(2).await, ["~{\"id\":2}", "-{\"id\":2}"]);
        fixture
            .run("INSERT INTO t VALUES (9, 'no'); UPDATE t SET a = 'yes'; DELETE FROM t")
            .await;
        assert_eq!(listener.events(2).await, ["~{\"id\":9}", "-{\"id\":9}"]);
    }
}

#[tokio::test]
async fn equal_selections_share_memory() {
    let fixture = Fixture::new("feed_bytes").await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT ON t TO PUBLIC")
        .await;
    let mut one = fixture.all("t", &["id"]).await;
    let mut two = fixture.all("t", &["id"]).await;
    let mut other = fixture.all("t", &["a"]).await;
    fixture.run("INSERT INTO t VALUES (1, 'x')").await;
    let items = [one.next().await, two.next().await, other.next().await];
    let rows: Vec<_> = items
        .iter()
        .map(|item| match item {
            Item::Event { row, .. } => row.as_ptr(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(rows[0], rows[1]);
    assert_ne!(rows[0], rows[2]);
}

#[tokio::test]
async fn truncate_is_a_gap_and_partitions_count_as_their_root() {
    let fixture = Fixture::new("feed_truncate").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY) PARTITION BY RANGE (id);
             CREATE TABLE t1 PARTITION OF t FOR VALUES FROM (0) TO (10);
             CREATE TABLE t2 PARTITION OF t FOR VALUES FROM (10) TO (20);
             GRANT SELECT ON t TO PUBLIC",
        )
        .await;
    let mut listener = fixture.all("t", &["id"]).await;
    fixture
        .run("INSERT INTO t VALUES (1), (11); UPDATE t SET id = 12 WHERE id = 1")
        .await;
    assert_eq!(
        listener.events(4).await,
        ["+{\"id\":1}", "+{\"id\":11}", "-{\"id\":1}", "+{\"id\":12}"]
    );
    fixture
        .run("CREATE TABLE t3 PARTITION OF t FOR VALUES FROM (20) TO (30)")
        .await;
    fixture
        .run("INSERT INTO t VALUES (25); TRUNCATE t; INSERT INTO t VALUES (2)")
        .await;
    assert_eq!(listener.event().await, "+{\"id\":25}");
    assert_eq!(listener.resync().await, Resync::Truncated);
    assert_eq!(listener.event().await, "+{\"id\":2}");
}
