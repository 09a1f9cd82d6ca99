//! What the nodes tell each other through the control database.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use tidegate_wire::backoff::{Backoff, Jitter};
use tidegate_wire::{Config, ConnectError};
use tokio::sync::broadcast;
use tokio_postgres::AsyncMessage;
use tracing::{debug, warn};

use super::connect::{CONTROL, connect};
use super::link::Reach;

/// The channel of the notices.
pub const CHANNEL: &str = "tidegate";
/// The longest pause between attempts to listen again: a node that does not listen serves from
/// stale caches.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// Listening has begun, for the first time or again. Earlier notifications are lost, so caches
    /// that depend on them must be invalidated.
    Listening,
    /// What a node said.
    Said(Arc<str>),
}

/// Listens for as long as anybody holds the sender's channel open.
pub(super) async fn listen(
    config: Arc<Config>,
    reach: Arc<Reach>,
    jitter: Jitter,
    notices: broadcast::Sender<Notice>,
) {
    let mut backoff = Backoff::new(jitter);
    loop {
        let attempt = connect(&config, &config.control_database, CONTROL).await;
        let outcome = match attempt {
            Ok((client, connection)) => {
                hear(&client, connection, &notices, || {
                    backoff.succeed();
                    reach.succeeded();
                })
                .await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = outcome {
            warn!(%error, cause = ?std::error::Error::source(&error), "cannot LISTEN for notifications; retrying");
        }
        tokio::time::sleep(backoff.fail().min(LONGEST_PAUSE)).await;
    }
}

/// Passes on what is said until the connection ends.
async fn hear(
    client: &tokio_postgres::Client,
    mut connection: tokio_postgres::Connection<tokio_postgres::Socket, super::tls::Secured>,
    notices: &broadcast::Sender<Notice>,
    mut connected: impl FnMut(),
) -> Result<(), ConnectError> {
    let mut messages = poll_fn(move |cx| connection.poll_message(cx));
    let mut begin = std::pin::pin!(client.batch_execute("LISTEN tidegate"));
    let mut listening = false;
    loop {
        tokio::select! {
            started = &mut begin, if !listening => {
                started.map_err(|error| super::refusal::of_connection(&error))?;
                listening = true;
                connected();
                // There may be no receiver yet.
                drop(notices.send(Notice::Listening));
            }
            message = messages.next() => match message {
                Some(Ok(AsyncMessage::Notification(said))) => {
                    drop(notices.send(Notice::Said(said.payload().into())));
                }
                Some(Ok(other)) => debug!(?other, "a message that is no notice"),
                Some(Err(error)) => return Err(super::refusal::of_connection(&error)),
                None => return Ok(()),
            }
        }
    }
}
