//! Tests what subscriptions see of writers, and how subscriptions affect writers (API.md, "Sockets
//! and change events").

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::socket_client::{Socket, owner, socket_at};

const ADDED: &str = "subscription { DocsMessageAdded { id } }";

async fn fixture(table: &str) -> (Operator, Client, Node, Socket) {
    let operator = operator().await;
    let root = operator.root("shop").await;
    root.batch_execute(table).await.unwrap();
    let node = Node::start(&operator).await;
    let socket = owner(&node).await;
    (operator, root, node, socket)
}

const DOCS: &str = "CREATE TABLE docs (id int8 PRIMARY KEY, text text); \
                    ALTER TABLE docs OWNER TO shop";

#[tokio::test(flavor = "multi_thread")]
async fn events_come_in_the_order_of_the_commits_and_of_nothing_that_was_taken_back() {
    let (operator, root, node, mut socket) = fixture(DOCS).await;
    // A subscription that was ended gets no events.
    socket.subscribe("ended", ADDED).await;
    let complete = socket
        .ask(json!({"type": "unsubscribe", "id": "ended"}))
        .await;
    assert_eq!(complete, json!({"type": "complete", "id": "ended"}));
    socket.subscribe("a", ADDED).await;
    let early = operator.root("shop").await;
    for (session, statements) in [
        (&early, "BEGIN; INSERT INTO docs VALUES (1)"),
        (&root, "INSERT INTO docs VALUES (2)"),
        (&root, "BEGIN; INSERT INTO docs VALUES (3); ROLLBACK"),
        (
            &root,
            "BEGIN; INSERT INTO docs VALUES (4); SAVEPOINT s; INSERT INTO docs VALUES (5);
             ROLLBACK TO s; INSERT INTO docs VALUES (6); COMMIT",
        ),
        (&early, "INSERT INTO docs VALUES (7); COMMIT"),
        (&root, "INSERT INTO docs VALUES (8)"),
    ] {
        session.batch_execute(statements).await.unwrap();
    }
    let mut cursors = Vec::new();
    for id in ["2", "4", "6", "1", "7", "8"] {
        let event = socket.receive().await;
        assert_eq!(event["id"], "a", "{event}");
        assert_eq!(event["data"]["DocsMessageAdded"][0]["id"], id, "{event}");
        cursors.push(event["cursor"].as_str().unwrap().to_owned());
    }
    assert!(cursors.is_sorted_by(|one, next| one < next), "{cursors:?}");
    assert!(socket.is_silent().await);
    node.stop();
}

