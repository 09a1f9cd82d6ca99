//! Tests sockets that the service closes (API.md, "Sockets and change events").

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::node::{Node, operator};
use crate::service::{TIMEOUT, demo};
use crate::socket_client::{open, open_at};

#[tokio::test]
async fn an_unknown_subprotocol_is_closed() {
    // The test uses no client library, because that would give up if none of its protocols is
    // chosen.
    let host = demo().url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host).await.unwrap();
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
         Sec-WebSocket-Protocol: nothing\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut received = Vec::new();
    let close = [&[0x88][..], &[28], &4406_u16.to_be_bytes()].concat();
    tokio::time::timeout(TIMEOUT, async {
        while !received.windows(close.len()).any(|part| part == close) {
            assert_ne!(
                stream.read_buf(&mut received).await.unwrap(),
                0,
                "{received:?}"
            );
        }
    })
    .await
    .unwrap();
    assert!(received.starts_with(b"HTTP/1.1 101 "), "{received:?}");
}

#[tokio::test]
async fn a_silent_client_is_closed_after_ten_seconds() {
    let headers = [("sec-websocket-protocol", "graphql-transport-ws")];
    let began = Instant::now();
    let (mut transport, mut own) = (
        open("/", &headers).await.unwrap(),
        open("/", &[]).await.unwrap(),
    );
    let (code, ()) = tokio::join!(transport.close_code(), async {
        assert_eq!(own.receive().await["error"], "missing_token");
        assert_eq!(own.closed().await.0, 4401);
    });
    assert_eq!(code, 4408);
    let took = began.elapsed();
    assert!(
        took >= Duration::from_secs(10) && took < Duration::from_secs(20),
        "{took:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stops_answers_what_runs_and_logs_no_token() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap().to_owned();
    let path = format!("/api/v4/events?token={token}");
    let mut idle = open_at(&node.url, &path, &[]).await.unwrap();
    let mut late = open_at(&node.url, "/", &[]).await.unwrap();
    let auth = json!({"type": "auth", "token": token});
    assert_eq!(late.ask(auth).await["type"], "auth_ack");
    let response = idle.ask(json!({"q": "select 1 as one"})).await;
    assert_eq!(response["data"], json!([{"one": 1}]), "{response}");
    let stopping = tokio::task::spawn_blocking(move || node.stop());
    assert_eq!(idle.close_code().await, 1001);
    assert_eq!(late.close_code().await, 1001);
    let log = stopping.await.unwrap();
    assert!(log.contains("/api/v4/events"), "{log}");
    assert!(!log.contains(&token), "a token is in the log");
}
