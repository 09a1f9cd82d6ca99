//! A fixture: a WebSocket client for the real binary.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::node::Node;
use crate::service::{TIMEOUT, demo};

/// A socket.
pub(crate) struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// Opens a socket at a path, with headers.
pub(crate) async fn open(path: &str, headers: &[(&'static str, &str)]) -> Result<Socket, Error> {
    open_at(&demo().url, path, headers).await
}

/// Opens a socket at a path of another service than the demo.
pub(crate) async fn open_at(
    base: &str,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Result<Socket, Error> {
    let url = format!("{}{path}", base.replacen("http", "ws", 1));
    let mut request = url.into_client_request()?;
    for (name, value) in headers {
        let value = HeaderValue::from_str(value).unwrap();
        request.headers_mut().insert(*name, value);
    }
    let (socket, _) = connect_async(request).await?;
    Ok(Socket(socket))
}

/// Opens a socket with Tidegate's own protocol as a user.
pub(crate) async fn socket(user: &str) -> Socket {
    let token = demo().cached_token(user).await;
    open(&format!("/?token={token}"), &[]).await.unwrap()
}

/// Opens a socket at a node as a user of the database `shop`.
pub(crate) async fn socket_at(node: &Node, user: &str, password: &str) -> Socket {
    let tokens = node.sign_in("shop", user, password).await;
    let path = format!("/?token={}", tokens["access_token"].as_str().unwrap());
    open_at(&node.url, &path, &[]).await.unwrap()
}

/// Opens a socket at a node as the owner of the database `shop`.
pub(crate) async fn owner(node: &Node) -> Socket {
    socket_at(node, "shop", "owner-password").await
}

impl Socket {
    pub(crate) async fn send(&mut self, message: &Value) {
        self.send_text(&message.to_string()).await;
    }

    pub(crate) async fn send_text(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    pub(crate) async fn send_bytes(&mut self, bytes: Vec<u8>) {
        self.0.send(Message::binary(bytes)).await.unwrap();
    }

    /// The next message that is not a ping. Pings are answered.
    pub(crate) async fn receive(&mut self) -> Value {
        loop {
            let received = tokio::time::timeout(TIMEOUT, self.0.next()).await.unwrap();
            match received {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("no message but {other:?}"),
            }
        }
    }

    /// Answers pings until another message arrives.
    pub(crate) async fn respond_to_pings(&mut self) {
        while let Some(Ok(Message::Ping(_) | Message::Pong(_))) = self.0.next().await {}
    }

    /// Sends a message and returns the next one.
    pub(crate) async fn ask(&mut self, message: Value) -> Value {
        self.send(&message).await;
        self.receive().await
    }

    /// Waits for the next message, which must be a close. Returns its code and its reason.
    pub(crate) async fn closed(&mut self) -> (u16, String) {
        loop {
            let received = tokio::time::timeout(TIMEOUT, self.0.next()).await.unwrap();
            match received {
                Some(Ok(Message::Close(Some(frame)))) => {
                    return (frame.code.into(), frame.reason.to_string());
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("no close but {other:?}"),
            }
        }
    }

    /// Skips messages up to the close. Returns its code.
    pub(crate) async fn close_code(&mut self) -> u16 {
        loop {
            let received = tokio::time::timeout(TIMEOUT, self.0.next()).await.unwrap();
            match received {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
                Some(Ok(_)) => {}
                other => panic!("no close but {other:?}"),
            }
        }
    }

    /// Whether no other message arrives before the response to a request that is sent now.
    pub(crate) async fn is_silent(&mut self) -> bool {
        let response = self
            .ask(json!({"jsonrpc": "2.0", "id": "silence", "method": "no such"}))
            .await;
        response["id"] == "silence"
    }

    /// Subscribes and waits for the acknowledgement.
    pub(crate) async fn subscribe(&mut self, id: &str, query: &str) {
        let message = json!({"type": "subscribe", "id": id, "schema": "public", "query": query});
        let response = self.ask(message).await;
        assert_eq!(
            response,
            json!({"type": "subscribe_ack", "id": id}),
            "{query}"
        );
    }
}
