//! Tests of a shutdown that is announced before the node stops serving.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use h2::client;
use http::Request;
use tokio::io::AsyncWriteExt as _;

use crate::fixture::{Api, Server, TIMEOUT};
use crate::socket::{HEALTH, response, rest};
use crate::websocket::Socket;

const DELAY: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_mins(10);
const CLOSE: &str = "\r\nconnection: close\r\n";

#[tokio::test]
async fn a_response_says_that_its_connection_closes() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut idle = server.connect().await;
    idle.write_all(HEALTH).await.unwrap();
    assert!(!response(&mut idle).await.contains(CLOSE));
    api.app.announce_shutdown(LONG);
    for mut stream in [idle, server.connect().await] {
        stream.write_all(HEALTH).await.unwrap();
        let text = response(&mut stream).await;
        assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
        assert!(text.contains(CLOSE), "{text}");
        assert_eq!(rest(&mut stream).await, "");
    }
}

/// Sends a request on a new HTTP/2 connection. Returns whether the server ends the connection
/// within a short time.
async fn goes_away(server: &Server, announce: impl FnOnce()) -> bool {
    let (sender, connection) = client::handshake(server.connect().await).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut sender = sender.ready().await.unwrap();
    let request = Request::builder().uri("http://a/healthz").body(()).unwrap();
    let (response, _) = sender.send_request(request, true).unwrap();
    assert_eq!(response.await.unwrap().status(), 200);
    announce();
    let ended = tokio::time::timeout(Duration::from_secs(8), connection).await;
    ended.is_ok_and(|ended| ended.unwrap().is_ok())
}

#[tokio::test]
async fn http2_connections_end_after_a_request() {
    let api = Api::start().await;
    let server = api.listen().await;
    assert!(goes_away(&server, || api.app.announce_shutdown(LONG)).await);
    assert!(goes_away(&server, || {}).await, "a new connection");
}

async fn sockets(api: &Api, server: &Server, count: usize) -> Vec<Socket> {
    let token = api.token("alice").await;
    let mut sockets = Vec::new();
    for _ in 0..count {
        let mut socket = Socket::open(server, &token).await;
        socket.assert_authenticated().await;
        sockets.push(socket);
    }
    sockets
}

#[tokio::test]
async fn sockets_are_closed_one_after_the_other() {
    let api = Api::start().await;
    let server = api.listen().await;
    let mut sockets = sockets(&api, &server, 8).await;
    let began = Instant::now();
    api.app.announce_shutdown(DELAY);
    let closed = sockets.iter_mut().map(async |socket| {
        assert_eq!(socket.closed().await, 1001);
        began.elapsed()
    });
    let mut closed = join_all(closed).await;
    closed.sort();
    assert!(closed[0] >= DELAY / 2, "{closed:?}");
    assert!(closed[7] >= closed[0] + DELAY / 5, "{closed:?}");
}

#[tokio::test]
async fn the_end_closes_the_sockets_that_are_left() {
    let api = Api::start().await;
    let mut server = api.listen().await;
    let mut sockets = sockets(&api, &server, 2).await;
    api.app.announce_shutdown(LONG);
    sockets[0].assert_authenticated().await;
    server.stop();
    let closed = sockets.iter_mut().map(Socket::closed);
    let closed = tokio::time::timeout(TIMEOUT, join_all(closed)).await;
    assert_eq!(closed.unwrap(), [1001, 1001]);
    server.stopped().await;
}
