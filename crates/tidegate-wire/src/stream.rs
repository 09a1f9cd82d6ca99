//! The byte stream that carries the protocol: TCP, TLS over TCP, or a Unix socket.

use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::client::TlsStream;

use super::tls;
use crate::config::{Config, Target, TlsMode};
use crate::connect_error::ConnectError;

/// The TCP keepalive settings, which detect within half a minute that the server of an idle
/// connection has disappeared without closing it.
const KEEPALIVE: TcpKeepalive = TcpKeepalive::new()
    .with_time(Duration::from_secs(15))
    .with_interval(Duration::from_secs(5))
    .with_retries(3);

/// A connected stream.
pub enum Stream {
    /// Plain TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// TLS over TCP.
    Tls(Box<TlsStream<TcpStream>>),
    /// A stream that is not registered for readiness; see [`Stream::pause_reads`].
    Paused(PausedStream),
}

/// A stream that is not registered for readiness.
#[derive(Debug)]
pub enum PausedStream {
    /// Plain TCP.
    Tcp(std::net::TcpStream),
    /// A Unix socket.
    Unix(std::os::unix::net::UnixStream),
    /// The stream is closed, because registering or deregistering it failed.
    Lost,
}

impl std::fmt::Debug for Stream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tcp(_) => "Tcp",
            Self::Unix(_) => "Unix",
            Self::Tls(_) => "Tls",
            Self::Paused(_) => "Paused",
        })
    }
}

impl Stream {
    /// Connects to one of the configured targets, with the configured TLS mode.
    pub async fn connect(config: &Config, target: &Target) -> Result<Self, ConnectError> {
        let (host, port) = match target {
            Target::Unix { directory, port } => {
                let path = directory.join(format!(".s.PGSQL.{port}"));
                let stream = UnixStream::connect(path)
                    .await
                    .map_err(ConnectError::Unreachable)?;
                return Ok(Self::Unix(stream));
            }
            Target::Tcp { host, port } => (host, *port),
        };
        let tcp = open_tcp(host, port).await?;
        if config.tls == TlsMode::Disable {
            return Ok(Self::Tcp(tcp));
        }
        match Self::encrypt(config, host, tcp).await {
            Err(ConnectError::Tls(reason)) if config.tls == TlsMode::Prefer => {
                tracing::debug!(reason, "TLS failed; connecting to PostgreSQL without it");
                Ok(Self::Tcp(open_tcp(host, port).await?))
            }
            other => other,
        }
    }

    /// Encrypts the stream (PostgreSQL, "SSL Session Encryption"). If the server does not support
    /// TLS, returns the stream unencrypted with [`TlsMode::Prefer`], and fails with other modes.
    async fn encrypt(
        config: &Config,
        host: &str,
        mut tcp: TcpStream,
    ) -> Result<Self, ConnectError> {
        let mut request = BytesMut::with_capacity(8);
        postgres_protocol::message::frontend::ssl_request(&mut request);
        tcp.write_all(&request)
            .await
            .map_err(ConnectError::Unreachable)?;
        // Exactly one byte is read. If an attacker has injected unencrypted data after it, this
        // data reaches the TLS handshake, which then fails.
        match tcp.read_u8().await.map_err(ConnectError::Unreachable)? {
            b'S' => {}
            _ if config.tls == TlsMode::Prefer => return Ok(Self::Tcp(tcp)),
            _ => return Err(ConnectError::Tls("the server has none".to_owned())),
        }
        let connector = tls::connector(config)?;
        let name = tls::server_name(host)?;
        let stream = connector
            .connect(name, tcp)
            .await
            .map_err(|error| ConnectError::Tls(error.to_string()))?;
        Ok(Self::Tls(Box::new(stream)))
    }

