//! Tests expired tokens and dead connections of sockets (API.md, "Sockets and change events").

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::service::demo;
use crate::socket_client::{open, socket};
use crate::tokens::access_token;

const NOW: Duration = Duration::ZERO;
/// A lifetime that is long enough to connect on a busy machine, and short enough to wait for.
const SHORT: Duration = Duration::from_secs(8);
/// The least lifetime that results, because tokens count whole seconds.
const SHORT_AT_LEAST: Duration = Duration::from_secs(7);

#[tokio::test]
async fn a_socket_ends_with_its_token_and_tells_so() {
    let earliest = Instant::now() + SHORT_AT_LEAST;
    let token = access_token(NOW, SHORT).await;
    let expires = Instant::now() + SHORT;
    let mut own = open(&format!("/?token={token}"), &[]).await.unwrap();
    own.subscribe("a", "subscription { ArtistsMessageAdded { id } }")
        .await;
    let protocol = [("sec-websocket-protocol", "graphql-transport-ws")];
    let mut transport = open("/", &protocol).await.unwrap();
    let init = json!({"type": "connection_init", "payload": {"token": token}});
    assert_eq!(transport.ask(init).await["type"], "connection_ack");
    let mut renewed = open(&format!("/?token={token}"), &[]).await.unwrap();
    let auth = json!({"type": "auth", "token": demo().cached_token("demo").await});
    let response = renewed.ask(auth).await;
    assert_eq!(response["type"], "auth_ack");
    assert!(response["expires_in"].as_u64() > Some(60), "{response}");

    let error = own.receive().await;
    assert_eq!(error["type"], "error", "{error}");
    assert_eq!(error["error"], "token_expired", "{error}");
    assert_eq!(own.closed().await, (4440, "token_expired".to_owned()));
    assert!(Instant::now() > earliest);
    // The socket does not stay open for half a minute longer, which is the tolerance for clocks of
    // nodes.
    let late = Instant::now().saturating_duration_since(expires);
    assert!(late < Duration::from_secs(20), "{late:?} late");
    assert_eq!(transport.close_code().await, 4440);
    let response = renewed.ask(json!({"q": "select 1 as one"})).await;
    assert_eq!(response["data"], json!([{"one": 1}]), "{response}");
}

#[tokio::test]
async fn an_expired_token_and_a_refresh_token_are_invalid() {
    let hour = Duration::from_hours(1);
    let expired = access_token(2 * hour, hour).await;
    let body = json!({"grant_type": "password", "username": "demo", "password": "demo1234",
        "client_id": "demo-app"});
    let request = demo().request(reqwest::Method::POST, "/api/v4/oauth");
    let tokens: serde_json::Value = request
        .json(&body)
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let refresh = tokens["refresh_token"].as_str().unwrap().to_owned();
    for token in [expired, refresh] {
        let mut address = open(&format!("/?token={token}"), &[]).await.unwrap();
        let mut message = socket("demo").await;
        message.send(&json!({"type": "auth", "token": token})).await;
        for socket in [&mut address, &mut message] {
            let response = socket.receive().await;
            assert_eq!(response["error"], "invalid_token", "{response}");
            assert_eq!(socket.closed().await, (4401, "invalid_token".to_owned()));
        }
    }
}

#[tokio::test]
async fn a_silent_socket_and_an_event_stream_end_soon_after_their_session() {
    let body = json!({"grant_type": "password", "username": "demo", "password": "demo1234",
        "client_id": "demo-app"});
    let request = demo().request(reqwest::Method::POST, "/api/v4/oauth");
    let response = request.json(&body).send().await.unwrap();
    let tokens: serde_json::Value = response.json().await.unwrap();
    let token = tokens["access_token"].as_str().unwrap();
    let mut socket = open(&format!("/?token={token}"), &[]).await.unwrap();
    socket
        .subscribe("a", "subscription { VenuesMessageAdded { id } }")
        .await;
    let query = "subscription%20%7B%20VenuesMessageAdded%20%7B%20id%20%7D%20%7D";
    let path = format!("/api/v4/events/stream?schema=public&query={query}&token={token}");
    let stream = demo().request(reqwest::Method::GET, &path);
    let stream = stream.send().await.unwrap();
    assert_eq!(stream.status(), 200);
    let revoke = json!({"token": tokens["refresh_token"], "client_id": "demo-app"});
    let request = demo().request(reqwest::Method::POST, "/api/v4/oauth/revoke");
    let revoked = request.json(&revoke).send().await.unwrap();
    assert_eq!(revoked.status(), 200);
    let began = Instant::now();
    let error = socket.receive().await;
    assert_eq!(error["error"], "invalid_token", "{error}");
    assert_eq!(socket.close_code().await, 4401);
    // The stream ends too, so its whole text can be read.
    let text = stream.text().await.unwrap();
    assert!(text.contains(r#"{"error":"invalid_token","#), "{text}");
    // The socket ends before the next ping, which would be sent after 25 s.
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_client_that_answers_no_ping_is_disconnected_after_two() {
    let token = demo().cached_token("demo").await;
    let host = demo().url.trim_start_matches("http://");
    let mut silent = TcpStream::connect(host).await.unwrap();
    let request = format!(
        "GET /?token={token} HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    silent.write_all(request.as_bytes()).await.unwrap();
    let began = Instant::now();
    let mut received = Vec::new();
    let mut alive = socket("demo").await;
    let seconds = Duration::from_secs;
    tokio::select! {
        ended = silent.read_to_end(&mut received) => {
            ended.unwrap();
        }
        () = alive.respond_to_pings() => panic!("a peer that answers is alive"),
        () = tokio::time::sleep(seconds(110)) => panic!("a peer that answers nothing is alive"),
    }
    let took = began.elapsed();
    assert!(took > seconds(70) && took < seconds(110), "{took:?}");
    let head = received
        .windows(4)
        .position(|part| part == b"\r\n\r\n")
        .unwrap();
    let ping = [0x89, 0];
    assert_eq!(received[head + 4..], [ping, ping].concat());
    assert!(alive.is_silent().await);
}
