//! Tests that a subscription gets nothing that its role may not read.

use std::time::Duration;

use tidegate_feed::{Ended, Error, Item, Operation};

use crate::fixture::{Fixture, Setup};
use crate::query_log::{PRIVILEGES, QueryLog};

/// A fixture whose feed checks privileges often.
async fn with_frequent_rechecks(name: &str) -> Fixture {
    Fixture::with(name, &Setup::rechecked_every(Duration::from_millis(50))).await
}

#[tokio::test]
async fn every_used_column_must_be_readable() {
    let fixture = Fixture::new("feed_columns").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, open text, secret text);
             GRANT SELECT (id, open) ON t TO PUBLIC;
             CREATE SCHEMA hidden; CREATE TABLE hidden.t (id int); \
             GRANT SELECT ON hidden.t TO PUBLIC; CREATE VIEW v AS SELECT 1 AS id; \
             GRANT SELECT ON v TO PUBLIC",
        )
        .await;
    fixture.all("t", &["id", "open"]).await;
    for (table, column) in [("t", "secret"), ("t", "nothing"), ("hidden.t", "id")] {
        let request = fixture.request(table, &["id", column]).await;
        match fixture.subscribe(request).await.err() {
            Some(Error::NoColumn(name)) => assert_eq!(&*name, column, "{table}"),
            other => panic!("{table}.{column}: {other:?}"),
        }
    }
    // A filter on a hidden column would reveal its value.
    let mut request = fixture.request("t", &["id"]).await;
    fixture.run("GRANT SELECT ON t TO feed_columns").await;
    request.predicate = Some(fixture.filter("", "t", r#"{"secret": "x"}"#).await.unwrap());
    assert!(matches!(
        fixture.subscribe(request).await.err(),
        Some(Error::NoColumn(_))
    ));
    let view = fixture.request("v", &["id"]).await;
    let refused = fixture.subscribe(view).await.err();
    assert!(
        matches!(refused, Some(Error::Unsupported(_))),
        "{refused:?}"
    );
    let mut request = fixture.request("t", &["id"]).await;
    request.relation = 1;
    assert!(matches!(
        fixture.subscribe(request).await.err(),
        Some(Error::NoTable)
    ));
}

#[tokio::test]
async fn a_revoked_privilege_ends_the_subscription() {
    let fixture = with_frequent_rechecks("feed_revoked").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, a text);
             GRANT SELECT ON t TO \"feed_revoked/alice\", feed_revoked",
        )
        .await;
    let mut listener = fixture.all("t", &["id", "a"]).await;
    let mut request = fixture.request("t", &["id", "a"]).await;
    request.login = fixture.login("");
    let mut owner = fixture.subscribe(request).await.unwrap();
    fixture
        .run(
            "REVOKE SELECT ON t FROM \"feed_revoked/alice\";
             GRANT SELECT (id) ON t TO \"feed_revoked/alice\"",
        )
        .await;
    assert_eq!(listener.next().await, Item::Ended(Ended::NotAllowed));
    fixture.run("INSERT INTO t VALUES (1, 'secret')").await;
    assert_eq!(owner.event().await, "+{\"id\":1,\"a\":\"secret\"}");
    fixture.run("ALTER ROLE feed_revoked NOLOGIN").await;
    fixture
        .run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE usename = 'feed_revoked'",
        )
        .await;
    assert_eq!(owner.next().await, Item::Ended(Ended::NotAllowed));
}

