//! Subscriptions as callers hold them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_sql::Login;

use crate::dispatch::predicate::Predicate;
use crate::dispatch::shared_hub::SharedHub;
use crate::dispatch::subscriber::Subscriber;
use crate::event::cursor::Cursor;
use crate::event::operation::Operations;
use crate::event::selection::Selection;

/// A request to subscribe to the changes of a table.
#[derive(Clone, Debug)]
pub struct SubscribeRequest {
    /// The role whose privileges and policies apply, and its database.
    pub login: Login,
    /// Identifies the subscription within its connection; each delivery has it.
    pub tag: u64,
    /// The oid of the table.
    pub relation: u32,
    /// Which operations are delivered.
    pub operations: Operations,
    /// What events contain.
    pub selection: Selection,
    /// Which rows are delivered; all if absent.
    pub predicate: Option<Predicate>,
    /// Where to resume: events after this position are delivered.
    pub after: Option<Cursor>,
}

/// A subscription; it ends when this is dropped.
pub struct Subscription {
    hub: Arc<SharedHub>,
    subscriber: Arc<Subscriber>,
}

impl Subscription {
    pub(super) fn new(hub: Arc<SharedHub>, subscriber: Arc<Subscriber>) -> Self {
        Self { hub, subscriber }
    }

    /// Whether nothing is delivered any more.
    pub fn is_ended(&self) -> bool {
        self.subscriber.is_ended()
    }

    /// Closes the queue of the connection, because its client does not read. The last item in the
    /// queue is [`crate::Ended::SlowConsumer`] then.
    pub fn close_slow(&self) {
        self.subscriber.close_slow();
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.subscriber.ended.store(true, Ordering::Release);
        self.hub.detach(&self.subscriber);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("subscriber", &self.subscriber.id)
            .finish_non_exhaustive()
    }
}
