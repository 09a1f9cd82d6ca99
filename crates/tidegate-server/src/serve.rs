//! The accept loop: what hyper leaves to its user.
//!
//! hyper's own timers would count the idle time of a connection as time of the next head, and none
//! of them covers the first byte or a peer that does not read. So each connection counts what it
//! reads and writes ([`activity`]), and its task looks at the counters from time to time.

mod accept;
mod activity;
mod connection;
mod disconnect;
mod http1_errors;
mod stall;
mod tls;
mod unread;

use std::future::Future;
use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use tidegate_http::app::App;

pub use tls::{Certificate, CertificateError};

/// How many connections a listener for operators has.
const OPERATORS: usize = 64;

/// A socket to accept connections on.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    certificate: Option<Certificate>,
    operations: bool,
}

impl Listener {
    /// Speaks HTTP. Credentials are taken only on a loopback address, behind a trusted proxy that
    /// took them over HTTPS, or when the app says `insecure_http`.
    pub fn plain(socket: TcpListener) -> Self {
        Self {
            socket,
            certificate: None,
            operations: false,
        }
    }

    /// Speaks HTTP to operators: `/metrics`, `/healthz` and `/readyz`, and nothing else.
    pub fn operations(socket: TcpListener) -> Self {
        Self {
            operations: true,
            ..Self::plain(socket)
        }
    }

    /// Speaks HTTPS.
    pub fn tls(socket: TcpListener, certificate: Certificate) -> Self {
        Self {
            socket,
            certificate: Some(certificate),
            operations: false,
        }
    }
}

/// Serves `app` on all `listeners` until `shutdown` is over; then stops to accept, lets requests in
/// flight end within the time that the limits give them, and cancels the rest.
///
/// # Errors
///
/// Fails when a listener has no local address, which means that it is no socket any more.
pub async fn serve(
    listeners: Vec<Listener>,
    app: App,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let (stop, stopped) = watch::channel(false);
    let places = Arc::new(Semaphore::new(app.limits().connections));
    let mut accepting = JoinSet::new();
    for listener in listeners {
        // Operators get in also when callers hold every place.
        let places = if listener.operations {
            Arc::new(Semaphore::new(OPERATORS))
        } else {
            Arc::clone(&places)
        };
        let door = accept::Door::new(listener, app.clone(), places, stopped.clone())?;
        accepting.spawn(door.run());
    }
    shutdown.await;
    app.drain();
    tracing::info!("shutting down; waiting for requests in progress");
    stop.send_replace(true);
    while accepting.join_next().await.is_some() {}
    Ok(())
}