#[tokio::test]
async fn row_level_security_applies_to_the_image_and_not_to_the_row() {
    let fixture = Fixture::new("feed_rls").await;
    fixture
        .run(
            "CREATE TABLE docs (id int PRIMARY KEY, \"Owner\" text, body text, extra jsonb);
             GRANT SELECT ON docs TO PUBLIC;
             ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
             CREATE POLICY mine ON docs USING (\"Owner\" = current_user);
             CREATE TABLE open (id int PRIMARY KEY); GRANT SELECT ON open TO PUBLIC",
        )
        .await;
    let mut alice = fixture.all("docs", &["id", "body"]).await;
    let mut request = fixture.request("docs", &["id", "body"]).await;
    request.login = fixture.login("");
    let mut owner = fixture.subscribe(request).await.unwrap();
    let (a, o) = ("feed_rls/alice", "feed_rls");
    // The row belongs to alice now, but it did not when these row images were written.
    fixture
        .run(&format!(
            "BEGIN; INSERT INTO docs VALUES (1, '{o}', 'of the owner', '{{\"a\": \"x\"}}');
             UPDATE docs SET \"Owner\" = '{a}', body = 'of alice';
             UPDATE docs SET \"Owner\" = '{o}', body = 'of the owner again'; COMMIT;
             INSERT INTO docs VALUES (2, '{a}', 'quote \" and \\ and é', '[1]');
             INSERT INTO docs VALUES (3, NULL, 'of nobody');
             DELETE FROM docs"
        ))
        .await;
    let body =
        |sign: char, id: u8, body: &str| format!("{sign}{{\"id\":{id},\"body\":\"{body}\"}}");
    assert_eq!(
        alice.events(3).await,
        [
            body('~', 1, "of alice"),
            body('+', 2, "quote \\\" and \\\\ and é"),
            body('-', 2, "quote \\\" and \\\\ and é"),
        ]
    );
    assert_eq!(
        owner.events(3).await,
        [
            body('+', 1, "of the owner"),
            body('~', 1, "of the owner again"),
            body('-', 1, "of the owner again"),
        ]
    );
}

#[tokio::test]
async fn policies_are_combined_as_postgresql_does() {
    let fixture = Fixture::new("feed_policies").await;
    fixture
        .run(
            "CREATE TABLE members (who name); GRANT SELECT ON members TO PUBLIC;
             INSERT INTO members VALUES ('feed_policies/alice');
             CREATE TABLE t (id int, kind text, tags text[]); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY a ON t FOR SELECT USING (kind = 'open');
             CREATE POLICY b ON t FOR SELECT TO \"feed_policies/alice\" \
                 USING (EXISTS (SELECT FROM members WHERE who = current_user AND t.kind = 'club'));
             CREATE POLICY c ON t AS RESTRICTIVE FOR SELECT USING (NOT 'x' = ANY (tags));
             CREATE POLICY d ON t FOR INSERT WITH CHECK (true);
             CREATE TABLE closed (id int); GRANT SELECT ON closed TO PUBLIC;
             ALTER TABLE closed ENABLE ROW LEVEL SECURITY",
        )
        .await;
    let mut alice = fixture.all("t", &["id"]).await;
    let mut request = fixture.request("t", &["id"]).await;
    request.login = fixture.login("");
    let mut owner = fixture.subscribe(request).await.unwrap();
    let mut closed = fixture.all("closed", &["id"]).await;
    fixture
        .run(
            "INSERT INTO closed VALUES (1);
             INSERT INTO t VALUES (1, 'open', '{}'), (2, 'open', '{x}'), (3, 'club', '{y}'), \
                                  (4, 'club', '{x}'), (5, NULL, '{}'), (6, 'open', '{z,\"a b\"}')",
        )
        .await;
    assert_eq!(
        alice.events(3).await,
        ["+{\"id\":1}", "+{\"id\":3}", "+{\"id\":6}"]
    );
    assert_eq!(owner.events(2).await, ["+{\"id\":1}", "+{\"id\":6}"]);
    // The subscription sees the rows that a query of the role returns.
    let rows = fixture
        .sql
        .query("SELECT id FROM t WHERE kind = 'open'", &[])
        .await
        .unwrap();
    assert_eq!(rows.len(), 3);
    fixture
        .run("CREATE POLICY e ON closed USING (true); TRUNCATE closed")
        .await;
    assert_eq!(closed.resync().await, tidegate_feed::Resync::Truncated);
}

#[tokio::test]
async fn a_look_alike_operator_does_not_open_a_policy() {
    let fixture = Fixture::new("feed_alike").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, owner varchar(60)); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY mine ON t USING (owner = 'nobody'::varchar);
             CREATE SCHEMA \"feed_alike/alice\" AUTHORIZATION \"feed_alike/alice\";
             SET ROLE \"feed_alike/alice\";
             CREATE FUNCTION \"feed_alike/alice\".yes(varchar, varchar) RETURNS bool \
                 LANGUAGE sql AS 'SELECT true';
             CREATE OPERATOR \"feed_alike/alice\".= (LEFTARG = varchar, RIGHTARG = varchar, \
                 FUNCTION = \"feed_alike/alice\".yes);
             RESET ROLE",
        )
        .await;
    let mut request = fixture.request("t", &["id"]).await;
    request.operations = Operation::Insert.into();
    let mut alice = fixture.subscribe(request).await.unwrap();
    fixture
        .run("INSERT INTO t VALUES (1, 'somebody'), (2, 'nobody')")
        .await;
    assert_eq!(alice.event().await, "+{\"id\":2}");
}

