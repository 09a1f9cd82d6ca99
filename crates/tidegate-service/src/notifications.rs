//! Notifications between nodes, through the control database.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use tidegate_wire::backoff::{Backoff, Jitter};
use tidegate_wire::{Config, ConnectError};
use tokio::sync::broadcast;
use tokio::time::Instant;
use tokio_postgres::AsyncMessage;
use tracing::{debug, info, warn};

use super::connect::{CONTROL, connect};
use super::service_pool::ServiceCircuitBreaker;

/// The `NOTIFY` channel on which nodes notify each other.
pub const CHANNEL: &str = "tidegate";
/// The longest delay between attempts to listen again. It is short for two reasons. A node that
/// does not listen uses stale caches. And when this connection opens after an outage, the circuit
/// breaker immediately allows the other service connections again.
const MAX_RECONNECT_DELAY: Duration = Duration::from_millis(500);
/// The interval at which an outage that lasts is logged again.
const LOG_INTERVAL: Duration = Duration::from_secs(30);

/// An item for receivers of notifications.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notification {
    /// Listening has started, for the first time or again. Earlier notifications may have been
    /// missed, so caches that depend on notifications must be invalidated.
    Listening,
    /// The payload of a node's notification.
    Received(Arc<str>),
}

/// Listens, and connects again when the connection ends. Runs until the task is aborted.
pub(super) async fn listen(
    config: Arc<Config>,
    circuit_breaker: Arc<ServiceCircuitBreaker>,
    jitter: Jitter,
    notifications: broadcast::Sender<Notification>,
) {
    let mut backoff = Backoff::new(jitter);
    // The time at which the current outage was last logged; `None` while the node listens.
    let mut logged_at: Option<Instant> = None;
    loop {
        let attempt = connect(&config, &config.control_database, CONTROL).await;
        let outcome = match attempt {
            Ok((client, connection)) => {
                forward(&client, connection, &notifications, || {
                    backoff.succeed();
                    circuit_breaker.succeeded();
                    if logged_at.take().is_some() {
                        info!("listening for notifications again");
                    }
                })
                .await
            }
            Err(error) => Err(error),
        };
        let is_due = logged_at.is_none_or(|at| at.elapsed() >= LOG_INTERVAL);
        if let Err(error) = outcome
            && is_due
        {
            let cause = std::error::Error::source(&error).map(tracing::field::display);
            warn!(%error, cause, "cannot LISTEN for notifications; retrying");
            logged_at = Some(Instant::now());
        }
        tokio::time::sleep(backoff.fail().min(MAX_RECONNECT_DELAY)).await;
    }
}

/// Forwards notifications until the connection ends.
async fn forward(
    client: &tokio_postgres::Client,
    mut connection: tokio_postgres::Connection<tokio_postgres::Socket, super::tls::TlsSocket>,
    notifications: &broadcast::Sender<Notification>,
    mut connected: impl FnMut(),
) -> Result<(), ConnectError> {
    let mut messages = poll_fn(move |cx| connection.poll_message(cx));
    let mut begin = std::pin::pin!(client.batch_execute("LISTEN tidegate"));
    let mut listening = false;
    loop {
        tokio::select! {
            started = &mut begin, if !listening => {
                started.map_err(|error| super::error::of_connection(&error))?;
                listening = true;
                connected();
                // Sending fails only if there is no receiver yet.
                drop(notifications.send(Notification::Listening));
            }
            message = messages.next() => match message {
                // A notification before `Listening` is ignored, because `Listening` makes the
                // receivers invalidate their caches.
                Some(Ok(AsyncMessage::Notification(_))) if !listening => {}
                Some(Ok(AsyncMessage::Notification(message))) => {
                    drop(notifications.send(Notification::Received(message.payload().into())));
                }
                Some(Ok(other)) => debug!(?other, "ignored a message that is not a notification"),
                Some(Err(error)) => return Err(super::error::of_connection(&error)),
                None => return Ok(()),
            }
        }
    }
}
