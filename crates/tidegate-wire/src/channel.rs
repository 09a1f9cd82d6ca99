//! A stream with a send buffer and a receive buffer. Received messages are read in the receive
//! buffer, without copying them.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::time::Instant;

use super::stream::Stream;

/// The length in bytes of a message's tag and length field together.
const HEADER: usize = 5;
/// The free space in bytes that the receive buffer gets for a read. The space is small, because
/// most responses fit into it, and because every idle connection keeps its buffer.
const READ: usize = 8 << 10;
/// The free space in bytes for a read if the previous read filled the buffer. A longer read saves
/// system calls for long responses.
const LONG_READ: usize = 32 << 10;
/// The maximum length in bytes of an accepted message. It equals the default of the setting
/// `response_limit`. With this default, a longer value fits only into a streamed response.
pub const MAX_MESSAGE: usize = 256 << 20;

/// A buffer that has grown to more than this number of bytes, for a long message, is freed when it
/// is empty.
const MAX_IDLE_CAPACITY: usize = 256 << 10;
/// The maximum number of bytes that are read from an abandoned stream and discarded. This is more
/// than the socket buffers can contain, so only a server that continues to send reaches it.
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
    /// During the wait, the content of the send buffer is sent. Both directions make progress at
    /// the same time, so that full buffers on both sides cannot cause a deadlock.
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
        let count = {
            let read = pin!(self.stream.read_buf(self.inbound.read_buffer()));
            ready!(read.poll(cx))?
        };
        if count == 0 {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        self.inbound.is_full = self.inbound.buffer.len() == self.inbound.buffer.capacity();
        Poll::Ready(Ok(()))
    }

    /// Whether PostgreSQL has closed the stream, or sent data that was not requested, since the
    /// last response. Reads the data into the receive buffer. Never blocks.
    pub fn is_readable(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        self.inbound.has_more() || self.poll_receive(&mut context).is_ready()
    }
}

/// The receive buffer.
#[derive(Debug, Default)]
pub struct Inbound {
    buffer: BytesMut,
    /// The offset of the current message. The messages before it are not removed from the buffer
    /// one by one, but all together when the buffer contains no further complete message.
    start: usize,
    /// The length of the current message including its header; 0 if there is no current message.
    current: usize,
    /// Whether the previous read filled the buffer. If it did, more data can probably be read.
    is_full: bool,
}

impl Inbound {
    /// Moves to the next message and returns its tag. Returns `None` if the next message has not
    /// arrived completely. Fails if its length is invalid.
    #[inline]
    pub fn advance(&mut self) -> io::Result<Option<u8>> {
        self.start += std::mem::take(&mut self.current);
        let rest = self.buffer.get(self.start..).unwrap_or_default();
        let Some((&[tag, a, b, c, d], _)) = rest.split_first_chunk::<HEADER>() else {
            self.buffer.advance(std::mem::take(&mut self.start));
            return Ok(None);
        };
        let length = usize::try_from(i32::from_be_bytes([a, b, c, d])).unwrap_or(0);
        if !(4..=MAX_MESSAGE).contains(&length) {
            let kind = if length > MAX_MESSAGE {
                io::ErrorKind::FileTooLarge
            } else {
                io::ErrorKind::InvalidData
            };
            return Err(io::Error::new(
                kind,
                format!(
                    "a message `{}` of {length} bytes",
                    char::from(tag).escape_default()
                ),
            ));
        }
        if rest.len() <= length {
            self.buffer.advance(std::mem::take(&mut self.start));
            self.buffer.reserve(length + 1 + READ - self.buffer.len());
            return Ok(None);
        }
        self.current = length + 1;
        Ok(Some(tag))
    }

    /// The body of the current message; empty if there is no current message.
    #[inline]
    pub fn body(&self) -> &[u8] {
        self.message().get(HEADER..).unwrap_or_default()
    }

    /// The current message with its tag and length.
    #[inline]
    pub fn message(&self) -> &[u8] {
        let end = self.start + self.current;
        self.buffer.get(self.start..end).unwrap_or_default()
    }

    /// The buffer, to which a read appends. It has free space for a read.
    pub fn read_buffer(&mut self) -> &mut BytesMut {
        let read = if self.is_full { LONG_READ } else { READ };
        let free = self.buffer.capacity() - self.buffer.len();
        // If the buffer is empty, `reserve` reuses its memory from the beginning, which costs
        // nothing.
        if self.buffer.is_empty() || free < read / 4 {
            self.buffer.reserve(read);
        }
        &mut self.buffer
    }

    /// Whether unread bytes follow the current message.
    pub fn has_more(&self) -> bool {
        self.buffer.len() > self.start + self.current
    }

    /// Frees a large buffer if no unread bytes follow the current message. Call it between
    /// statements.
    pub fn shrink(&mut self) {
        if self.buffer.capacity() > MAX_IDLE_CAPACITY && !self.has_more() {
            *self = Self::default();
        }
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

    /// Sends data until the stream is closed. Reads nothing after the TLS handshake.
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
        // The data is larger than all buffers, so one call sends only a part of it.
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

    #[test]
    fn messages_come_one_by_one_however_the_bytes_arrive() {
        let bytes = b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I";
        for cut in 0..bytes.len() {
            let (mut inbound, mut seen) = (Inbound::default(), Vec::new());
            for part in [&bytes[..cut], &bytes[cut..]] {
                inbound.read_buffer().extend_from_slice(part);
                while let Some(tag) = inbound.advance().unwrap() {
                    seen.push((tag, inbound.body().to_vec()));
                }
            }
            assert_eq!(
                seen,
                [(b'C', b"SELECT 1\0".to_vec()), (b'Z', b"I".to_vec())],
                "{cut}"
            );
            assert!(!inbound.has_more());
        }
    }

    /// The capacity after reads of these lengths, each of which ends a response.
    fn capacity_after(reads: impl IntoIterator<Item = usize>) -> usize {
        let mut inbound = Inbound::default();
        for length in reads {
            let buffer = inbound.read_buffer();
            let fits = length.min(buffer.capacity() - buffer.len());
            buffer.extend_from_slice(&vec![0; fits]);
            inbound.is_full = inbound.buffer.len() == inbound.buffer.capacity();
            inbound.buffer.advance(inbound.buffer.len());
        }
        inbound.read_buffer().capacity()
    }

    #[test]
    fn short_responses_keep_the_buffer_small_and_long_ones_get_long_reads() {
        assert_eq!(capacity_after((0..1000).map(|at| at * 7 % 5000)), READ);
        assert!(capacity_after([READ, 10]) > LONG_READ / 2);
    }

    #[test]
    fn a_length_that_cannot_be_is_an_error() {
        for length in [[0, 0, 0, 3], [0xff; 4], [0x7f, 0, 0, 0]] {
            let mut inbound = Inbound::default();
            inbound
                .read_buffer()
                .extend_from_slice(&[b'D', length[0], length[1], length[2], length[3]]);
            assert!(inbound.advance().is_err(), "{length:?}");
        }
    }
}
