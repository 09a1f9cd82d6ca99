//! A fixture: the socket and the event stream that a token has open at a node.

use reqwest::Response;

use crate::node::Node;
use crate::pages::encoded;
use crate::socket_client::{Socket, open_at};

/// A socket and an event stream with the same subscription.
pub(crate) struct OpenConnections {
    socket: Socket,
    stream: Response,
}

impl OpenConnections {
    pub(crate) async fn of(node: &Node, token: &str, query: &str) -> Self {
        let path = format!("/?token={token}");
        let mut socket = open_at(&node.url, &path, &[]).await.unwrap();
        socket.subscribe("open", query).await;
        let stream = event_stream(node, token, query).await;
        Self { socket, stream }
    }

    /// Waits until both have ended because the token is refused.
    pub(crate) async fn are_refused(mut self) {
        assert_eq!(self.socket.close_code().await, 4401);
        let text = self.stream.text().await.unwrap();
        assert!(text.contains(r#"{"error":"invalid_token","#), "{text}");
    }
}

/// An event stream whose subscription is acknowledged.
pub(crate) async fn event_stream(node: &Node, token: &str, query: &str) -> Response {
    let query = encoded(query);
    let path = format!("/api/v4/events/stream?schema=public&query={query}");
    let request = node.client.get(format!("{}{path}", node.url));
    let mut stream = request.bearer_auth(token).send().await.unwrap();
    let first = stream.chunk().await.unwrap().unwrap();
    assert!(first.starts_with(b"event: subscribe_ack"), "{first:?}");
    stream
}
