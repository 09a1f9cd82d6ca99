//! Tests how much a socket buffers for a client, and for how long (API.md, "Sockets and change
//! events").

use std::cell::Cell;

use serde_json::json;
use tidegate_embedded::Shutdown;

use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::service::eventually;
use crate::socket_client::open_at;
use crate::socket_slow::{cut, id, metric, narrow, receive, send, subscribe};

/// Starts a node with a table. Returns it with the token of its owner.
async fn node(operator: &Operator, flags: &[&str]) -> (Node, String) {
    let make = "CREATE TABLE docs (id int8 PRIMARY KEY, text text NOT NULL);
                ALTER TABLE docs OWNER TO shop";
    let root = operator.root("shop").await;
    root.batch_execute(make).await.unwrap();
    let node = Node::start_with(operator, flags, ("http", reqwest::Client::new())).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap().to_owned();
    (node, token)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_has_at_most_1024_events() {
    let operator = operator().await;
    let (node, token) = node(&operator, &[]).await;
    let mut stuck = narrow(&node, &token).await;
    send(&mut stuck, &subscribe(None)).await;
    assert_eq!(receive(&mut stuck).await["type"], "subscribe_ack");
    let root = operator.root("shop").await;
    let insert = "INSERT INTO docs SELECT i, 'x' FROM generate_series(1, 100000) i";
    root.batch_execute(insert).await.unwrap();
    let most = Cell::new(0.0_f64);
    eventually("the one that does not read is cut", || async {
        let now = metric(&node, "queue_events").await.unwrap();
        most.set(most.get().max(now));
        metric(&node, "slow_consumers_total").await == Some(1.0)
    })
    .await;
    let most = most.get();
    assert!((most - 1024.0).abs() < f64::EPSILON, "{most} events");
    cut(&mut stuck).await;
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_gets_a_cursor_to_resume() {
    const ROWS: i64 = 40;
    let operator = operator().await;
    // With this timeout the socket closes before its full queue would end the subscriptions.
    let (node, token) = node(&operator, &["--write-timeout", "3s"]).await;
    let mut stuck = narrow(&node, &token).await;
    send(&mut stuck, &subscribe(None)).await;
    assert_eq!(receive(&mut stuck).await["type"], "subscribe_ack");
    let root = operator.root("shop").await;
    for row in 1..=ROWS {
        let insert = "INSERT INTO docs VALUES ($1, repeat('x', 262144))";
        root.execute(insert, &[&row]).await.unwrap();
    }
    eventually("it is cut", || async {
        metric(&node, "slow_consumers_total").await == Some(1.0)
    })
    .await;
    let (last, cursor) = cut(&mut stuck).await;
    assert!(last > 0 && last < ROWS, "{last}");
    let mut again = narrow(&node, &token).await;
    send(&mut again, &subscribe(Some(&cursor))).await;
    assert_eq!(receive(&mut again).await["type"], "subscribe_ack");
    for row in last + 1..=ROWS {
        assert_eq!(id(&receive(&mut again).await), row);
    }
    node.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unavailable_store_closes_as_overload() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    operator.cluster.halt(Shutdown::Fast).await.unwrap();
    let headers = [("tidegate-database", "shop")];
    let mut socket = open_at(&node.url, "/", &headers).await.unwrap();
    let error = socket.ask(json!({"q": "select 1"})).await;
    assert_eq!(error["type"], "error", "{error}");
    assert_eq!(error["error"], "database_unavailable", "{error}");
    assert_eq!(socket.close_code().await, 1013);
}
