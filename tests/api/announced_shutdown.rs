//! Tests a shutdown that a node announces before it stops serving (OPERATIONS.md, "Stopping").

use std::process::Command;
use std::time::{Duration, Instant};

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::node::{Node, operator};
use crate::open_connections::event_stream;
use crate::operator::Operator;
use crate::service::{TIMEOUT, eventually};
use crate::socket_client::owner;

const DELAY: Duration = Duration::from_secs(8);
const QUERY: &str = "subscription { OrdersMessageAdded { id } }";

async fn node(operator: &Operator, delay: &str) -> Node {
    let client = Client::builder().timeout(TIMEOUT).build().unwrap();
    let flags = ["--shutdown-delay", delay];
    Node::start_with(operator, &flags, ("http", client)).await
}

fn kill(node: &Node, signal: &str) {
    let sent = Command::new("kill").args([signal, &node.pid()]).status();
    assert!(sent.unwrap().success());
}

async fn readiness(node: &Node) -> (StatusCode, Value) {
    let response = node.client.get(format!("{}/readyz", node.url)).send().await;
    let response = response.unwrap();
    (response.status(), response.json().await.unwrap())
}

/// Waits until the node has announced its shutdown.
async fn announced(node: &Node) {
    eventually("the node announces that it stops", || async {
        readiness(node).await.0 == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    assert_eq!(readiness(node).await.1["checks"]["node"], "draining");
}

#[tokio::test]
async fn a_node_serves_on_after_sigterm() {
    let operator = operator().await;
    let node = node(&operator, "8s").await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap().to_owned();
    let mut socket = owner(&node).await;
    socket.subscribe("1", QUERY).await;
    let mut stream = event_stream(&node, &token, QUERY).await;
    let began = Instant::now();
    kill(&node, "-TERM");
    announced(&node).await;
    // A person who comes now is served, and so are events.
    let request = node.client.post(format!("{}/api/v4/sql", node.url));
    let request = request.bearer_auth(&token);
    let insert = json!({"q": "insert into orders values (7, 1)"});
    let response = request.json(&insert).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["connection"], "close");
    let mut late = owner(&node).await;
    let late = late.ask(json!({"q": "select 1 as n"})).await;
    assert_eq!(late["data"], json!([{"n": 1}]), "{late}");
    let event = socket.receive().await;
    assert_eq!(event["data"]["OrdersMessageAdded"][0]["id"], 7, "{event}");
    assert!(began.elapsed() < DELAY / 2, "the machine is too slow");
    let event = stream.chunk().await.unwrap().unwrap();
    assert!(event.starts_with(b"id: "), "{event:?}");
    // The clients are sent away before the node ends.
    assert_eq!(socket.close_code().await, 1001);
    assert!(began.elapsed() >= DELAY / 2);
    assert_eq!(stream.chunk().await.unwrap(), None);
    assert!(began.elapsed() >= DELAY / 2);
    let log = tokio::task::spawn_blocking(|| node.ended()).await.unwrap();
    assert!(began.elapsed() >= DELAY);
    assert!(log.contains("shutdown announced"), "{log}");
}

#[tokio::test]
async fn another_signal_ends_the_delay_and_sigint_has_none() {
    let operator = operator().await;
    for signals in [&["-TERM", "-TERM"][..], &["-TERM", "-INT"], &["-INT"]] {
        let node = node(&operator, "10m").await;
        let mut socket = owner(&node).await;
        let response = socket.ask(json!({"q": "select 1 as n"})).await;
        assert_eq!(response["data"], json!([{"n": 1}]), "{response}");
        kill(&node, signals[0]);
        if let [_, again] = signals {
            announced(&node).await;
            kill(&node, again);
        }
        assert_eq!(socket.close_code().await, 1001);
        let address = node.url.trim_start_matches("http://").to_owned();
        eventually("nobody else is let in", || async {
            TcpStream::connect(&address).await.is_err()
        })
        .await;
        tokio::task::spawn_blocking(|| node.ended()).await.unwrap();
    }
}
