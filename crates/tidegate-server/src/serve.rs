//! Accepts connections and serves them with hyper.
//!
//! hyper's own timers are not used. They count the idle time of a connection as part of the time
//! for the next head. They do not cover the wait for the first byte, and do not detect a client
//! that stops reading. So each connection counts the bytes that it reads and writes ([`activity`]),
//! and its task checks the counters periodically.

mod accept;
mod activity;
mod connection;
mod http1_errors;
mod request;
mod stall;
mod tls;

use std::future::Future;
use std::io;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use tidegate_http::app::App;

pub use tls::{Certificate, CertificateError};

/// The maximum number of connections that a listener for operators serves at the same time.
const MAX_OPERATOR_CONNECTIONS: usize = 64;

/// A socket that accepts connections, and the way to serve them.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    certificate: Option<Certificate>,
    operations: bool,
}

impl Listener {
    /// A listener that serves HTTP. Credentials are accepted only on a loopback address, behind a
    /// trusted proxy that received them over HTTPS, or with `insecure_http`.
    pub fn plain(socket: TcpListener) -> Self {
        Self {
            socket,
            certificate: None,
            operations: false,
        }
    }

    /// A listener that serves HTTP to operators: only `/metrics`, `/healthz` and `/readyz`.
    pub fn operations(socket: TcpListener) -> Self {
        Self {
            operations: true,
            ..Self::plain(socket)
        }
    }

    /// A listener that serves HTTPS.
    pub fn tls(socket: TcpListener, certificate: Certificate) -> Self {
        Self {
            socket,
            certificate: Some(certificate),
            operations: false,
        }
    }
}

/// Serves `app` on all `listeners` until `shutdown` completes. Then stops accepting connections,
/// gives requests in progress the drain timeout to end, and cancels requests that have not ended in
/// this time. `shutdown` may announce the shutdown before it completes, with
/// [`App::announce_shutdown`].
///
/// # Errors
///
/// If a listener has no local address.
pub async fn serve(
    listeners: Vec<Listener>,
    app: App,
    shutdown: impl Future<Output = ()>,
) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(app.limits().connections));
    let mut accepting = JoinSet::new();
    for listener in listeners {
        // A listener for operators has a limit of its own, so that operators are served even if
        // clients use all connections.
        let slots = if listener.operations {
            Arc::new(Semaphore::new(MAX_OPERATOR_CONNECTIONS))
        } else {
            Arc::clone(&slots)
        };
        let task = accept::ListenerTask::new(listener, app.clone(), slots)?;
        accepting.spawn(task.run());
    }
    shutdown.await;
    tracing::info!("shutting down; waiting for requests in progress");
    app.begin_end();
    while accepting.join_next().await.is_some() {}
    Ok(())
}