#[tokio::test]
async fn row_level_security_that_is_enabled_later_applies() {
    let fixture = with_frequent_rechecks("feed_later").await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY, a text); GRANT SELECT ON t TO PUBLIC")
        .await;
    let mut free = fixture.all("t", &["id"]).await;
    fixture.run("ALTER TABLE t ENABLE ROW LEVEL SECURITY").await;
    assert!(matches!(
        free.next().await,
        Item::Ended(Ended::Changed { .. })
    ));
    fixture.run("CREATE POLICY p ON t USING (a = 'one')").await;
    let mut guarded = fixture.all("t", &["id"]).await;
    fixture
        .run("INSERT INTO t VALUES (1, 'one'), (2, 'two')")
        .await;
    assert_eq!(guarded.event().await, "+{\"id\":1}");
    // A changed policy applies to the next change at once.
    for round in 0..5 {
        let (seen, hidden) = (2 * round + 10, 2 * round + 11);
        let (now, before) = if round % 2 == 0 {
            ("two", "one")
        } else {
            ("one", "two")
        };
        fixture
            .run(&format!("ALTER POLICY p ON t USING (a = '{now}')"))
            .await;
        fixture
            .run(&format!(
                "INSERT INTO t VALUES ({hidden}, '{before}'), ({seen}, '{now}')"
            ))
            .await;
        assert_eq!(guarded.event().await, format!("+{{\"id\":{seen}}}"));
    }
}

#[tokio::test]
async fn row_level_security_applies_to_the_next_row() {
    let fixture = Fixture::new("feed_next_row").await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC")
        .await;
    let mut free = fixture.all("t", &["id"]).await;
    fixture.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(free.event().await, "+{\"id\":1}");
    fixture
        .run("ALTER TABLE t ENABLE ROW LEVEL SECURITY; INSERT INTO t VALUES (2)")
        .await;
    let item = free.next().await;
    assert!(
        matches!(item, Item::Ended(Ended::Changed { .. })),
        "{item:?}"
    );
}

