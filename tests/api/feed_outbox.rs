//! Tests change events from an outbox, on a server whose `wal_level` is `replica` (API.md, "Sockets
//! and change events").

use reqwest::Client;
use serde_json::{Value, json};
use tidegate_embedded::Shutdown;

use crate::feed_workload::{Dice, TABLES, WRITERS, WorkloadWriter, definition};
use crate::node::{Node, no_streams_remain, operator};
use crate::operator::Operator;
use crate::service::TIMEOUT;
use crate::socket_client::{Socket, owner};

const OUTBOX: [&str; 2] = ["--feed-source", "outbox"];

async fn start(operator: &Operator, flags: &[&str]) -> Node {
    let client = Client::builder().timeout(TIMEOUT).build().unwrap();
    Node::start_with(operator, flags, ("http", client)).await
}

async fn ready(node: &Node) -> Value {
    let response = node.client.get(format!("{}/readyz", node.url)).send().await;
    response.unwrap().json().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outbox_feeds_where_the_log_cannot_be_read() {
    let operator = operator().await;
    let root = operator.root("shop").await;
    for statement in [
        "ALTER TABLE orders OWNER TO shop",
        "ALTER SYSTEM SET wal_level = replica",
    ] {
        root.batch_execute(statement).await.unwrap();
    }
    operator.cluster.restart(Shutdown::Fast).await.unwrap();
    let empty = operator.succeeds(&[&["feed", "status"][..], &OUTBOX].concat(), "");
    assert_eq!(empty, "feed_source = outbox\n\nshop\n  no outbox\n");
    let node = start(&operator, &OUTBOX).await;
    let printed = ready(&node).await;
    assert_eq!(printed["checks"]["feed"], "ok", "{printed}");
    assert_eq!(printed["feed_source"], "outbox", "{printed}");

    // An acknowledged subscription is live.
    let mut root = operator.root("shop").await;
    let mut socket = owner(&node).await;
    let mut cursor = Value::Null;
    for round in 0..100 {
        let id = round.to_string();
        let raw = json!({"type": "subscription", "id": id, "schema": "public", "rel": "orders"});
        assert_eq!(socket.ask(raw).await["type"], "subscription_ack");
        root.batch_execute(&format!("INSERT INTO orders VALUES ({round}, 1.50)"))
            .await
            .unwrap();
        let event = socket.receive().await;
        assert_eq!(
            event["batch"]["shop"]["public.orders"]["full_data"],
            json!([{"id": round, "total": "1.50"}]),
            "{event}"
        );
        cursor = event["cursor"].clone();
        let end = socket.ask(json!({"type": "unsubscribe", "id": id})).await;
        assert_eq!(end["type"], "complete", "{end}");
    }

    // PostgreSQL is restarted, once by a crash, and so is the node. The crash must not undo
    // delivered events, although the fixture's cluster commits asynchronously.
    let mut socket = owner(&node).await;
    let raw = json!({"type": "subscription", "id": "r", "schema": "public", "rel": "orders"});
    assert_eq!(socket.ask(raw).await["type"], "subscription_ack");
    for (id, mode) in [(100, Shutdown::Fast), (101, Shutdown::Immediate)] {
        root.batch_execute(&format!(
            "BEGIN; INSERT INTO orders VALUES (-1, 0); ROLLBACK; \
             INSERT INTO orders VALUES ({id}, NULL)"
        ))
        .await
        .unwrap();
        let event = socket.receive().await;
        let rows = &event["batch"]["shop"]["public.orders"]["full_data"];
        assert_eq!(rows[0]["id"], id, "{event}");
        operator.cluster.restart(mode).await.unwrap();
        root = operator.root("shop").await;
    }
    node.stop();
    root.batch_execute("INSERT INTO orders VALUES (102, 'NaN')")
        .await
        .unwrap();
    let node = start(&operator, &OUTBOX).await;
    let mut socket = owner(&node).await;
    let raw = json!({
        "type": "subscription", "id": "r", "schema": "public", "rel": "orders", "after": cursor,
    });
    assert_eq!(socket.ask(raw).await["type"], "subscription_ack");
    let mut ids = Vec::new();
    while ids.len() < 3 {
        let event = socket.receive().await;
        let rows = &event["batch"]["shop"]["public.orders"]["full_data"];
        ids.extend(rows.as_array().unwrap().iter().map(|row| row["id"].clone()));
    }
    assert_eq!(json!(ids), json!([100, 101, 102]));
    socket.ask(json!({"type": "unsubscribe", "id": "r"})).await;

    let shown = operator.succeeds(&[&["feed", "status", "shop"][..], &OUTBOX].concat(), "");
    assert!(shown.contains("triggers on public.orders\n"), "{shown}");
    assert!(shown.contains("of PostgreSQL reads it for"), "{shown}");
    let drop = [&["feed", "drop", "shop", "--yes"][..], &OUTBOX].concat();
    let (code, printed) = operator.fails(&drop, "");
    assert_eq!(code, 1);
    assert!(printed.contains("is still read"), "{printed}");
    node.stop();
    no_streams_remain(&operator).await;
    let dropped = operator.succeeds(&drop, "");
    assert_eq!(dropped, "DROP SCHEMA tidegate_outbox CASCADE;\n");
    let left = "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal";
    let left: i64 = root.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, 0);
    root.batch_execute("INSERT INTO orders VALUES (103, 0)")
        .await
        .unwrap();
}

