//! The start of a subscription: where it begins, and which task delivers its changes.

use std::sync::Arc;

use tokio::sync::Notify;

use crate::event::cursor::EventPosition;
use crate::event::item::Resync;

/// A connection that lags from now on and needs a reader.
#[derive(Debug)]
pub(crate) struct LaggingConnection {
    /// The id of the connection.
    pub(crate) connection: usize,
    /// The reader delivers the changes after this position.
    pub(crate) position: EventPosition,
    /// Wakes the reader.
    pub(crate) wake: Arc<Notify>,
}

/// Where a subscription starts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum StartAt {
    /// At the next commit.
    Now,
    /// After this position.
    After(EventPosition),
    /// At the next commit. A gap with this reason is reported first.
    Gap(Resync),
}

/// How a subscription that was just added gets its changes.
#[derive(Debug)]
pub(crate) enum Attached {
    /// No reader has to be started. The live reader pushes the changes, or the connection already
    /// lags and its reader delivers them, or the subscription has ended already.
    Live,
    /// The subscription's connection lags from now on. The calling function must start a reader for
    /// the connection.
    Lagging(LaggingConnection),
    /// The subscription needs a replay from this position. The calling function must start the
    /// replay.
    Replay(EventPosition),
}
