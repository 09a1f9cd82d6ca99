//! Tests that a WebSocket ends with the token or the session that opened it.

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::fixture::{Api, Server, TIMEOUT, password};

pub(crate) struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    pub(crate) async fn open(server: &Server, token: &str) -> Self {
        let url = format!("ws://localhost/api/v4/events?token={token}");
        let opened = client_async(url, server.connect().await).await;
        Self(opened.unwrap().0)
    }

    async fn send(&mut self, message: &Value) {
        let text = Message::text(message.to_string());
        self.0.send(text).await.unwrap();
    }

    async fn next(&mut self) -> Message {
        loop {
            let next = tokio::time::timeout(TIMEOUT, self.0.next()).await;
            match next.expect("the socket stays open").unwrap().unwrap() {
                Message::Ping(_) => {}
                message => return message,
            }
        }
    }

    async fn receive(&mut self) -> Value {
        match self.next().await {
            Message::Text(text) => serde_json::from_str(&text).unwrap(),
            other => panic!("no text: {other:?}"),
        }
    }

    pub(crate) async fn closed(&mut self) -> u16 {
        match self.next().await {
            Message::Close(Some(frame)) => frame.code.into(),
            other => panic!("no close: {other:?}"),
        }
    }

    /// Runs a statement, whose result shows that the socket is authenticated.
    pub(crate) async fn assert_authenticated(&mut self) {
        self.send(&json!({"q": "select rows 1 1"})).await;
        let response = self.receive().await;
        assert_eq!(response["data"], json!([{"s": "x"}]), "{response}");
    }
}

async fn tokens(api: &Api) -> (String, String) {
    let tokens = api.post("/api/v4/oauth", &password("alice")).await.json();
    let text = |name: &str| tokens[name].as_str().unwrap().to_owned();
    (text("access_token"), text("refresh_token"))
}

async fn revoke(api: &Api, refresh: &str) {
    let body = json!({"token": refresh, "client_id": "app"});
    let response = api.post("/api/v4/oauth/revoke", &body).await;
    assert_eq!(response.status, 200, "{}", response.text());
}

#[tokio::test]
async fn a_silent_socket_ends_with_its_token() {
    let api = Api::start().await;
    let (token, _) = tokens(&api).await;
    api.clock.advance(Duration::from_secs(3_599));
    let server = api.listen().await;
    let mut socket = Socket::open(&server, &token).await;
    let error = socket.receive().await;
    assert_eq!(error["error"], "token_expired", "{error}");
    assert_eq!(socket.closed().await, 4440);
}

#[tokio::test]
async fn a_silent_socket_ends_with_its_session() {
    let api = Api::start().await;
    let (token, refresh) = tokens(&api).await;
    let server = api.listen().await;
    let mut socket = Socket::open(&server, &token).await;
    socket.assert_authenticated().await;
    revoke(&api, &refresh).await;
    let error = socket.receive().await;
    assert_eq!(error["error"], "invalid_token", "{error}");
    assert_eq!(socket.closed().await, 4401);
}

#[tokio::test]
async fn a_message_behind_the_end_of_its_session_does_nothing() {
    let api = Api::start().await;
    let (token, refresh) = tokens(&api).await;
    let server = api.listen().await;
    let mut socket = Socket::open(&server, &token).await;
    socket.assert_authenticated().await;
    revoke(&api, &refresh).await;
    let before = api.executor.calls().len();
    socket.send(&json!({"q": "select rows 1 1"})).await;
    let error = socket.receive().await;
    assert_eq!(error["error"], "invalid_token", "{error}");
    assert_eq!(socket.closed().await, 4401);
    assert_eq!(api.executor.calls().len(), before);
}
