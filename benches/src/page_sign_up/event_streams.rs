//! Event streams (server-sent events) of many people on few connections, by HTTP/2. With a
//! connection for each person, the process would need more open files than the system allows.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use h2::client::{self, ResponseFuture};
use http::Request;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::sleep;

use super::browser::encoded;
use super::listeners::Counts;
use crate::Result;

/// The number of streams of one connection.
const STREAMS: usize = 100;
/// How many subscriptions may wait for their acknowledgement. If more subscriptions waited, the
/// last of them would reach the time limit for subscribing.
const WAITING: usize = 1_000;

/// Opens a stream for each token, and counts its messages in a task.
pub(super) async fn open(
    address: SocketAddr,
    (tokens, query): (&[String], &str),
    (tasks, counts): (&mut JoinSet<()>, &Arc<Counts>),
) -> Result<()> {
    let query = encoded(query);
    let uri = format!("http://{address}/api/v4/events/stream?schema=public&query={query}");
    for (group, tokens) in tokens.chunks(STREAMS).enumerate() {
        while group * STREAMS > acknowledged(counts)? + WAITING {
            sleep(Duration::from_millis(5)).await;
        }
        let stream = TcpStream::connect(address).await?;
        let (mut client, connection) = client::handshake(stream).await?;
        tasks.spawn(async move {
            // The result is ignored, because each stream reports the end of its connection.
            let _ = connection.await;
        });
        for (number, token) in tokens.iter().enumerate() {
            client = client.ready().await?;
            let request = Request::get(&uri).header("authorization", format!("Bearer {token}"));
            let (response, _) = client.send_request(request.body(())?, true)?;
            let title = format!("\"title\":\"{}\"", group * STREAMS + number);
            let counts = counts.clone();
            tasks.spawn(async move {
                // An ended stream counts as another message.
                let _ = listen(response, &title, &counts).await;
                counts.others.fetch_add(1, Ordering::Relaxed);
            });
        }
    }
    Ok(())
}

/// The number of acknowledged subscriptions. Fails if a stream has ended.
fn acknowledged(counts: &Counts) -> Result<usize> {
    if counts.others.load(Ordering::Relaxed) > 0 {
        return Err(format!("a stream ended: {counts:?}").into());
    }
    Ok(counts.acknowledged.load(Ordering::Relaxed) as usize)
}

/// Counts the events of a stream until it ends.
async fn listen(response: ResponseFuture, title: &str, counts: &Counts) -> Result<()> {
    let mut body = response.await?.into_body();
    let mut text = String::new();
    while let Some(chunk) = body.data().await {
        let chunk = chunk?;
        body.flow_control().release_capacity(chunk.len())?;
        text.push_str(std::str::from_utf8(&chunk)?);
        while let Some(end) = text.find("\n\n") {
            let event: String = text.drain(..end + 2).collect();
            let counter = match &*event {
                ":\n\n" => continue,
                event if event.starts_with("event: subscribe_ack\n") => &counts.acknowledged,
                event if event.contains(title) => &counts.own,
                _ => &counts.others,
            };
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}
