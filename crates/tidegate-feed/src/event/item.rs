//! What is delivered to a subscription.

use std::sync::Arc;

use bytes::Bytes;

use crate::event::cursor::Cursor;
use crate::event::operation::Operation;
use crate::event::selection::FieldError;

/// An item for one of the subscriptions of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The subscription: its [`crate::SubscribeRequest::tag`].
    pub subscription: u64,
    /// What is delivered.
    pub item: Item,
}

/// What is delivered to a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// Every later commit is delivered. Comes once, before anything else.
    Acknowledged {
        /// The position after which events come.
        cursor: Cursor,
    },
    /// A change.
    Event {
        /// The position of the change.
        cursor: Cursor,
        /// What happened.
        operation: Operation,
        /// The selected columns as a JSON object, in memory that equal selections share; `null` if a
        /// column that must not be null cannot be represented.
        row: Bytes,
        /// The values that could not be represented.
        field_errors: Option<Arc<[FieldError]>>,
        /// The columns of the primary key, if the selection asks for them and the key may have
        /// changed since the subscription began.
        key: Option<Arc<[Box<str>]>>,
    },
    /// There is a gap: the client must read the table again. Events continue after it.
    Resync {
        /// The position after which events continue.
        cursor: Cursor,
        /// Why.
        reason: Resync,
    },
    /// The last item of the subscription.
    Ended(Ended),
}

/// Why there is a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resync {
    /// The cursor is older than the retained log, or than the capture of the table.
    Expired,
    /// The cursor belongs to another log: the database was restored or failed over.
    OtherLog,
    /// Changes may be missing: the stream broke and its log is not retained, or the table was not
    /// captured for a while.
    Interrupted,
    /// The table was truncated.
    Truncated,
    /// A partition was attached, detached, dropped or truncated with its rows.
    Partitions,
    /// The log did not contain a value that the event needs.
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
        /// What changed, in words.
        problem: String,
    },
    /// The connection reads too slowly. This is the last delivery of the connection.
    SlowConsumer {
        /// The position up to which all subscriptions of the connection have got everything.
        cursor: Option<Cursor>,
    },
    /// The node is shutting down.
    Stopped,
}
