//! Sockets and event streams of people who wait for the event of their own row.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::event_streams;
use crate::Result;
use crate::feed::sockets::{PONG, frame, messages, open};

/// The timeout for a step of all sockets together.
const TIMEOUT: Duration = Duration::from_mins(2);

/// How many messages all sockets or streams together have received.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) acknowledged: AtomicU32,
    /// Events of the listener's own row.
    pub(super) own: AtomicU32,
    /// Events of other rows, messages of other kinds, and sockets and streams that have ended.
    pub(super) others: AtomicU32,
}

/// The open sockets or streams, which close when this value is dropped.
#[derive(Debug)]
pub(crate) struct Listeners {
    counts: Arc<Counts>,
    sockets: JoinSet<()>,
    expected: u32,
}

impl Listeners {
    /// Opens a socket for each token, and waits until all subscriptions to `table` are
    /// acknowledged.
    pub(crate) async fn open(address: SocketAddr, tokens: &[String], table: &str) -> Result<Self> {
        let mut listeners = Self {
            counts: Arc::default(),
            sockets: JoinSet::new(),
            expected: tokens.len() as u32,
        };
        let query = format!("subscription {{ {table}MessageAdded {{ title }} }}");
        let messages = messages(&[query]);
        for (number, token) in tokens.iter().enumerate() {
            let mut stream = open(address, token).await?;
            stream.write_all(&messages).await?;
            let title = format!("\"title\":\"{number}\"");
            let counts = listeners.counts.clone();
            listeners.sockets.spawn(async move {
                // An ended socket counts as another message.
                let _ = listen(stream, &title, &counts).await;
                counts.others.fetch_add(1, Ordering::Relaxed);
            });
        }
        let all = listeners.expected;
        listeners.until(|counts| &counts.acknowledged, all).await?;
        Ok(listeners)
    }

    /// Opens an event stream for each token, many of them on one connection (HTTP/2), and waits
    /// until all subscriptions to `table` are acknowledged.
    pub(crate) async fn open_streams(
        address: SocketAddr,
        tokens: &[String],
        table: &str,
    ) -> Result<Self> {
        let mut listeners = Self {
            counts: Arc::default(),
            sockets: JoinSet::new(),
            expected: tokens.len() as u32,
        };
        let query = format!("subscription {{ {table}MessageAdded {{ title }} }}");
        let streams = &mut listeners.sockets;
        event_streams::open(address, (tokens, &query), (streams, &listeners.counts)).await?;
        let all = listeners.expected;
        listeners.until(|counts| &counts.acknowledged, all).await?;
        Ok(listeners)
    }

    /// Waits until each socket has received the event of its own row.
    pub(crate) async fn all_have_their_own(&self) -> Result<()> {
        self.until(|counts| &counts.own, self.expected).await
    }

    /// Waits until `count` sockets have received the event of their own row.
    pub(crate) async fn some_have_their_own(&self, count: u32) -> Result<()> {
        self.until(|counts| &counts.own, count).await
    }

    /// Fails if a socket has ended or has received an event of another row, or if the number of
    /// events of the sockets' own rows is not `own`.
    pub(crate) fn no_others_came(&self, own: u32) -> Result<()> {
        match self.counts.others.load(Ordering::Relaxed) {
            0 if self.counts.own.load(Ordering::Relaxed) == own => Ok(()),
            _ => Err(format!("events that were not expected: {:?}", self.counts).into()),
        }
    }

    async fn until(&self, count: impl Fn(&Counts) -> &AtomicU32, expected: u32) -> Result<()> {
        let started = Instant::now();
        while count(&self.counts).load(Ordering::Relaxed) < expected {
            if started.elapsed() > TIMEOUT {
                return Err(format!("after {TIMEOUT:?}: {:?}", self.counts).into());
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

/// Counts the messages of a socket until it ends.
async fn listen(mut stream: TcpStream, title: &str, counts: &Counts) -> Result<()> {
    let mut buffer = Vec::new();
    loop {
        while let Some((opcode, start, end)) = frame(&buffer) {
            let text = String::from_utf8_lossy(&buffer[start..end]);
            let counter = match opcode {
                9 => None,
                1 if text.contains("\"type\":\"subscribe_ack\"") => Some(&counts.acknowledged),
                1 if text.contains(title) => Some(&counts.own),
                _ => Some(&counts.others),
            };
            match counter {
                Some(counter) => {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
                None => stream.write_all(&PONG).await?,
            }
            buffer.drain(..end);
        }
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(());
        }
    }
}
