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
    /// The subscription has started, and every later commit is delivered. This is always the first
    /// item of a subscription.
    Acknowledged {
        /// The position after which events are delivered.
        cursor: Cursor,
    },
    /// A change.
    Event {
        /// The position of the change.
        cursor: Cursor,
        /// The kind of change.
        operation: Operation,
        /// The selected columns as a JSON object. The text is `null` if a value cannot be
        /// represented and must not be null. Subscriptions with equal selections share the memory
        /// of the text.
        row: Bytes,
        /// The errors of values that cannot be represented; `None` if there are none.
        field_errors: Option<Arc<[FieldError]>>,
        /// The names of the columns of the primary key; `None` if the selection does not request
        /// them or the key is unknown.
        key: Option<Arc<[Box<str>]>>,
    },
    /// There is a gap, so the client must read the table again. Events continue after the gap.
    Resync {
        /// The position after which events continue.
        cursor: Cursor,
        /// The reason for the gap.
        reason: Resync,
    },
    /// The last item of the subscription.
    Ended(Ended),
}

/// The reason for a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resync {
    /// The client resumed after a cursor that is from before the retention window, or from before
    /// the capture of the table.
    Expired,
    /// The cursor or the earlier events belong to another change log, because the database was
    /// restored or failed over.
    OtherLog,
    /// Changes may be missing, because a broken stream could not be continued where it ended, or
    /// because the table was not captured for a while.
    Interrupted,
    /// The table was truncated.
    Truncated,
    /// A partition with rows was attached, detached, dropped or truncated.
    Partitions,
    /// A value that the filter or the event needs is missing in the change log, or is malformed
    /// there.
    Incomplete,
}

/// Why a subscription ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The role may no longer read the columns of the subscription, or PostgreSQL could not
    /// evaluate the role's policies.
    NotAllowed,
    /// For too long, the service was unable to check the privileges or policies of the role.
    Unverified,
    /// The table was dropped.
    NoTable,
    /// The table or its policies have changed, and the subscription cannot continue.
    Changed {
        /// A description of the change for the client.
        problem: String,
    },
    /// The client reads too slowly. This is the last delivery of the whole connection.
    SlowConsumer {
        /// The cursor after which every subscription of the connection can resume without a gap;
        /// `None` if no event or gap was queued and no subscription replays.
        cursor: Option<Cursor>,
    },
    /// The node is shutting down.
    Stopped,
}
