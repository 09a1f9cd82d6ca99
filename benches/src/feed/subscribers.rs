//! Subscribers that use little CPU. They read raw WebSocket frames (RFC 6455, section 5) into a
//! common buffer, count them and discard them.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::io::{AsyncRead as _, AsyncWriteExt as _, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::sockets::{PONG, frame, messages, open};
use crate::Result;
use crate::service::Service;

/// Counts of the messages that all sockets together have received.
#[derive(Debug, Default)]
pub(crate) struct Received {
    /// The number of acknowledged subscriptions.
    pub(crate) acknowledged: usize,
    /// The number of received events.
    pub(crate) events: usize,
    /// The number of reads that returned events. One read may return several writes of the server,
    /// or a part of one.
    pub(crate) reads: usize,
    /// The microseconds from the time in an event's column `at` to the arrival of the event.
    pub(crate) latencies: Vec<i64>,
    /// When the last event arrived.
    pub(crate) last: Option<Instant>,
    /// The first message that is neither an acknowledgement nor an event, or the reason why a
    /// socket ended.
    other: Option<String>,
    buffer: Vec<u8>,
}

/// Open sockets with subscriptions. The sockets close when this value is dropped.
#[derive(Debug)]
pub(crate) struct Subscribers {
    received: Arc<Mutex<Received>>,
    sockets: JoinSet<()>,
}

impl Subscribers {
    /// Opens a socket for each list of queries, and waits until every query is acknowledged.
    pub(crate) async fn open(service: &Service, queries: &[Vec<String>]) -> Result<Self> {
        Self::open_at(service.address, &service.owner_token, queries).await
    }

    /// Does what [`Self::open`] does, but at the given address and as the user of `token`.
    pub(crate) async fn open_at(
        address: SocketAddr,
        token: &str,
        queries: &[Vec<String>],
    ) -> Result<Self> {
        let received = Arc::new(Mutex::new(Received {
            buffer: vec![0; 256 << 10],
            ..Received::default()
        }));
        let mut subscribers = Self {
            received: received.clone(),
            sockets: JoinSet::new(),
        };
        let mut asked = 0;
        for queries in queries {
            let stream = open(address, token).await?;
            let socket = Socket {
                stream,
                partial: Vec::new(),
                received: received.clone(),
            };
            subscribers.sockets.spawn(socket.run(messages(queries)));
            asked += queries.len();
        }
        let all = |received: &Received| received.acknowledged == asked;
        subscribers.until(Duration::from_mins(1), all).await?;
        Ok(subscribers)
    }

    /// Waits until `enough` returns true for the counts. Fails after `limit`, or if a socket has
    /// ended.
    pub(crate) async fn until(
        &self,
        limit: Duration,
        enough: impl Fn(&Received) -> bool,
    ) -> Result<()> {
        let started = Instant::now();
        loop {
            {
                let received = self.received();
                if let Some(other) = &received.other {
                    return Err(format!("a socket said: {other}").into());
                }
                if enough(&received) {
                    return Ok(());
                }
                if started.elapsed() > limit {
                    let (known, events) = (received.acknowledged, received.events);
                    let text = format!("after {limit:?}: {known} acknowledged, {events} events");
                    return Err(text.into());
                }
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Locks and returns the counts.
    pub(crate) fn received(&self) -> std::sync::MutexGuard<'_, Received> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Resets all counts except the number of acknowledgements.
    pub(crate) fn reset(&self) {
        let mut received = self.received();
        (received.events, received.reads, received.last) = (0, 0, None);
        received.latencies.clear();
    }
}

/// One socket.
struct Socket {
    stream: TcpStream,
    /// The first part of an incomplete frame.
    partial: Vec<u8>,
    received: Arc<Mutex<Received>>,
}

impl Socket {
    async fn run(mut self, messages: Vec<u8>) {
        let ended = match self.stream.write_all(&messages).await {
            Ok(()) => self.read().await,
            Err(error) => error.to_string(),
        };
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        received.other.get_or_insert(ended);
    }

    /// Reads until the socket ends. Returns the reason why it ended.
    async fn read(&mut self) -> String {
        loop {
            let pings = poll_fn(|context| self.poll_read(context)).await;
            match pings {
                Ok(true) => {
                    let ponged = self.stream.write_all(&PONG).await;
                    if let Err(error) = ponged {
                        return error.to_string();
                    }
                }
                Ok(false) => {}
                Err(ended) => return ended,
            }
        }
    }

    /// Reads and processes bytes. Returns whether they contained a ping.
    fn poll_read(&mut self, context: &mut Context<'_>) -> Poll<Result<bool, String>> {
        let mut received = self.received.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = std::mem::take(&mut received.buffer);
        let kept = self.partial.len();
        buffer[..kept].copy_from_slice(&self.partial);
        let mut space = ReadBuf::new(&mut buffer[kept..]);
        let polled = Pin::new(&mut self.stream).poll_read(context, &mut space);
        let filled = kept + space.filled().len();
        let outcome = match polled {
            Poll::Ready(Ok(())) if filled == kept => Poll::Ready(Err("closed".to_owned())),
            Poll::Ready(Ok(())) => {
                let (taken, ping) = count_frames(&buffer[..filled], &mut received);
                self.partial.clear();
                self.partial.extend_from_slice(&buffer[taken..filled]);
                Poll::Ready(Ok(ping))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.to_string())),
            Poll::Pending => Poll::Pending,
        };
        received.buffer = buffer;
        let outcome = ready!(outcome);
        Poll::Ready(outcome)
    }
}

/// Counts the messages in the complete frames of `bytes`. Returns the number of bytes of these
/// frames, and whether one of them was a ping.
fn count_frames(bytes: &[u8], received: &mut Received) -> (usize, bool) {
    const EVENT: &[u8] = br#"{"type":"subscription","#;
    const ACKNOWLEDGED: &[u8] = br#"{"type":"subscribe_ack""#;
    let (mut at, mut ping, before) = (0, false, received.events);
    let mut now = None;
    while let Some((opcode, start, end)) = frame(&bytes[at..]) {
        let payload = &bytes[at + start..at + end];
        at += end;
        match opcode {
            9 => ping = true,
            1 if payload.starts_with(EVENT) => {
                received.events += 1;
                if let Some(sent) = written_at(payload) {
                    let now = *now.get_or_insert_with(microseconds);
                    received.latencies.push(now - sent);
                }
            }
            1 if payload.starts_with(ACKNOWLEDGED) => received.acknowledged += 1,
            _ => {
                let text = String::from_utf8_lossy(payload).into_owned();
                received.other.get_or_insert(text);
            }
        }
    }
    if received.events > before {
        received.reads += 1;
        received.last = Some(Instant::now());
    }
    (at, ping)
}

/// The value of the column `at`, if it is the first column in an event's row. The column is a
/// bigint, so its digits are in quotes.
fn written_at(payload: &[u8]) -> Option<i64> {
    const COLUMN: &[u8] = br#"{"at":""#;
    let start = payload
        .windows(COLUMN.len())
        .take(400)
        .position(|part| part == COLUMN)?
        + COLUMN.len();
    let digits = payload[start..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit());
    Some(digits.fold(0, |number, digit| number * 10 + i64::from(digit - b'0')))
}

#[expect(
    clippy::disallowed_methods,
    reason = "compared with the clock of PostgreSQL"
)]
fn microseconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_micros() as i64)
}
