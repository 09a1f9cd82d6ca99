//! Tests events around commits, nodes and the retention window (API.md, "Sockets and change
//! events").

use serde_json::{Value, json};
use tokio_postgres::Client;

use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::service::eventually;
use crate::socket_client::{Socket, owner};

const ADDED: &str = "subscription { DocsMessageAdded { id } }";

async fn run(operator: &Operator, sql: &str) {
    let root = operator.root("shop").await;
    root.batch_execute(sql).await.unwrap();
}

async fn table(operator: &Operator) {
    let make = "CREATE TABLE docs (id int8 PRIMARY KEY, text text); ALTER TABLE docs OWNER TO shop";
    run(operator, make).await;
}

/// Reads the next message, which must be an event. Returns the id of its row, and its cursor.
async fn event(socket: &mut Socket) -> (String, Value) {
    let event = socket.receive().await;
    let id = event["data"]["DocsMessageAdded"][0]["id"].as_str();
    let id = id.unwrap_or_else(|| panic!("{event} is no event"));
    (id.to_owned(), event["cursor"].clone())
}

async fn resume(socket: &mut Socket, after: &Value) {
    let message = json!({"type": "subscribe", "id": "a", "schema": "public", "query": ADDED,
        "after": after});
    let response = socket.ask(message).await;
    assert_eq!(response, json!({"type": "subscribe_ack", "id": "a"}));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_may_come_before_the_commit_returns() {
    let operator = operator().await;
    table(&operator).await;
    let node = Node::start(&operator).await;
    let mut socket = owner(&node).await;
    socket.subscribe("a", ADDED).await;
    let root = operator.root("shop").await;
    // The change log describes a table before its first row. That description must be visible
    // before the next step.
    run(&operator, "INSERT INTO docs VALUES (0)").await;
    assert_eq!(event(&mut socket).await.0, "0");
    set_standby(&root, "'nobody'").await;
    let mut row = 0_i64;
    let writer = loop {
        row += 1;
        let writer = operator.root("shop").await;
        // The session commits synchronously: by the fixture's default it would not wait for a
        // standby.
        let insert = format!("SET synchronous_commit = on; INSERT INTO docs VALUES ({row})");
        let writing = tokio::spawn(async move { writer.batch_execute(&insert).await });
        assert_eq!(event(&mut socket).await.0, row.to_string());
        // The processes of PostgreSQL apply the new setting one after the other.
        let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' \
                     AND query LIKE '%INSERT%'";
        let (root, writing_now) = (&root, &writing);
        eventually("the writer waits, or is done", || async move {
            let waits: i64 = root.query_one(waits, &[]).await.unwrap().get(0);
            waits == 1 || writing_now.is_finished()
        })
        .await;
        if !writing.is_finished() {
            break writing;
        }
        writing.await.unwrap().unwrap();
    };
    // Queries do not see the row yet, so the event itself must contain it.
    let read = "SELECT FROM docs WHERE id = $1";
    assert!(root.query(read, &[&row]).await.unwrap().is_empty());
    assert!(!writer.is_finished());
    set_standby(&root, "DEFAULT").await;
    writer.await.unwrap().unwrap();
    node.stop();
}

async fn set_standby(root: &Client, names: &str) {
    let set = format!("ALTER SYSTEM SET synchronous_standby_names = {names}");
    root.batch_execute(&set).await.unwrap();
    root.batch_execute("SELECT pg_reload_conf()").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_is_good_on_every_node_and_beyond_the_window_there_is_a_gap() {
    let operator = operator().await;
    table(&operator).await;
    let (one, two) = (Node::start(&operator).await, Node::start(&operator).await);
    let mut socket = owner(&one).await;
    socket.subscribe("a", ADDED).await;
    let mut other = owner(&two).await;
    other.subscribe("a", ADDED).await;
    run(&operator, "INSERT INTO docs VALUES (1)").await;
    let (id, cursor) = event(&mut socket).await;
    assert_eq!(id, "1");
    assert_eq!(event(&mut other).await, (id, cursor.clone()));
    drop(socket);
    run(
        &operator,
        "INSERT INTO docs VALUES (2); INSERT INTO docs VALUES (3)",
    )
    .await;
    let mut socket = owner(&two).await;
    resume(&mut socket, &cursor).await;
    assert_eq!(event(&mut socket).await.0, "2");
    run(&operator, "INSERT INTO docs VALUES (4)").await;
    for id in ["3", "4"] {
        assert_eq!(event(&mut socket).await.0, id);
    }
    one.stop();
    two.stop();
    // This moves the start of the retention window past the cursor.
    let moved = "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_lsn()) \
                 FROM pg_replication_slots WHERE NOT temporary AND database = 'shop'";
    run(&operator, moved).await;
    let node = Node::start(&operator).await;
    let mut socket = owner(&node).await;
    resume(&mut socket, &cursor).await;
    let gap = socket.receive().await;
    assert_eq!(gap["type"], "resync", "{gap}");
    assert_eq!(
        (&gap["id"], &gap["reason"]),
        (&json!("a"), &json!("expired"))
    );
    run(&operator, "INSERT INTO docs VALUES (5)").await;
    assert_eq!(event(&mut socket).await.0, "5");
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_partitions_carry_the_name_of_the_root() {
    let operator = operator().await;
    run(
        &operator,
        "CREATE TABLE parted (id int8 PRIMARY KEY, text text) PARTITION BY RANGE (id);
         CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10);
         CREATE TABLE high PARTITION OF parted FOR VALUES FROM (10) TO (20);
         ALTER TABLE parted OWNER TO shop; ALTER TABLE low OWNER TO shop;
         ALTER TABLE high OWNER TO shop",
    )
    .await;
    let node = Node::start(&operator).await;
    let mut socket = owner(&node).await;
    let raw =
        |rel: &str| json!({"type": "subscription", "id": "p", "schema": "public", "rel": rel});
    let refused = socket.ask(raw("low")).await;
    assert_eq!(refused["error"], "not_found", "{refused}");
    assert_eq!(socket.ask(raw("parted")).await["type"], "subscription_ack");
    let update = "subscription { PartedMessageAdded { id text } }";
    socket.subscribe("g", update).await;
    run(
        &operator,
        "INSERT INTO parted VALUES (1, 'through the root'); INSERT INTO high VALUES (11, 'leaf');
         UPDATE parted SET text = 'new' WHERE id = 1; UPDATE parted SET id = 12 WHERE id = 1;
         DELETE FROM high WHERE id = 11",
    )
    .await;
    let mut received = Vec::new();
    while received.len() < 9 {
        let message = socket.receive().await;
        if message["id"] == "g" {
            let row = &message["data"]["PartedMessageAdded"][0];
            received.push(format!("+{}", row["id"].as_str().unwrap()));
            continue;
        }
        let batch = message["batch"]["shop"].as_object().unwrap();
        assert!(batch.keys().eq(["public.parted"]), "{message}");
        for operation in ["INSERT", "UPDATE", "DELETE"] {
            for key in batch["public.parted"][operation].as_array().unwrap() {
                received.push(format!("{operation} {}", key[1]));
            }
        }
    }
    received.sort();
    // A row that moves to another partition is a deleted and an inserted row.
    let expected = [
        "+1",
        "+11",
        "+12",
        "DELETE 1",
        "DELETE 11",
        "INSERT 1",
        "INSERT 11",
        "INSERT 12",
        "UPDATE 1",
    ];
    assert_eq!(received, expected);
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_events_have_the_primary_key_as_it_is_now() {
    let operator = operator().await;
    run(
        &operator,
        "CREATE TABLE keyed (id int PRIMARY KEY, code text NOT NULL, part int NOT NULL);
         ALTER TABLE keyed OWNER TO shop",
    )
    .await;
    let node = Node::start(&operator).await;
    let mut socket = owner(&node).await;
    let all = json!({"type": "subscription", "id": "all", "schema": "public", "rel": "keyed"});
    assert_eq!(socket.ask(all).await["type"], "subscription_ack");
    let mut other = owner(&node).await;
    let some = json!({"type": "subscription", "id": "some", "schema": "public", "rel": "keyed",
        "columns": ["part"]});
    assert_eq!(other.ask(some).await["type"], "subscription_ack");
    run(&operator, "INSERT INTO keyed VALUES (1, 'a', 7)").await;
    let inserted = |message: &Value| message["batch"]["shop"]["public.keyed"]["INSERT"].clone();
    assert_eq!(inserted(&socket.receive().await), json!([["id", 1]]));
    assert_eq!(inserted(&other.receive().await), json!([["id", 1]]));
    run(
        &operator,
        "ALTER TABLE keyed DROP CONSTRAINT keyed_pkey, ADD PRIMARY KEY (part, code);
         INSERT INTO keyed VALUES (2, 'b', 8); DELETE FROM keyed WHERE id = 2",
    )
    .await;
    let expected = json!([["part", 8, "code", "b"]]);
    assert_eq!(inserted(&socket.receive().await), expected);
    let gone = socket.receive().await;
    let deleted = &gone["batch"]["shop"]["public.keyed"]["DELETE"];
    assert_eq!(deleted, &expected, "{gone}");
    // The client does not select the changed columns, so it first gets an event of another table.
    let ended = other.receive().await;
    assert_eq!(ended["error"], "table_changed", "{ended}");
    node.stop();
}