/// The locks that a writer waits for or holds, and the triggers of its table.
async fn locks_and_triggers(root: &Client) -> Vec<(String, String)> {
    root.batch_execute(
        "BEGIN; INSERT INTO docs VALUES (-1); UPDATE docs SET text = 'x' WHERE id = -1; \
         DELETE FROM docs WHERE id = -1",
    )
    .await
    .unwrap();
    let query = "SELECT locktype || ' ' || coalesce(relation::regclass::text, ''), mode \
                 FROM pg_locks WHERE pid = pg_backend_pid() AND locktype <> 'virtualxid' \
                 AND (relation IS NULL OR relation::regclass::text LIKE 'docs%') \
                 UNION ALL SELECT 'trigger', tgname::text FROM pg_trigger \
                 WHERE tgrelid = 'docs'::regclass \
                 UNION ALL SELECT 'rule', rulename::text FROM pg_rewrite \
                 WHERE ev_class = 'docs'::regclass ORDER BY 1, 2";
    let rows = root.query(query, &[]).await.unwrap();
    root.batch_execute("COMMIT").await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscription_adds_nothing_to_what_writers_do() {
    let (operator, root, node, mut socket) = fixture(DOCS).await;
    let before = locks_and_triggers(&root).await;
    assert!(!before.is_empty());
    for (id, change) in [("a", "Added"), ("u", "Updated"), ("d", "Deleted")] {
        let query = format!("subscription {{ DocsMessage{change} {{ id text }} }}");
        socket.subscribe(id, &query).await;
    }
    assert_eq!(locks_and_triggers(&root).await, before);
    for id in ["a", "u", "d"] {
        assert_eq!(socket.receive().await["id"], id);
    }
    // The service holds no lock on the table either.
    let other = operator.root("shop").await;
    let lock = "BEGIN; LOCK TABLE docs IN ACCESS EXCLUSIVE MODE NOWAIT; COMMIT";
    other.batch_execute(lock).await.unwrap();
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_without_a_key_keeps_taking_every_change() {
    let make = "CREATE TABLE keyless (a int, b text); ALTER TABLE keyless OWNER TO shop";
    let (_operator, root, node, mut socket) = fixture(make).await;
    let write = "INSERT INTO keyless VALUES (1, 'x'), (2, 'y'); \
                 UPDATE keyless SET b = 'z' WHERE a = 1; DELETE FROM keyless";
    for (ops, expected) in [
        ("INSERT", vec![("INSERT", 1, "x"), ("INSERT", 2, "y")]),
        (
            "INSERT,UPDATE,DELETE",
            vec![
                ("INSERT", 1, "x"),
                ("INSERT", 2, "y"),
                ("UPDATE", 1, "z"),
                ("DELETE", 2, "y"),
                ("DELETE", 1, "z"),
            ],
        ),
    ] {
        let raw = json!({"type": "subscription", "id": "r", "schema": "public", "rel": "keyless",
            "op": ops});
        let response = socket.ask(raw).await;
        assert_eq!(response, json!({"type": "subscription_ack", "id": "r"}));
        root.batch_execute(write).await.unwrap();
        let mut received = Vec::new();
        while received.len() < expected.len() {
            let message = socket.receive().await;
            let changes = &message["batch"]["shop"]["public.keyless"];
            let rows = changes["full_data"].as_array().unwrap();
            let kinds = ["INSERT", "UPDATE", "DELETE"];
            let is_there = |kind: &&str| !changes[kind].as_array().unwrap().is_empty();
            let kind = kinds.into_iter().find(is_there).unwrap();
            received.extend(rows.iter().map(|row| (kind, row.clone())));
        }
        let row = |(kind, a, b): (&'static str, i32, &str)| (kind, json!({"a": a, "b": b}));
        let expected: Vec<(&str, Value)> = expected.into_iter().map(row).collect();
        assert_eq!(received, expected);
        let end = socket.ask(json!({"type": "unsubscribe", "id": "r"})).await;
        assert_eq!(end["type"], "complete", "{end}");
    }
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_column_that_a_subscription_uses_must_be_readable_and_stay_so() {
    let make = "CREATE TABLE docs (id int8 PRIMARY KEY, open text, secret text)";
    let (operator, root, node, _socket) = fixture(make).await;
    let create = ["user", "create", "shop", "ann", "--password-file", "-"];
    operator.succeeds(&create, "users-password\n");
    let grant = "GRANT SELECT (id, open) ON docs TO \"shop/ann\"";
    root.batch_execute(grant).await.unwrap();
    let mut ann = socket_at(&node, "ann", "users-password").await;
    let raw = |members: Value| {
        let mut raw = json!({"type": "subscription", "id": "r", "schema": "public", "rel": "docs"});
        let raw_members = raw.as_object_mut().unwrap();
        raw_members.extend(members.as_object().unwrap().clone());
        raw
    };
    for members in [
        json!({"columns": ["id", "secret"]}),
        json!({"columns": ["id"], "where": {"secret": {"eq": "x"}}}),
        json!({"columns": ["id"], "where": "secret = 'x'"}),
        json!({"columns": ["nothing"]}),
    ] {
        let response = ann.ask(raw(members.clone())).await;
        assert_eq!(response["type"], "error", "{members}: {response}");
        assert_eq!(response["id"], "r", "{members}: {response}");
    }
    for query in [
        "subscription { DocsMessageAdded { id secret } }",
        "subscription { DocsMessageAdded(where: {secret: {eq: \"x\"}}) { id } }",
    ] {
        let message = json!({"type": "subscribe", "id": "g", "schema": "public", "query": query});
        let response = ann.ask(message).await;
        assert_eq!(response["type"], "error", "{query}: {response}");
    }
    ann.subscribe("keeps", "subscription { DocsMessageAdded { id } }")
        .await;
    ann.subscribe("shows", "subscription { DocsMessageAdded { id open } }")
        .await;
    let filter = "subscription { DocsMessageAdded(where: {open: {eq: \"x\"}}) { id } }";
    ann.subscribe("filters", filter).await;
    let revoke = "REVOKE SELECT (open) ON docs FROM \"shop/ann\"; \
                  INSERT INTO docs VALUES (1, 'x', 'y')";
    root.batch_execute(revoke).await.unwrap();
    let mut ended = Vec::new();
    while ended.len() < 2 {
        let message = ann.receive().await;
        if message["type"] == "error" {
            assert_eq!(message["error"], "not_allowed", "{message}");
            ended.push(message["id"].as_str().unwrap().to_owned());
        } else {
            assert_eq!(message["id"], "keeps", "{message}");
        }
    }
    ended.sort();
    assert_eq!(ended, ["filters", "shows"]);
    root.batch_execute("INSERT INTO docs VALUES (2, 'x', 'y')")
        .await
        .unwrap();
    let id = |message: &Value| message["data"]["DocsMessageAdded"][0]["id"].clone();
    let mut last = ann.receive().await;
    if id(&last) == "1" {
        last = ann.receive().await;
    }
    assert_eq!((&last["id"], id(&last)), (&json!("keeps"), json!("2")));
    assert!(ann.is_silent().await);
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn writers_of_a_table_that_loses_its_key_go_on() {
    let (_operator, root, node, mut socket) = fixture(DOCS).await;
    root.batch_execute("INSERT INTO docs SELECT generate_series(1, 3), 'x'")
        .await
        .unwrap();
    let deletes = json!({"type": "subscription", "id": "d", "schema": "public", "rel": "docs",
                         "op": "DELETE", "columns": ["id"]});
    let acknowledged = socket.ask(deletes).await;
    assert_eq!(acknowledged["type"], "subscription_ack", "{acknowledged}");
    root.batch_execute("ALTER TABLE docs DROP CONSTRAINT docs_pkey")
        .await
        .unwrap();
    let begin = Instant::now();
    while let Err(error) = root.batch_execute("DELETE FROM docs WHERE id = 2").await {
        assert!(begin.elapsed() < Duration::from_secs(10), "{error:?}");
    }
    let received = socket.receive().await;
    assert_eq!(received["type"], "batch", "{received}");
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_that_is_removed_from_the_publication_is_reported() {
    let (_operator, root, node, mut socket) = fixture(DOCS).await;
    socket.subscribe("a", ADDED).await;
    root.batch_execute(
        "ALTER PUBLICATION tidegate_inserts DROP TABLE docs; INSERT INTO docs VALUES (1, 'lost')",
    )
    .await
    .unwrap();
    let begin = Instant::now();
    let received = socket.receive().await;
    assert_eq!(
        (&received["type"], &received["reason"]),
        (&json!("resync"), &json!("interrupted")),
        "{received}"
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
    root.batch_execute("INSERT INTO docs VALUES (2, 'told')")
        .await
        .unwrap();
    let received = socket.receive().await;
    assert_eq!(
        received["data"]["DocsMessageAdded"][0]["id"], "2",
        "{received}"
    );
    node.stop();
}
