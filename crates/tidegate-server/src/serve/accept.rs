//! Accepts connections, and waits for them at shutdown.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;

use super::connection::{self, ConnectionContext};
use super::tls::Acceptor;
use super::{Certificate, Listener};
use tidegate_http::app::App;
use tidegate_http::forwarded::Peer;

/// How long the task waits after an error of `accept`. Such an error usually means that no file
/// descriptors are left.
const RECOVERY: Duration = Duration::from_millis(100);

/// The task of one listener and its connections.
pub(crate) struct ListenerTask {
    socket: TcpListener,
    acceptor: Option<Acceptor>,
    loopback: bool,
    operations: bool,
    app: App,
    slots: Arc<Semaphore>,
    connections: JoinSet<()>,
}

impl ListenerTask {
    pub(crate) fn new(listener: Listener, app: App, slots: Arc<Semaphore>) -> io::Result<Self> {
        Ok(Self {
            loopback: listener
                .socket
                .local_addr()?
                .ip()
                .to_canonical()
                .is_loopback(),
            operations: listener.operations,
            acceptor: listener.certificate.map(Certificate::into_acceptor),
            socket: listener.socket,
            app,
            slots,
            connections: JoinSet::new(),
        })
    }

    /// Accepts connections until the shutdown, and then waits until all connections have ended.
    pub(crate) async fn run(mut self) {
        let mut shutdown = self.app.shutdown();
        loop {
            tokio::select! {
                () = shutdown.ending() => break,
                Some(_) = self.connections.join_next() => {}
                accepted = accept(&self.socket, &self.slots) => match accepted {
                    Ok((stream, peer, slot)) => self.spawn(stream, peer.ip(), slot),
                    Err(error) if is_connection_error(&error) => {}
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept connections");
                        tokio::time::sleep(RECOVERY).await;
                    }
                },
            }
        }
        drop(self.socket);
        let drained = async { while self.connections.join_next().await.is_some() {} };
        let drain = self.app.limits().timeouts.drain;
        if tokio::time::timeout(drain, drained).await.is_err() {
            tracing::warn!(
                connections = self.connections.len(),
                "drain_timeout passed; cancelling remaining requests"
            );
            self.connections.shutdown().await;
        }
    }

    fn spawn(&mut self, stream: TcpStream, peer: std::net::IpAddr, slot: OwnedSemaphorePermit) {
        let context = ConnectionContext {
            app: self.app.clone(),
            peer: Peer {
                address: peer,
                encrypted: self.acceptor.is_some(),
                loopback: self.loopback,
            },
            operations: self.operations,
        };
        let acceptor = self.acceptor.clone();
        self.connections.spawn(async move {
            connection::serve(stream, acceptor, context).await;
            drop(slot);
        });
    }
}

/// Waits for a slot, and then accepts a connection. While there is no slot, new connections wait in
/// the queue of the operating system.
async fn accept(
    socket: &TcpListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(TcpStream, std::net::SocketAddr, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, peer) = socket.accept().await?;
    Ok((stream, peer, slot))
}

/// Whether the error concerns only the connection that was to be accepted.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}
