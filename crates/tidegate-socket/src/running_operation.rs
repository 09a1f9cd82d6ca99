//! The operations and subscriptions that run on a socket under an id, and the messages for the
//! events of subscriptions.

use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use serde_json::json;
use tidegate_feed::{Cursor, FieldError, Operation, Resync, Subscription};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::AbortHandle;

use super::handshake::Dialect;
use super::outgoing;
use super::subscribe::{resync_reason, write_field_errors};
use super::table_subscription::RawFrame;

/// A running operation or subscription. Dropping it aborts the operation and ends the subscription.
pub(super) struct RunningOperation {
    /// The number of the operation on this socket. A delivery has the number of its subscription.
    pub tag: u64,
    pub task: AbortHandle,
    /// The frame of a subscription. The subscription's task sets the frame before any event is
    /// delivered.
    pub frame: Arc<OnceLock<Framed>>,
    /// The subscription, once it has started. Dropping it ends the subscription.
    pub subscription: Option<Subscription>,
}

impl Drop for RunningOperation {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The frame of a subscription, and its permit. The number of permits limits the number of
/// subscriptions of a socket.
pub(super) struct Framed {
    pub frame: Frame,
    pub _slot: OwnedSemaphorePermit,
}

/// The form in which the events of a subscription are written.
pub(super) enum Frame {
    /// Each event is a message with a GraphQL response.
    GraphQl {
        dialect: Dialect,
        id: Box<str>,
        /// The text of an event's message before the row.
        before: Bytes,
        /// The response key of the root field, as JSON.
        key: Box<str>,
    },
    /// Each event is a message with a batch of a table's rows.
    Raw(RawFrame),
}

impl Frame {
    pub(super) fn graphql(dialect: Dialect, id: &str, key: &str) -> Self {
        let key = json!(key).to_string();
        let before = match dialect {
            Dialect::Tidegate => {
                format!("{{\"type\":\"subscription\",\"id\":{id},\"data\":{{{key}:[")
            }
            _ => format!("{{\"id\":{id},\"type\":\"next\",\"payload\":{{\"data\":{{{key}:["),
        };
        Self::GraphQl {
            dialect,
            id: id.into(),
            before: before.into(),
            key: key.into(),
        }
    }

    pub(super) fn acknowledged(&self, cursor: Cursor) -> Bytes {
        let text = match self {
            Self::GraphQl {
                dialect: Dialect::Tidegate,
                id,
                ..
            } => format!("{{\"type\":\"subscribe_ack\",\"id\":{id}}}"),
            // `graphql-transport-ws` has no message for an acknowledgement, but allows a pong with
            // any payload at any time.
            Self::GraphQl { id, .. } => format!(
                "{{\"type\":\"pong\",\"payload\":{{\"acknowledged\":{id},\"cursor\":\"{cursor}\"}}}}"
            ),
            Self::Raw(raw) => format!("{{\"type\":\"subscription_ack\",\"id\":{}}}", raw.id),
        };
        text.into()
    }

    pub(super) fn event(
        &self,
        (operation, cursor): (Operation, Cursor),
        row: &[u8],
        (field_errors, key): (Option<&[FieldError]>, Option<&[Box<str>]>),
    ) -> Bytes {
        let (dialect, before, name) = match self {
            Self::GraphQl {
                dialect,
                before,
                key: name,
                ..
            } => (dialect, before, &**name),
            Self::Raw(raw) => return raw.batch(&[(operation, row)], key, cursor),
        };
        let mut out = BytesMut::with_capacity(before.len() + row.len() + 64);
        out.put_slice(before);
        out.put_slice(row);
        out.put_slice(b"]}");
        write_field_errors(name, field_errors, &mut out);
        let end = match dialect {
            Dialect::Tidegate => format!(",\"cursor\":\"{cursor}\"}}"),
            _ => format!(",\"extensions\":{{\"cursor\":\"{cursor}\"}}}}}}"),
        };
        out.put_slice(end.as_bytes());
        out.freeze()
    }

    pub(super) fn resync(&self, reason: Resync, cursor: Cursor) -> Bytes {
        let reason = resync_reason(reason);
        let text = match self {
            Self::GraphQl { dialect, id, .. } if *dialect != Dialect::Tidegate => format!(
                "{{\"id\":{id},\"type\":\"next\",\"payload\":{{\"data\":null,\"extensions\":\
                 {{\"resync\":\"{reason}\",\"cursor\":\"{cursor}\"}}}}}}"
            ),
            _ => format!(
                "{{\"type\":\"resync\",\"id\":{},\"reason\":\"{reason}\",\"cursor\":\"{cursor}\"}}",
                self.id()
            ),
        };
        text.into()
    }

    /// Builds the message for an error that ended the subscription. The client can resume after
    /// `cursor`; `None` if it cannot resume.
    pub(super) fn ended(&self, code: &str, message: &str, cursor: Option<Cursor>) -> Bytes {
        let mut more = serde_json::Map::new();
        if let Some(cursor) = cursor {
            more.insert("cursor".to_owned(), json!(cursor.to_string()));
        }
        let dialect = match self {
            Self::GraphQl { dialect, .. } => *dialect,
            Self::Raw(_) => Dialect::Tidegate,
        };
        outgoing::error_with(dialect, Some(self.id()), code, message, more)
    }

    pub(super) fn id(&self) -> &str {
        match self {
            Self::GraphQl { id, .. } => id,
            Self::Raw(raw) => &raw.id,
        }
    }
}
