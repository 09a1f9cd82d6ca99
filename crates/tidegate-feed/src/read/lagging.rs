//! Reads the ring at the pace of a connection whose queue was full, or for which PostgreSQL has to
//! apply row level security. The reader delivers the events of all lagging subscriptions of the
//! connection together, in the order of the commits.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::decode::change::RowChange;
use crate::dispatch::attachment::LaggingConnection;
use crate::dispatch::backlog::BacklogRead;
use crate::dispatch::connection::ConnectionSubscriber;
use crate::dispatch::shared_hub::SharedHub;
use crate::dispatch::subscriber::{ChangeOutcome, SchemaBinding, Subscriber};
use crate::event::cursor::{Cursor, EventPosition};
use crate::event::item::Item;
use crate::read::delivery::{self, SubscriptionEnded};

/// Starts a task that reads for a lagging connection until the connection is live again or has
/// ended.
pub(crate) fn spawn(hub: Arc<SharedHub>, lagging: LaggingConnection) {
    let reader = LaggingReader {
        hub,
        connection: lagging.connection,
        wake: lagging.wake,
        bindings: HashMap::new(),
    };
    tokio::spawn(reader.run(lagging.position));
}

struct LaggingReader {
    hub: Arc<SharedHub>,
    connection: usize,
    wake: Arc<Notify>,
    /// Each subscription's binding to the schema of the change that was most recently evaluated for
    /// it. The key is the id of the subscription.
    bindings: HashMap<u64, Option<SchemaBinding>>,
}

/// An event or a gap that is to be delivered.
struct PendingEvent {
    subscriber: Arc<Subscriber>,
    change: Arc<RowChange>,
    outcome: ChangeOutcome,
}

impl LaggingReader {
    async fn run(mut self, mut position: EventPosition) {
        loop {
            let next = self.hub.read_lagging(self.connection, &self.wake, position);
            match next {
                BacklogRead::Changes(members, changes, reached) => {
                    let pending = self.evaluate(&members, &changes);
                    self.deliver(pending).await;
                    position = reached;
                }
                BacklogRead::Gap(subscriber, gap, reached) => {
                    let cursor = self.hub.cursor(gap.position);
                    let reason = gap.reason;
                    subscriber.push_unbounded(Item::Resync { cursor, reason });
                    position = reached;
                }
                BacklogRead::CaughtUp(reached) => {
                    position = reached;
                    // If a notification has arrived since the ring was read, this wait ends
                    // immediately, so no change is missed.
                    self.wake.notified().await;
                }
                BacklogRead::Lost(members) => {
                    for ConnectionSubscriber { subscriber, .. } in members {
                        subscriber.close_slow();
                        self.hub.detach(&subscriber);
                    }
                }
                BacklogRead::Ended => return,
            }
        }
    }

    /// Evaluates changes for the subscriptions, in the order of the changes.
    fn evaluate(
        &mut self,
        members: &[ConnectionSubscriber],
        changes: &[Arc<RowChange>],
    ) -> Vec<PendingEvent> {
        let mut all = Vec::new();
        let is_member = |id: &u64| members.iter().any(|one| one.subscriber.id == *id);
        self.bindings.retain(|id, _| is_member(id));
        for change in changes {
            for ConnectionSubscriber {
                subscriber, since, ..
            } in members
            {
                let is_due = subscriber.relation == change.schema.oid && change.position > *since;
                if !is_due || subscriber.is_ended() {
                    continue;
                }
                let binding = self.bindings.entry(subscriber.id).or_default();
                match delivery::evaluate(subscriber, binding, change, *since) {
                    Ok(ChangeOutcome::Nothing) => {}
                    Ok(outcome) => all.push(PendingEvent {
                        subscriber: subscriber.clone(),
                        change: change.clone(),
                        outcome,
                    }),
                    Err(SubscriptionEnded) => self.hub.detach(subscriber),
                }
            }
        }
        all
    }

    async fn deliver(&self, pending: Vec<PendingEvent>) {
        let hidden = self.hidden(&pending).await;
        let log = self.hub.log_identity();
        for (pending, hidden) in pending.into_iter().zip(hidden) {
            let cursor = Cursor::new(log, pending.change.position);
            let Some(item) = pending.outcome.item(cursor).filter(|_| !hidden) else {
                continue;
            };
            if delivery::push(&pending.subscriber, item).await.is_err() {
                self.hub.detach(&pending.subscriber);
            }
        }
    }

    /// Returns for each event whether row level security hides it. All changes for a subscription
    /// are checked in one query. If the query fails, the subscription ends and its events are
    /// hidden.
    async fn hidden(&self, pending: &[PendingEvent]) -> Vec<bool> {
        let mut hidden = vec![false; pending.len()];
        let mut queried: Vec<u64> = Vec::new();
        for one in pending {
            let id = one.subscriber.id;
            if one.subscriber.rls.is_none() || queried.contains(&id) {
                continue;
            }
            queried.push(id);
            let own = || (0..pending.len()).filter(|at| pending[*at].subscriber.id == id);
            let changes: Vec<_> = own().map(|at| pending[at].change.clone()).collect();
            let visible = delivery::visible(&one.subscriber, &changes).await;
            if visible.is_err() {
                self.hub.detach(&one.subscriber);
            }
            let visible = visible.unwrap_or_else(|SubscriptionEnded| vec![false; changes.len()]);
            for (at, visible) in own().zip(visible) {
                hidden[at] = !visible;
            }
        }
        hidden
    }
}