    /// The channel binding data for SCRAM (RFC 5929, `tls-server-end-point`); `None` if the stream
    /// is not encrypted or the certificate has no suitable hash function.
    pub fn server_end_point(&self) -> Option<Vec<u8>> {
        match self {
            Self::Tls(stream) => {
                let certificate = stream.get_ref().1.peer_certificates()?.first()?;
                tls::server_end_point(certificate)
            }
            _ => None,
        }
    }

    /// Whether the stream is encrypted, or a Unix socket. In both cases its data cannot be read on
    /// the network.
    pub fn is_encrypted_or_local(&self) -> bool {
        !matches!(self, Self::Tcp(_) | Self::Paused(PausedStream::Tcp(_)))
    }

    /// Deregisters the stream from readiness events, because each wake-up costs CPU time in this
    /// process and in PostgreSQL. Reads and writes then fail until [`Stream::resume_reads`] is
    /// called. Does nothing for an encrypted stream.
    pub fn pause_reads(&mut self) -> io::Result<()> {
        *self = match std::mem::replace(self, Self::Paused(PausedStream::Lost)) {
            Self::Tcp(stream) => Self::Paused(PausedStream::Tcp(stream.into_std()?)),
            Self::Unix(stream) => Self::Paused(PausedStream::Unix(stream.into_std()?)),
            other => other,
        };
        Ok(())
    }

    /// Limits how long sent data may be unacknowledged. Without a limit, a connection with
    /// unacknowledged data stays open for a quarter of an hour after its server has disappeared.
    ///
    /// The limit also ends a connection with unsent data if the server does not read for this time.
    /// A backend does not read while it runs a statement. So do not set the limit on a connection
    /// on which statements are sent before earlier statements have ended.
    ///
    /// The limit has an effect only on Linux, and not on Unix sockets or paused streams.
    pub fn limit_unacknowledged(&self, limit: Duration) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        match self {
            Self::Tcp(stream) => SockRef::from(stream).set_tcp_user_timeout(Some(limit))?,
            Self::Tls(stream) => {
                SockRef::from(stream.get_ref().0).set_tcp_user_timeout(Some(limit))?;
            }
            Self::Unix(_) | Self::Paused(_) => {}
        }
        #[cfg(not(target_os = "linux"))]
        let _ = limit;
        Ok(())
    }

    /// Shuts down sending on the socket, below TLS, without waiting. A TLS `close_notify` would
    /// wait until the server accepts data, and the server does not accept data before this side
    /// reads.
    pub fn shutdown_write(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => SockRef::from(stream).shutdown(Shutdown::Write),
            Self::Unix(stream) => SockRef::from(stream).shutdown(Shutdown::Write),
            Self::Tls(stream) => SockRef::from(stream.get_ref().0).shutdown(Shutdown::Write),
            Self::Paused(_) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Registers the stream again after [`Stream::pause_reads`].
    pub fn resume_reads(&mut self) -> io::Result<()> {
        if !matches!(self, Self::Paused(_)) {
            return Ok(());
        }
        *self = match std::mem::replace(self, Self::Paused(PausedStream::Lost)) {
            Self::Paused(PausedStream::Tcp(stream)) => Self::Tcp(TcpStream::from_std(stream)?),
            Self::Paused(PausedStream::Unix(stream)) => Self::Unix(UnixStream::from_std(stream)?),
            other => other,
        };
        Ok(())
    }
}

async fn open_tcp(host: &str, port: u16) -> Result<TcpStream, ConnectError> {
    let stream = TcpStream::connect((host, port))
        .await
        .map_err(ConnectError::Unreachable)?;
    let set = stream.set_nodelay(true);
    set.and_then(|()| SockRef::from(&stream).set_tcp_keepalive(&KEEPALIVE))
        .map_err(ConnectError::Unreachable)?;
    Ok(stream)
}

macro_rules! each {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Tcp($stream) => $call,
            Stream::Unix($stream) => $call,
            Stream::Tls($stream) => $call,
            Stream::Paused(_) => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(cx, buffer))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(cx, bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }
}
