//! Accepting connections, and seeing them out.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use super::connection::{self, ConnectionContext};
use super::tls::Acceptor;
use super::{Certificate, Listener};
use tidegate_http::app::App;
use tidegate_http::forwarded::Peer;

/// How long to wait when the process cannot accept, which is when it has no file descriptors left.
const RECOVERY: Duration = Duration::from_millis(100);

/// One listener and the connections that came through it.
pub(crate) struct Door {
    socket: TcpListener,
    acceptor: Option<Acceptor>,
    loopback: bool,
    operations: bool,
    app: App,
    places: Arc<Semaphore>,
    stopped: watch::Receiver<bool>,
    connections: JoinSet<()>,
}

impl Door {
    pub(crate) fn new(
        listener: Listener,
        app: App,
        places: Arc<Semaphore>,
        stopped: watch::Receiver<bool>,
    ) -> io::Result<Self> {
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
            places,
            stopped,
            connections: JoinSet::new(),
        })
    }

    /// Accepts until the service stops, then sees the connections out.
    pub(crate) async fn run(mut self) {
        let mut stopped = self.stopped.clone();
        loop {
            tokio::select! {
                // Dropping the sender means the same as the word.
                _ = stopped.changed() => break,
                Some(_) = self.connections.join_next() => {}
                accepted = accept(&self.socket, &self.places) => match accepted {
                    Ok((stream, peer, place)) => self.welcome(stream, peer.ip(), place),
                    Err(error) if is_of_one_connection(&error) => {}
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

    fn welcome(&mut self, stream: TcpStream, peer: std::net::IpAddr, place: OwnedSemaphorePermit) {
        let context = ConnectionContext {
            app: self.app.clone(),
            peer: Peer {
                address: peer,
                encrypted: self.acceptor.is_some(),
                loopback: self.loopback,
            },
            operations: self.operations,
            stopped: self.stopped.clone(),
        };
        let acceptor = self.acceptor.clone();
        self.connections.spawn(async move {
            connection::serve(stream, acceptor, context).await;
            drop(place);
        });
    }
}

/// Waits for a place first: when there is none, connections wait in the system's queue.
async fn accept(
    socket: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, std::net::SocketAddr, OwnedSemaphorePermit)> {
    let place = Arc::clone(places)
        .acquire_owned()
        .await
        .map_err(io::Error::other)?;
    let (stream, peer) = socket.accept().await?;
    Ok((stream, peer, place))
}

/// Whether only the connection that was to be accepted is lost.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    )
}
