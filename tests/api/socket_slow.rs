//! Tests a subscriber that does not read, and the metrics of subscribers (API.md, "Sockets and
//! change events").

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::node::{Node, operator};
use crate::service::{TIMEOUT, eventually};
use crate::socket_client::{Socket, open_at};

const ROWS: i64 = 60;
const ROW: usize = 512 * 1024;
const ADDED: &str = "subscription { DocsMessageAdded { id text } }";

/// A metric of the feed of the database `shop`.
pub(crate) async fn metric(node: &Node, name: &str) -> Option<f64> {
    let url = format!("{}/metrics", node.url);
    let text = node.client.get(url).send().await.unwrap();
    let text = text.text().await.unwrap();
    assert!(text.contains(&format!("# TYPE tidegate_feed_{name} ")));
    let start = format!("tidegate_feed_{name}{{database=\"shop\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&start))?;
    Some(line.parse().unwrap())
}

async fn memory(node: &Node) -> f64 {
    let url = format!("{}/metrics", node.url);
    let text = node.client.get(url).send().await.unwrap();
    let text = text.text().await.unwrap();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("process_resident_memory_bytes "));
    line.unwrap().parse().unwrap()
}

/// Opens a socket with a small kernel buffer, so that data that is not read stays at the server.
pub(crate) async fn narrow(node: &Node, token: &str) -> WebSocketStream<TcpStream> {
    let address = node.url.trim_start_matches("http://").parse().unwrap();
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(8 * 1024).unwrap();
    let stream = socket.connect(address).await.unwrap();
    let url = format!("ws://{address}/?token={token}");
    let (socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
    socket
}

pub(crate) async fn send(socket: &mut WebSocketStream<TcpStream>, message: &Value) {
    let text = Message::text(message.to_string());
    socket.send(text).await.unwrap();
}

/// The next message. A close is returned as the number of its code.
pub(crate) async fn receive(socket: &mut WebSocketStream<TcpStream>) -> Value {
    loop {
        let received = tokio::time::timeout(TIMEOUT, socket.next()).await.unwrap();
        match received.unwrap().unwrap() {
            Message::Text(text) => return serde_json::from_str(&text).unwrap(),
            Message::Close(Some(frame)) => return json!(u16::from(frame.code)),
            _ => {}
        }
    }
}

/// Reads the remaining messages after a subscription was ended. Returns its last row and its
/// cursor.
pub(crate) async fn cut(stuck: &mut WebSocketStream<TcpStream>) -> (i64, Value) {
    let (mut last, mut cursor) = (0, Value::Null);
    let error = loop {
        let message = receive(stuck).await;
        if message["type"] == "error" {
            break message;
        }
        assert_eq!(id(&message), last + 1);
        (last, cursor) = (last + 1, message["cursor"].clone());
    };
    assert_eq!(error["error"], "slow_consumer", "{error}");
    assert_eq!(error["cursor"], cursor, "{error}");
    assert_eq!(receive(stuck).await, json!(1013));
    (last, cursor)
}

pub(crate) fn subscribe(after: Option<&Value>) -> Value {
    json!({"type": "subscribe", "id": "a", "schema": "public", "query": ADDED, "after": after})
}

pub(crate) fn id(event: &Value) -> i64 {
    let id = &event["data"]["DocsMessageAdded"][0]["id"];
    let id = id.as_str().unwrap_or_else(|| panic!("{event} is no event"));
    id.parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_subscriber_is_ended_with_its_cursor_and_does_not_affect_others() {
    let operator = operator().await;
    let root = operator.root("shop").await;
    let make = "CREATE TABLE docs (id int8 PRIMARY KEY, text text NOT NULL);
                ALTER TABLE docs OWNER TO shop";
    root.batch_execute(make).await.unwrap();
    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap();
    let mut stuck = narrow(&node, token).await;
    send(&mut stuck, &subscribe(None)).await;
    assert_eq!(receive(&mut stuck).await["type"], "subscribe_ack");
    let path = format!("/?token={token}");
    let mut reader: Socket = open_at(&node.url, &path, &[]).await.unwrap();
    assert_eq!(reader.ask(subscribe(None)).await["type"], "subscribe_ack");
    assert_eq!(metric(&node, "subscriptions").await, Some(2.0));
    assert_eq!(metric(&node, "live").await, Some(1.0));
    assert_eq!(metric(&node, "events_total").await, Some(0.0));
    assert_eq!(metric(&node, "slow_consumers_total").await, Some(0.0));
    let before = memory(&node).await;

    let (mut most, mut queued) = (0.0_f64, 0.0_f64);
    for row in 1..=ROWS {
        let insert = "INSERT INTO docs VALUES ($1, repeat('x', $2))";
        let size = i32::try_from(ROW).unwrap();
        root.execute(insert, &[&row, &size]).await.unwrap();
        assert_eq!(id(&reader.receive().await), row);
        // The metrics are read in every round, because on a busy machine the slow subscriber is
        // ended within ten more rounds.
        most = most.max(metric(&node, "queue_bytes").await.unwrap());
        queued = queued.max(metric(&node, "queue_events").await.unwrap());
    }
    // The queue of the fast subscriber may hold one event.
    let limit = f64::from(4 << 20) + 2.0 * f64::from(u32::try_from(ROW).unwrap());
    assert!(most > f64::from(2 << 20) && most < limit, "{most} bytes");
    assert!((4.0..1024.0).contains(&queued), "{queued} events");
    eventually("the one that does not read is cut", || async {
        metric(&node, "slow_consumers_total").await == Some(1.0)
    })
    .await;
    // The remaining events are in the ring, which all subscriptions share.
    let grown = memory(&node).await - before;
    assert!(grown < f64::from(96 << 20), "{grown} bytes more");
    assert_eq!(metric(&node, "subscriptions").await, Some(1.0));

    let (last, cursor) = cut(&mut stuck).await;
    assert!(last > 0 && last < ROWS, "{last}");
    let mut again = narrow(&node, token).await;
    send(&mut again, &subscribe(Some(&cursor))).await;
    assert_eq!(receive(&mut again).await["type"], "subscribe_ack");
    for row in last + 1..=ROWS {
        assert_eq!(id(&receive(&mut again).await), row);
    }
    let delivered = metric(&node, "events_total").await.unwrap();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    let due = (2 * ROWS) as f64;
    assert!((due..due + 2.0).contains(&delivered), "{delivered}");
    assert_eq!(metric(&node, "resyncs_total").await, Some(0.0));
    root.batch_execute("TRUNCATE docs").await.unwrap();
    assert_eq!(receive(&mut again).await["type"], "resync");
    assert_eq!(reader.receive().await["type"], "resync");
    assert_eq!(metric(&node, "resyncs_total").await, Some(2.0));
    // Everything has been delivered.
    assert_eq!(metric(&node, "lag_bytes").await, Some(0.0));
    assert_eq!(metric(&node, "lag_seconds").await, Some(0.0));
    assert!(metric(&node, "position").await > Some(0.0));
    node.stop();
}
