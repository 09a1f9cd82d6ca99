//! The requests and handles of subscriptions.

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
    /// The role whose privileges and policies apply, and the role's database.
    pub login: Login,
    /// A number that identifies the subscription within its connection. Each delivery of the
    /// subscription carries this number.
    pub tag: u64,
    /// The OID of the table.
    pub relation: u32,
    /// The operations that are delivered.
    pub operations: Operations,
    /// The contents of events.
    pub selection: Selection,
    /// The filter for rows; `None` for all rows.
    pub predicate: Option<Predicate>,
    /// The cursor after which to resume; `None` to get only the changes of later commits.
    pub after: Option<Cursor>,
}

/// A running subscription. Dropping it ends the subscription.
pub struct Subscription {
    hub: Arc<SharedHub>,
    subscriber: Arc<Subscriber>,
}

impl Subscription {
    pub(super) fn new(hub: Arc<SharedHub>, subscriber: Arc<Subscriber>) -> Self {
        Self { hub, subscriber }
    }

    /// Whether the subscription has ended. In that case nothing more is delivered.
    pub fn is_ended(&self) -> bool {
        self.subscriber.is_ended()
    }

    /// Closes the queue of the connection, because its client does not read. The last item in the
    /// queue is [`crate::Ended::SlowConsumer`].
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