/// The events of a table that a socket receives, grouped by writer. Events of different writers may
/// arrive in any order.
async fn received_events(socket: &mut Socket) -> Vec<Vec<Value>> {
    let mut received_events = vec![Vec::new(); WRITERS];
    loop {
        let message = socket.receive().await;
        if message["type"] == "resync" {
            for received_events in &mut received_events {
                received_events.push(message["reason"].clone());
            }
            continue;
        }
        assert_eq!(message["type"], "batch", "{message}");
        let tables = message["batch"]["shop"].as_object().unwrap();
        let changes = tables.values().next().unwrap();
        for row in changes["full_data"].as_array().unwrap() {
            let Some(id) = row["id"].as_u64() else {
                return received_events;
            };
            received_events[usize::try_from(id).unwrap() % WRITERS].push(row.clone());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_hears_the_same_from_both_sources() {
    let operator = operator().await;
    let root = operator.root("shop").await;
    root.batch_execute(&definition()).await.unwrap();
    for table in TABLES.into_iter().chain(["leaf1", "leaf2"]) {
        root.batch_execute(&format!("ALTER TABLE {table} OWNER TO shop"))
            .await
            .unwrap();
    }
    let logical = start(&operator, &[]).await;
    assert_eq!(ready(&logical).await["feed_source"], "logical");
    let outbox = start(&operator, &OUTBOX).await;
    let mut sockets = Vec::new();
    for table in TABLES {
        for op in ["INSERT", "UPDATE", "DELETE"] {
            for node in [&logical, &outbox] {
                let mut socket = owner(node).await;
                let raw = json!({
                    "type": "subscription", "id": "a", "schema": "public", "op": op,
                    "rel": table.trim_matches('"'),
                });
                let response = socket.ask(raw).await;
                assert_eq!(response["type"], "subscription_ack", "{response}");
                sockets.push((socket, table, op));
            }
        }
    }
    write_workload(&operator).await;
    for pair in sockets.chunks_mut(2) {
        let [(logical, table, op), (outbox, ..)] = pair else {
            unreachable!()
        };
        let (logical, outbox) = tokio::join!(received_events(logical), received_events(outbox));
        for (logical, outbox) in logical.iter().zip(&outbox) {
            for (logical, outbox) in logical.iter().zip(outbox) {
                assert_eq!(logical, outbox, "{op} of {table}");
            }
            assert_eq!(logical.len(), outbox.len(), "{op} of {table}");
        }
        let count: usize = logical.iter().map(Vec::len).sum();
        assert!(count > 10, "{op} of {table}: {count}");
    }
    logical.stop();
    outbox.stop();
}

async fn write_workload(operator: &Operator) {
    let mut dice = Dice(11);
    let mut writers = Vec::new();
    for number in 0..WRITERS {
        writers.push(WorkloadWriter::new(operator.root("shop").await, number).await);
    }
    for round in 0..2 {
        for _ in 0..2_000 {
            let writer = dice.roll(WRITERS);
            writers[writer].step(&mut dice).await;
        }
        for writer in &mut writers {
            if writer.is_open {
                let end = writer.end("COMMIT");
                writer.session.batch_execute(&end).await.unwrap();
            }
        }
        if round == 0 {
            writers[0]
                .session
                .batch_execute("TRUNCATE public.keyless")
                .await
                .unwrap();
        }
    }
    let root = operator.root("shop").await;
    for table in TABLES {
        root.batch_execute(&format!(
            "INSERT INTO {table} (id) VALUES (-1); UPDATE {table} SET n = 1 WHERE id = -1; \
             DELETE FROM {table} WHERE id = -1"
        ))
        .await
        .unwrap();
    }
}
