//! The items that are delivered to a subscription.

use std::sync::Arc;

use bytes::Bytes;

use crate::event::cursor::Cursor;
use crate::event::operation::Operation;
use crate::event::selection::FieldError;

/// An item for one of the subscriptions of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The [`crate::SubscribeRequest::tag`] of the subscription.
    pub subscription: u64,
    /// The item.
    pub item: Item,
}

/// An item that is delivered to a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// The subscription has started, and every later commit is delivered. This is the first item,
    /// and comes once.
    Acknowledged {
        /// The position after which events come.
        cursor: Cursor,
    },
    /// A change.
    Event {
        /// The position of the change.
        cursor: Cursor,
        /// The kind of change.
        operation: Operation,
        /// The selected columns as a JSON object, which shares memory among equal selections. It is
        /// `null` if a column that must not be null cannot be represented.
        row: Bytes,
        /// The values that could not be represented.
        field_errors: Option<Arc<[FieldError]>>,
        /// The columns of the primary key, if the selection requests them and the key may have
        /// changed since the subscription began.
        key: Option<Arc<[Box<str>]>>,
    },
    /// There is a gap, so the client must read the table again. Events continue after the gap.
    Resync {
        /// The position after which events continue.
        cursor: Cursor,
        /// The reason of the gap.
        reason: Resync,
    },
    /// The last item of the subscription.
    Ended(Ended),
}

/// The reason of a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resync {
    /// The cursor is older than the retention window, or than the capture of the table.
    Expired,
    /// The cursor belongs to another change log, because the database was restored or failed over.
    OtherLog,
    /// Changes may be missing, because the stream broke without a retention window or the table was
    /// not captured for a while.
    Interrupted,
    /// The table was truncated.
    Truncated,
    /// A partition was attached, detached, dropped or truncated with its rows.
    Partitions,
    /// The change log did not contain a value that the event needs.
    Incomplete,
}

/// Why a subscription ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The role may no longer read the columns.
    NotAllowed,
    /// The table was dropped.
    NoTable,
    /// The table was changed so that the subscription cannot continue.
    Changed {
        /// The change in words for the client.
        problem: String,
    },
    /// The client reads too slowly. This is the last delivery of the connection.
    SlowConsumer {
        /// The position up to which all subscriptions of the connection have received everything.
        cursor: Option<Cursor>,
    },
    /// The node is shutting down.
    Stopped,
}
