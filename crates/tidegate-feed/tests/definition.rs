//! Tests tables whose definitions change while there are subscriptions.

use std::time::Duration;

use tidegate_feed::{Ended, FeedSettings, Item};

use crate::fixture::{Fixture, Setup};

#[tokio::test]
async fn a_value_is_never_that_of_another_column() {
    let fixture = Fixture::new("feed_ddl").await;
    fixture
        .run(
            "CREATE TYPE mood AS ENUM ('sad', 'glad');
             CREATE TABLE t (id int PRIMARY KEY, a text, b int); GRANT SELECT ON t TO PUBLIC",
        )
        .await;
    let mut listener = fixture.all("t", &["id", "b"]).await;
    let mut of_a = fixture.all("t", &["a"]).await;
    fixture.run("INSERT INTO t VALUES (1, 'x', 10)").await;
    fixture
        .run("ALTER TABLE t ADD c int; INSERT INTO t VALUES (2, 'y', 20, 30)")
        .await;
    fixture
        .run("ALTER TABLE t ALTER b TYPE numeric; INSERT INTO t VALUES (3, 'z', 0.50)")
        .await;
    // One transaction writes a row, swaps the tables, and writes another row.
    fixture
        .run(
            "BEGIN; INSERT INTO t VALUES (4, 'w', 40); ALTER TABLE t RENAME c TO d;
             ALTER TABLE t RENAME b TO c; ALTER TABLE t RENAME d TO b;
             INSERT INTO t (id, b, c) VALUES (5, 50, 55); COMMIT",
        )
        .await;
    fixture
        .run(
            "ALTER TABLE t ALTER b TYPE mood USING 'glad'; INSERT INTO t (id, b) VALUES (6, 'sad')",
        )
        .await;
    assert_eq!(
        listener.events(6).await,
        [
            "+{\"id\":1,\"b\":10}",
            "+{\"id\":2,\"b\":20}",
            "+{\"id\":3,\"b\":\"0.50\"}",
            "+{\"id\":4,\"b\":\"40\"}",
            "+{\"id\":5,\"b\":50}",
            "+{\"id\":6,\"b\":\"sad\"}",
        ]
    );
    fixture
        .run("ALTER TABLE t DROP a; INSERT INTO t (id, b) VALUES (7, 'sad')")
        .await;
    assert_eq!(of_a.events(5).await[2], "+{\"a\":\"z\"}");
    assert_eq!(of_a.event().await, "+{\"a\":null}");
    match of_a.next().await {
        Item::Ended(Ended::Changed { problem }) => assert!(problem.contains("`a`"), "{problem}"),
        other => panic!("{other:?}"),
    }
    fixture.run("INSERT INTO t (id) VALUES (8)").await;
    assert_eq!(listener.events(2).await[1], "+{\"id\":8,\"b\":null}");
}

