//! TLS for tokio-postgres, with the same configuration as for users' connections.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tidegate_wire::{Config, ConnectError, TlsMode, tls};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Socket;
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;

/// Performs TLS handshakes as configured; `None` if TLS is disabled.
#[derive(Clone)]
pub(crate) struct Tls(Option<TlsConnector>);

impl Tls {
    /// Reads the certificates, unless TLS is disabled.
    pub(crate) fn new(config: &Config) -> Result<Self, ConnectError> {
        match config.tls {
            TlsMode::Disable => Ok(Self(None)),
            _ => tls::connector(config).map(|connector| Self(Some(connector))),
        }
    }
}

impl MakeTlsConnect<Socket> for Tls {
    type Stream = TlsSocket;
    type TlsConnect = Handshake;
    type Error = ConnectError;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, ConnectError> {
        Ok(Handshake {
            connector: self.0.clone(),
            host: host.to_owned(),
        })
    }
}

/// The TLS handshake with one host, before it starts.
pub(crate) struct Handshake {
    connector: Option<TlsConnector>,
    host: String,
}

impl TlsConnect<Socket> for Handshake {
    type Stream = TlsSocket;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<TlsSocket, ConnectError>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let disabled = || ConnectError::Tls("it is disabled".to_owned());
            let connector = self.connector.ok_or_else(disabled)?;
            let name = tls::server_name(&self.host)?;
            let secured = connector.connect(name, stream).await;
            secured
                .map(TlsSocket)
                .map_err(|error| ConnectError::Tls(error.to_string()))
        })
    }
}

pub(crate) struct TlsSocket(tokio_rustls::client::TlsStream<Socket>);

impl TlsStream for TlsSocket {
    fn channel_binding(&self) -> ChannelBinding {
        let (_, session) = self.0.get_ref();
        let certificate = session.peer_certificates().and_then(<[_]>::first);
        certificate
            .and_then(|certificate| tls::server_end_point(certificate))
            .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl AsyncRead for TlsSocket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl AsyncWrite for TlsSocket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
