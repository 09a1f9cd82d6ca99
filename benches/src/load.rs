//! A load generator that costs little beside what it measures: whole requests as bytes, answers
//! read to their length and thrown away.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::Result;

/// What a run measured.
#[derive(Debug)]
pub(crate) struct Outcome {
    latencies: Vec<Duration>,
    elapsed: Duration,
}

impl Outcome {
    /// Requests answered.
    pub(crate) fn requests(&self) -> usize {
        self.latencies.len()
    }

    /// Requests answered a second.
    pub(crate) fn rate(&self) -> f64 {
        self.latencies.len() as f64 / self.elapsed.as_secs_f64()
    }

    /// A percentile of the latency in milliseconds.
    pub(crate) fn percentile(&self, share: f64) -> f64 {
        let last = self.latencies.len().saturating_sub(1);
        let index = (last as f64 * share).round() as usize;
        self.latencies
            .get(index)
            .map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
    }
}

/// Sends the requests in turn over so many connections for so long.
pub(crate) async fn run(
    address: SocketAddr,
    requests: &[Vec<u8>],
    connections: usize,
    time: Duration,
) -> Result<Outcome> {
    let requests: Rc<[Vec<u8>]> = requests.into();
    let latencies = Rc::new(RefCell::new(Vec::with_capacity(1 << 16)));
    let next = Rc::new(Cell::new(0));
    let started = Instant::now();
    let local = LocalSet::new();
    let tasks: Vec<_> = (0..connections)
        .map(|_| {
            let (requests, latencies, next) = (requests.clone(), latencies.clone(), next.clone());
            local.spawn_local(async move {
                let mut connection = Connection::open(address).await.map_err(|e| e.to_string())?;
                let mut sent = Instant::now();
                while sent - started < time {
                    let turn = next.replace(next.get() + 1);
                    let exchanged = connection.exchange(&requests[turn % requests.len()]).await;
                    exchanged.map_err(|e| e.to_string())?;
                    let done = Instant::now();
                    latencies.borrow_mut().push(done - sent);
                    sent = done;
                }
                Ok::<_, String>(())
            })
        })
        .collect();
    local
        .run_until(async {
            for task in tasks {
                task.await??;
            }
            Ok::<_, Box<dyn std::error::Error>>(())
        })
        .await?;
    let elapsed = started.elapsed();
    let mut latencies = latencies.take();
    latencies.sort_unstable();
    Ok(Outcome { latencies, elapsed })
}

/// An answer that is looked at.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The status.
    pub(crate) status: u16,
    /// The seconds of `Retry-After`.
    pub(crate) retry_after: Option<u64>,
    /// The body.
    pub(crate) body: String,
}

/// One keep-alive connection.
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    filled: usize,
}

impl Connection {
    /// Connects.
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            buffer: vec![0; 256 << 10],
            filled: 0,
        })
    }

    /// Sends a request and reads its answer, which is small and has a length.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<Answer> {
        let head = self.head(request).await?;
        let text = std::str::from_utf8(&self.buffer[..head])?.to_ascii_lowercase();
        let number = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name));
            value.and_then(|value| value.trim().parse::<usize>().ok())
        };
        let end = head + number("content-length:").ok_or("an answer without a length")?;
        while self.filled < end {
            self.fill().await?;
        }
        let status = text.get(9..12).and_then(|status| status.parse().ok());
        Ok(Answer {
            status: status.ok_or("an answer without a status")?,
            retry_after: number("retry-after:").map(|seconds| seconds as u64),
            body: std::str::from_utf8(&self.buffer[head..end])?.to_owned(),
        })
    }

    /// Sends a request and reads the head of its answer; returns where it ends.
    async fn head(&mut self, request: &[u8]) -> Result<usize> {
        self.stream.write_all(request).await?;
        self.filled = 0;
        loop {
            self.fill().await?;
            if let Some(end) = memmem::find(&self.buffer[..self.filled], b"\r\n\r\n") {
                return Ok(end + 4);
            }
        }
    }

    /// Sends a request and reads its answer to the end; returns the size of the body.
    pub(crate) async fn exchange(&mut self, request: &[u8]) -> Result<u64> {
        const LENGTH: &[u8] = b"\r\ncontent-length: ";
        let head = self.head(request).await?;
        let text = &self.buffer[..head];
        if !text.starts_with(b"HTTP/1.1 200") {
            let shown = String::from_utf8_lossy(&self.buffer[..self.filled]).into_owned();
            return Err(shown.into());
        }
        // The service writes the names of headers in small letters.
        let Some(at) = memmem::find(text, LENGTH) else {
            return self.skip_chunks(head).await;
        };
        let digits = text[at + LENGTH.len()..]
            .split(|byte| *byte == b'\r')
            .next();
        let length = std::str::from_utf8(digits.unwrap_or_default())?.parse()?;
        self.skip(head, length).await
    }

    async fn fill(&mut self) -> Result<()> {
        let read = self.stream.read(&mut self.buffer[self.filled..]).await?;
        if read == 0 {
            return Err("the server closed the connection".into());
        }
        self.filled += read;
        Ok(())
    }

    async fn skip(&mut self, head: usize, length: u64) -> Result<u64> {
        let mut left = length - (self.filled - head) as u64;
        while left > 0 {
            let read = self.stream.read(&mut self.buffer).await?;
            if read == 0 {
                return Err("the server closed the connection".into());
            }
            left -= read as u64;
        }
        Ok(length)
    }

    /// Reads a chunked body (RFC 9112, section 7.1) up to its last chunk.
    async fn skip_chunks(&mut self, head: usize) -> Result<u64> {
        let mut size = 0;
        let mut at = head;
        loop {
            let line = loop {
                if let Some(end) = memmem::find(&self.buffer[at..self.filled], b"\r\n") {
                    break at + end;
                }
                self.compact(&mut at);
                self.fill().await?;
            };
            let digits = std::str::from_utf8(&self.buffer[at..line])?;
            let chunk = usize::from_str_radix(digits.trim(), 16)?;
            at = line + 2;
            let mut left = chunk + 2;
            while self.filled - at < left {
                left -= self.filled - at;
                self.filled = 0;
                at = 0;
                self.fill().await?;
            }
            at += left;
            if chunk == 0 {
                return Ok(size);
            }
            size += chunk as u64;
        }
    }

    fn compact(&mut self, at: &mut usize) {
        self.buffer.copy_within(*at..self.filled, 0);
        self.filled -= *at;
        *at = 0;
    }
}
