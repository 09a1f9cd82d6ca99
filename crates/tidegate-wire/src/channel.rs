//! A stream with a send buffer and a receive buffer.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::Instant;

use super::inbound::Inbound;
use super::stream::Stream;

/// An empty send buffer is freed if its capacity exceeds this number of bytes.
const MAX_IDLE_CAPACITY: usize = 256 << 10;
/// How many bytes are read and discarded at most from an abandoned stream. Socket buffers are
/// smaller.
const MAX_DISCARDED: usize = 16 << 20;

/// Why a message could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The stream failed or ended, or a message is invalid.
    Io(io::Error),
    /// The deadline passed.
    Deadline,
}

impl From<io::Error> for ReadError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// A stream with its buffers.
#[derive(Debug)]
pub struct Channel {
    stream: Stream,
    /// The send buffer. Messages are appended here.
    pub outbound: BytesMut,
    /// The receive buffer.
    pub inbound: Inbound,
    unflushed: bool,
}

impl Channel {
    /// A channel with empty buffers.
    pub fn new(stream: Stream) -> Self {
        let (outbound, inbound) = (BytesMut::with_capacity(1024), Inbound::default());
        Self {
            stream,
            outbound,
            inbound,
            unflushed: false,
        }
    }

    /// The underlying stream.
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Waits for the next message and returns its tag. [`Inbound::body`] then returns the body of
    /// the message.
    ///
    /// While it waits, it also sends the send buffer. Both directions make progress at the same
    /// time, so that full buffers on both sides cannot cause a deadlock.
    pub async fn next(&mut self, deadline: Option<Instant>) -> Result<u8, ReadError> {
        loop {
            if let Some(tag) = self.inbound.advance()? {
                return Ok(tag);
            }
            self.exchange(deadline).await?;
        }
    }

    /// Sends and receives until data has arrived or everything has been sent.
    pub async fn exchange(&mut self, deadline: Option<Instant>) -> Result<(), ReadError> {
        let progress = poll_fn(|cx| self.poll_exchange(cx));
        match deadline {
            None => Ok(progress.await?),
            Some(deadline) => match tokio::time::timeout_at(deadline, progress).await {
                Ok(progress) => Ok(progress?),
                Err(_) => Err(ReadError::Deadline),
            },
        }
    }

    /// Pauses reading until `until`. Data that arrives during the pause can then be read with one
    /// system call. If the future is dropped, call this function again or
    /// [`Channel::resume_reads`].
    pub async fn pause(&mut self, until: Instant) -> io::Result<()> {
        self.stream.pause_reads()?;
        tokio::time::sleep_until(until).await;
        self.resume_reads()
    }

    /// Ends a pause. Needed if the future of [`Channel::pause`] was dropped.
    pub fn resume_reads(&mut self) -> io::Result<()> {
        self.stream.resume_reads()
    }

    /// Sends the rest of the send buffer, and waits until the server has closed the stream.
    pub async fn close(mut self) -> io::Result<()> {
        poll_fn(|cx| self.poll_send(cx)).await?;
        let mut rest = [0; 64];
        while self.stream.read(&mut rest).await? > 0 {}
        Ok(())
    }

    /// Discards the send buffer, and waits until the server has closed the stream. Received data is
    /// discarded. If the server sends more than 16 MiB, this side closes the stream.
    pub async fn abandon(mut self) -> io::Result<()> {
        self.stream.resume_reads()?;
        self.stream.shutdown_write()?;
        let (mut discarded, mut rest) = (0, [0; 4096]);
        while discarded < MAX_DISCARDED {
            match self.stream.read(&mut rest).await? {
                0 => break,
                some => discarded += some,
            }
        }
        Ok(())
    }

    /// The polling version of [`Channel::exchange`], without a deadline.
    pub fn poll_exchange(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let sending = self.is_sending();
        let sent = self.poll_send(cx)?.is_ready();
        if self.poll_receive(cx)?.is_ready() || (sending && sent) {
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }

    fn is_sending(&self) -> bool {
        self.unflushed || !self.outbound.is_empty()
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outbound.is_empty() {
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.outbound))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outbound.advance(written);
            self.unflushed = true;
        }
        if self.unflushed {
            ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
            self.unflushed = false;
            if self.outbound.capacity() > MAX_IDLE_CAPACITY {
                self.outbound = BytesMut::with_capacity(1024);
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // `read_buf` keeps no state between polls, so a new future for each poll is sufficient.
        let read = pin!(self.stream.read_buf(self.inbound.read_buffer()));
        match ready!(read.poll(cx))? {
            0 => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            _ => Poll::Ready(Ok(())),
        }
    }

    /// Whether PostgreSQL has closed the stream, or sent data that was not requested, since the
    /// last response. Reads the data into the receive buffer. Never blocks.
    pub fn is_readable(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.inbound.has_more() || self.poll_receive(&mut context).is_ready()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rustls::pki_types::PrivateKeyDer;
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::timeout;
    use tokio_rustls::TlsAcceptor;

    use super::*;
    use crate::config::{Config, TlsMode};

    fn acceptor() -> TlsAcceptor {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let server = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(server))
    }

    /// Sends data until the stream is closed, and never reads.
    async fn talk(mut tcp: TcpStream) -> io::Result<()> {
        let mut request = [0; 8];
        tcp.read_exact(&mut request).await?;
        tcp.write_all(b"S").await?;
        let mut tls = acceptor().accept(tcp).await?;
        loop {
            tls.write_all(&[0; 4096]).await?;
        }
    }

    #[tokio::test]
    async fn a_stream_is_abandoned_whose_other_side_only_talks() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("postgres://u:p@{}/d", listener.local_addr().unwrap());
        let config = Config::from_url(&url)
            .unwrap()
            .with_tls(TlsMode::Require, None);
        let server = tokio::spawn(async move { talk(listener.accept().await?.0).await });
        let mut channel = Channel::new(Stream::connect(&config, &config.targets[0]).await.unwrap());
        // The data is larger than all buffers, so only a part of it is sent.
        channel.outbound.resize(64 << 20, 0);
        let mut left = 0;
        while left != channel.outbound.len() {
            left = channel.outbound.len();
            let sent = poll_fn(|cx| channel.poll_send(cx));
            assert!(timeout(Duration::from_millis(300), sent).await.is_err());
        }
        let abandoned = timeout(Duration::from_secs(30), channel.abandon()).await;
        abandoned.expect("it waits for ever").unwrap();
        assert!(server.await.unwrap().is_err(), "it was told by the stream");
    }
}