#[tokio::test]
async fn a_dropped_table_ends_its_subscriptions() {
    let settings = FeedSettings {
        recheck_interval: Duration::from_millis(50),
        ..FeedSettings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    let fixture = Fixture::with("feed_dropped", &setup).await;
    fixture
        .run(
            "CREATE TABLE t (id int, a int); CREATE TABLE u (id int); \
             GRANT SELECT ON t, u TO PUBLIC",
        )
        .await;
    let mut dropped = fixture.all("u", &["id"]).await;
    let mut changed = fixture.all("t", &["a"]).await;
    fixture.run("DROP TABLE u").await;
    assert_eq!(dropped.next().await, Item::Ended(Ended::NoTable));
    // The subscription also ends if no row changes.
    fixture.run("ALTER TABLE t DROP a").await;
    assert!(matches!(
        changed.next().await,
        Item::Ended(Ended::Changed { .. })
    ));
    fixture
        .run("CREATE TABLE u (id int); GRANT SELECT ON u TO PUBLIC")
        .await;
    let mut again = fixture.all("u", &["id"]).await;
    fixture.run("INSERT INTO u VALUES (1)").await;
    assert_eq!(again.event().await, "+{\"id\":1}");
}

#[tokio::test]
async fn a_column_dropped_during_a_check_of_privileges_is_reported_as_dropped() {
    let settings = FeedSettings {
        recheck_interval: Duration::from_millis(1),
        ..FeedSettings::default()
    };
    let setup = Setup {
        settings,
        ..Setup::default()
    };
    let fixture = Fixture::with("feed_going", &setup).await;
    fixture
        .run("CREATE TABLE t (id int); GRANT SELECT ON t TO PUBLIC")
        .await;
    for _ in 0..40 {
        fixture.run("ALTER TABLE t ADD a int").await;
        let mut listener = fixture.all("t", &["a"]).await;
        fixture.run("ALTER TABLE t DROP a").await;
        match listener.next().await {
            Item::Ended(Ended::Changed { problem }) => assert!(problem.contains("`a`")),
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_subscription_between_a_definition_and_the_next_change_works() {
    let fixture = Fixture::new("feed_unshaped").await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY, a int); GRANT SELECT ON t TO PUBLIC")
        .await;
    let mut old = fixture.all("t", &["id"]).await;
    fixture.run("INSERT INTO t VALUES (1, 1)").await;
    assert_eq!(old.event().await, "+{\"id\":1}");
    // The change log reports these definitions only with the next row.
    fixture
        .run("ALTER TABLE t ADD b text; ALTER TABLE t ALTER a TYPE text")
        .await;
    let mut request = fixture.request("t", &["id", "b"]).await;
    request.predicate = Some(
        fixture
            .filter("/alice", "t", r#"{"a": "x"}"#)
            .await
            .unwrap(),
    );
    let mut new = fixture.subscribe(request).await.unwrap();
    fixture
        .run("INSERT INTO t VALUES (2, 'y', 'n'), (3, 'x', 'm')")
        .await;
    assert_eq!(new.event().await, "+{\"id\":3,\"b\":\"m\"}");
    assert_eq!(old.events(2).await, ["+{\"id\":2}", "+{\"id\":3}"]);
    // A subscription ends when the type of a filtered column changes.
    fixture
        .run("ALTER TABLE t ALTER a TYPE int USING 1; INSERT INTO t VALUES (4, 4)")
        .await;
    match new.next().await {
        Item::Ended(Ended::Changed { problem }) => assert!(problem.contains("`a`"), "{problem}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(old.event().await, "+{\"id\":4}");
}

#[tokio::test]
async fn a_renamed_table_ends_its_subscriptions() {
    let fixture = Fixture::new("feed_renamed").await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC")
        .await;
    let mut old = fixture.all("t", &["id"]).await;
    fixture.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(old.event().await, "+{\"id\":1}");
    fixture
        .run("ALTER TABLE t RENAME TO u; CREATE TABLE t (id int PRIMARY KEY); INSERT INTO u VALUES (2)")
        .await;
    match old.next().await {
        Item::Ended(Ended::Changed { problem }) => {
            assert!(problem.contains("public.u"), "{problem}");
        }
        other => panic!("{other:?}"),
    }
    let mut new = fixture.all("u", &["id"]).await;
    fixture.run("INSERT INTO u VALUES (3)").await;
    assert_eq!(new.event().await, "+{\"id\":3}");
}

#[tokio::test]
async fn subscriptions_of_a_table_that_another_replaces_end_without_a_change() {
    let fixture = Fixture::new("feed_replaced").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE u (id int PRIMARY KEY); \
             CREATE SCHEMA s; CREATE TABLE s.v (id int PRIMARY KEY); \
             GRANT USAGE ON SCHEMA s TO PUBLIC; GRANT SELECT ON t, u TO PUBLIC",
        )
        .await;
    let mut replaced = fixture.all("t", &["id"]).await;
    let mut moved = fixture.all("u", &["id"]).await;
    fixture
        .run(
            "BEGIN; ALTER TABLE t RENAME TO old; ALTER TABLE u SET SCHEMA s; \
             ALTER TABLE s.v RENAME TO t; ALTER TABLE s.t SET SCHEMA public; COMMIT",
        )
        .await;
    for (listener, name) in [(&mut replaced, "public.old"), (&mut moved, "s.u")] {
        match listener.next().await {
            Item::Ended(Ended::Changed { problem }) => {
                assert!(problem.contains(name), "{problem}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_label_that_was_renamed_twice_is_not_guessed() {
    let fixture = Fixture::new("feed_renamed_twice").await;
    fixture
        .run(
            "CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad');
             CREATE TABLE t (id int PRIMARY KEY, m mood); GRANT SELECT ON t TO PUBLIC",
        )
        .await;
    let mut glad = fixture.some("t", r#"{"m": "glad"}"#).await.unwrap();
    let mut all = fixture.all("t", &["id", "m"]).await;
    fixture
        .run(
            "BEGIN; ALTER TYPE mood RENAME VALUE 'glad' TO 'happy'; INSERT INTO t VALUES (1, 'happy');
             ALTER TYPE mood RENAME VALUE 'happy' TO 'joyful'; COMMIT;
             INSERT INTO t VALUES (2, 'joyful'), (3, 'sad')",
        )
        .await;
    assert_eq!(glad.resync().await, tidegate_feed::Resync::Incomplete);
    assert_eq!(glad.event().await, "+{\"id\":2}");
    let row = |id: u8, m: &str| format!("+{{\"id\":{id},\"m\":\"{m}\"}}");
    assert_eq!(all.events(2).await, [row(1, "happy"), row(2, "joyful")]);
}

#[tokio::test]
async fn labels_that_are_added_later_are_filtered_like_all_others() {
    let fixture = Fixture::new("feed_labels").await;
    fixture
        .run(
            "CREATE TYPE mood AS ENUM ('sad', 'ok', 'glad');
             CREATE DOMAIN feeling AS mood;
             CREATE TABLE t (id int PRIMARY KEY, m mood, f feeling); GRANT SELECT ON t TO PUBLIC",
        )
        .await;
    let mut listeners = Vec::new();
    for (filter, expected) in [
        (r#"{"m": "glad"}"#, &[1, 2, 5, 7][..]),
        (r#"{"f": "glad"}"#, &[1, 2, 5, 7]),
        (r#"{"m": "sad"}"#, &[6]),
        (r#"{"m": {"gte": "ok"}}"#, &[1, 2, 4, 5, 7]),
        (r#"{"m": {"lt": "ok"}}"#, &[3, 6]),
        (r#"{"m": {"neq": "sad"}}"#, &[1, 2, 3, 4, 5, 7]),
        (r#"{"m": {"in": ["ok", "glad"]}}"#, &[1, 2, 4, 5, 7]),
        (r#"{"m": {"nin": ["ok", "glad"]}}"#, &[3, 6]),
        (
            r#"{"OR": [{"f": "sad"}, {"m": {"gt": "ok"}}]}"#,
            &[1, 2, 5, 6, 7],
        ),
    ] {
        listeners.push((filter, expected, fixture.some("t", filter).await.unwrap()));
    }
    let mut witness = fixture.all("t", &["id"]).await;
    for sql in [
        "INSERT INTO t VALUES (1, 'glad', 'glad')",
        "ALTER TYPE mood RENAME VALUE 'glad' TO 'happy'",
        "INSERT INTO t VALUES (2, 'happy', 'happy')",
    ] {
        fixture.run(sql).await;
    }
    assert_eq!(witness.events(2).await.len(), 2);
    for sql in [
        "ALTER TYPE mood ADD VALUE 'furious' BEFORE 'sad'",
        "ALTER TYPE mood ADD VALUE 'bored' BEFORE 'ok'",
        "INSERT INTO t VALUES (3, 'furious', 'bored'), (4, 'ok', 'ok')",
        "INSERT INTO t VALUES (5, 'happy', 'happy'), (6, 'sad', 'sad'), (7, 'happy', 'happy')",
    ] {
        fixture.run(sql).await;
    }
    for (filter, expected, listener) in &mut listeners {
        let is_of_glad = filter.contains("glad");
        for id in expected.iter().filter(|id| !is_of_glad || **id < 3) {
            let event = listener.event().await;
            assert_eq!(event, format!("+{{\"id\":{id}}}"), "{filter}");
        }
        // If labels were added too, a renamed label cannot be identified.
        if is_of_glad {
            let next = listener.next().await;
            let is_end = matches!(&next, Item::Ended(Ended::Changed { .. }));
            assert!(is_end, "{filter}: {next:?}");
        }
    }
    // A subscription that starts now has all labels.
    let mut late = fixture.some("t", r#"{"m": "furious"}"#).await.unwrap();
    fixture
        .run("INSERT INTO t VALUES (8, 'furious', 'sad')")
        .await;
    assert_eq!(late.event().await, "+{\"id\":8}");
}
