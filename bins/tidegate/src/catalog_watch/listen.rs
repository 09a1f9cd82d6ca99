//! Listens to the notifications of a database about changed definitions.

use std::sync::Arc;
use std::time::Duration;

use tidegate_service::{ListenEnd, ServiceConnections};
use tidegate_sql::DatabaseName;
use tokio::sync::mpsc;

/// The time until listening to a database is tried again, if the database has no event trigger or
/// listening has ended. Until then, the database is only polled. The time is long, because each
/// attempt needs a login.
const LISTEN_RETRY: Duration = Duration::from_mins(10);
/// The time until listening to a database is tried again, if no service connection was free for it.
/// Until then, the database is only polled.
const NO_CONNECTION_RETRY: Duration = Duration::from_secs(10);

/// An event that the listener of a database reports.
pub(super) enum ListenerEvent {
    /// Listening has begun, or a definition has changed.
    Notified,
    /// The database does not send notifications, or listening has ended.
    Silent,
    /// No service connection is free for listening.
    NoConnection,
}

/// Listens to a database, and tries again whenever listening ends. Sends the events of the listener
/// to `event_sender`.
pub(super) async fn listen(
    control: Arc<ServiceConnections>,
    database: DatabaseName,
    event_sender: mpsc::UnboundedSender<(DatabaseName, ListenerEvent)>,
) {
    loop {
        let on_notification = |_| {
            // An error means that the receiver was dropped because the watch ended.
            drop(event_sender.send((database.clone(), ListenerEvent::Notified)));
        };
        let end = control.ddl_notifications(&database, on_notification).await;
        if matches!(end, Ok(ListenEnd::LimitReached)) {
            drop(event_sender.send((database.clone(), ListenerEvent::NoConnection)));
            tokio::time::sleep(NO_CONNECTION_RETRY).await;
            continue;
        }
        if !matches!(end, Ok(ListenEnd::NoTrigger)) {
            tracing::debug!(%database, ?end, "listening for definitions ended; polling the database");
        }
        drop(event_sender.send((database.clone(), ListenerEvent::Silent)));
        tokio::time::sleep(LISTEN_RETRY).await;
    }
}