#[tokio::test]
async fn row_level_security_that_is_enabled_during_a_subscribe_applies() {
    let (fixture, queries) = QueryLog::fixture("feed_enabled", &Setup::without_polls()).await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC;
             CREATE POLICY p ON t USING (id > 3)",
        )
        .await;
    let mut free = fixture.all("t", &["id"]).await;
    fixture.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(free.event().await, "+{\"id\":1}");
    let request = fixture.request("t", &["id"]).await;
    let held = queries.hold_query(PRIVILEGES).await;
    let enable = async {
        queries.held().await;
        fixture
            .run("ALTER TABLE t ENABLE ROW LEVEL SECURITY; INSERT INTO t VALUES (2)")
            .await;
        // The definition precedes the row in the change log.
        fixture.wait_until_sent().await;
        drop(held);
    };
    let (subscribed, ()) = tokio::join!(fixture.subscribe(request), enable);
    let mut guarded = subscribed.unwrap();
    fixture.run("INSERT INTO t VALUES (3), (4)").await;
    match guarded.next().await {
        Item::Event { row, .. } => assert_eq!(&*row, b"{\"id\":4}"),
        // The subscription was acknowledged before the definition was read.
        Item::Ended(Ended::Changed { .. }) => {}
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_policy_applies_to_the_next_row() {
    let fixture = Fixture::new("feed_next_policy").await;
    let mut alice = fixture.table_with_policy().await;
    fixture.run("ALTER POLICY p ON t USING (id <> 2)").await;
    fixture.run("INSERT INTO t VALUES (2), (3)").await;
    assert_eq!(alice.event().await, "+{\"id\":3}");
}

#[tokio::test]
async fn privileges_belong_to_columns_and_not_to_their_names() {
    let fixture = Fixture::new("feed_swap").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY, open text, secret text);
             GRANT SELECT (id, open) ON t TO PUBLIC",
        )
        .await;
    let mut alice = fixture.all("t", &["id", "open"]).await;
    fixture.run("INSERT INTO t VALUES (1, 'a', 'b')").await;
    assert_eq!(alice.event().await, "+{\"id\":1,\"open\":\"a\"}");
    fixture
        .run(
            "BEGIN; ALTER TABLE t RENAME open TO other; ALTER TABLE t RENAME secret TO open;
             ALTER TABLE t RENAME other TO secret; INSERT INTO t VALUES (2, 'a', 'b'); COMMIT",
        )
        .await;
    assert!(matches!(alice.next().await, Item::Ended(Ended::NotAllowed)));
}

#[tokio::test]
async fn slow_policies_are_evaluated_on_fewer_rows() {
    let fixture = Fixture::new("feed_slow_policy").await;
    fixture
        .run(
            "CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC;
             ALTER TABLE t ENABLE ROW LEVEL SECURITY;
             CREATE POLICY p ON t USING (id > 0 AND pg_sleep(5.5)::text = '')",
        )
        .await;
    let mut alice = fixture.all("t", &["id"]).await;
    fixture.run("INSERT INTO t VALUES (1), (2)").await;
    assert_eq!(alice.events(2).await, ["+{\"id\":1}", "+{\"id\":2}"]);
}

#[tokio::test]
async fn privileges_on_an_unchanged_table_are_not_queried_again() {
    // In this setup, privileges are read again only before changes of the table.
    let setup = Setup::without_polls();
    let (fixture, queries) = QueryLog::fixture("feed_unasked", &setup).await;
    fixture
        .run("CREATE TABLE t (id int PRIMARY KEY); GRANT SELECT ON t TO PUBLIC")
        .await;
    // Capturing the table may change its definition. The second subscription is made after that.
    let mut request = fixture.request("t", &["id"]).await;
    request.login = fixture.login("");
    let first = fixture.subscribe(request).await.unwrap();
    let mut listener = fixture.all("t", &["id"]).await;
    drop(first);
    let before = queries.count(PRIVILEGES);
    // The change log describes the table before its first row, and again after ANALYZE.
    fixture.run("INSERT INTO t VALUES (1)").await;
    assert_eq!(listener.event().await, "+{\"id\":1}");
    fixture.run("ANALYZE t; INSERT INTO t VALUES (2)").await;
    assert_eq!(listener.event().await, "+{\"id\":2}");
    assert_eq!(queries.count(PRIVILEGES), before);
    fixture.run("GRANT SELECT ON t TO feed_unasked").await;
    fixture.run("INSERT INTO t VALUES (3)").await;
    assert_eq!(listener.event().await, "+{\"id\":3}");
    assert_eq!(queries.count(PRIVILEGES), before + 1);
}
