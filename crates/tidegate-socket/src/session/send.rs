//! Sends the results of operations, and the events of subscriptions.

use bytes::Bytes;
use tidegate_feed::{Cursor, Delivery, Ended, Item};
use tokio::task::JoinError;

use super::{CloseReason, Session, SessionResult};
use crate::handshake::Dialect;
use crate::operation::OperationResult;
use crate::outgoing;

impl Session {
    /// Handles the end of an operation, or the start of a subscription. Sends the messages of the
    /// result, unless the operation was removed in the meantime.
    pub(super) async fn operation_ended(
        &mut self,
        done: Result<OperationResult, JoinError>,
    ) -> SessionResult {
        let done = match done {
            Ok(done) => done,
            Err(error) if error.is_cancelled() => return Ok(()),
            Err(_) => return Err(CloseReason::new(1011, "internal error")),
        };
        if let Some((id, tag)) = done.id {
            let Some(entry) = self
                .operations_by_id
                .get_mut(&id)
                .filter(|entry| entry.tag == tag)
            else {
                return Ok(());
            };
            if done.subscription.is_some() {
                entry.subscription = done.subscription;
            } else {
                self.remove(&id);
            }
        }
        self.send_all(done.texts).await
    }

    /// Writes the deliveries in `due`; `None` means that the queue was closed. Returns an error,
    /// which ends the socket, if the queue was closed, or if the client was too slow for a
    /// subscription.
    pub(super) async fn send_deliveries(&mut self, due: Option<Vec<Delivery>>) -> SessionResult {
        let Some(due) = due else {
            return Err(CloseReason::new(1013, "slow_consumer"));
        };
        let mut slow = false;
        let mut due = due.into_iter();
        while let Some(delivery) = due.next() {
            let Some(text) = self.text(&delivery) else {
                continue;
            };
            if let Err(end) = self.feed(text).await {
                self.unsent = std::iter::once(delivery).chain(due).collect();
                return Err(end);
            }
            match delivery.item {
                Item::Event { cursor, .. } | Item::Resync { cursor, .. } => {
                    self.sent = Some(cursor);
                    self.note_sent(cursor);
                }
                Item::Acknowledged { cursor } => self.note_sent(cursor),
                Item::Ended(ended) => {
                    // A subscription that ends because of a shutdown is not an error, so it is not
                    // counted.
                    if !matches!(ended, Ended::Stopped) {
                        self.report(outgoing::ended(&ended).0);
                    }
                    slow |= matches!(ended, Ended::SlowConsumer { .. });
                    if let Some(id) = self.tags.get(&delivery.subscription).cloned() {
                        self.remove(&id);
                    }
                }
            }
        }
        self.flush().await?;
        if slow {
            return Err(CloseReason::new(1013, "slow_consumer"));
        }
        Ok(())
    }

    /// Records that the client has been informed of all changes up to the end of `cursor`, so that
    /// later reads of the client show these changes.
    fn note_sent(&mut self, cursor: Cursor) {
        if self
            .newest_sent
            .is_none_or(|newest| newest.end() < cursor.end())
        {
            self.newest_sent = Some(cursor);
        }
    }

    /// The message for a delivery; `None` if its subscription was removed.
    fn text(&self, Delivery { subscription, item }: &Delivery) -> Option<Bytes> {
        let id = self.tags.get(subscription)?;
        let frame = &self.operations_by_id.get(id)?.frame.get()?.frame;
        Some(match item {
            Item::Acknowledged { cursor } => frame.acknowledged(*cursor),
            Item::Event {
                cursor,
                operation,
                row,
                field_errors,
                key,
            } => frame.event(
                (*operation, *cursor),
                row,
                (field_errors.as_deref(), key.as_deref()),
            ),
            Item::Resync { cursor, reason } => frame.resync(*reason, *cursor),
            Item::Ended(ended) => {
                let (code, message, cursor) = outgoing::ended(ended);
                frame.ended(code, &message, cursor)
            }
        })
    }

    /// The message for a client that has not read for too long, with the cursor after which the
    /// client can resume. Closes the event queue. Returns `None` if the socket has no subscription.
    pub(super) async fn slow_consumer_message(&mut self) -> Option<Bytes> {
        let mut operations_by_id = self.operations_by_id.values();
        let entry = operations_by_id.find(|entry| entry.subscription.is_some())?;
        let framed = entry.frame.get()?;
        entry.subscription.as_ref()?.close_slow();
        let mut unsent = std::mem::take(&mut self.unsent);
        unsent.extend(self.events.next().await.unwrap_or_default());
        let (mut first, mut reached) = (None::<Cursor>, None);
        for Delivery { item, .. } in unsent {
            match item {
                Item::Event { cursor, .. } | Item::Resync { cursor, .. } => {
                    first = Some(first.map_or(cursor, |first| first.min(cursor)));
                }
                Item::Ended(Ended::SlowConsumer { cursor }) => reached = cursor,
                Item::Acknowledged { .. } | Item::Ended(_) => {}
            }
        }
        let cursor = match first {
            // The client resumes after the event that was sent last. If a subscription replays, the
            // cursor of that event may be greater than the cursor of the first unsent event. In
            // this case the client resumes before the first unsent event.
            Some(first) => self
                .sent
                .filter(|sent| *sent < first)
                .or(Some(first.before())),
            None => reached,
        };
        let cursor = cursor.min(reached.or(cursor));
        let (code, message, cursor) = outgoing::ended(&Ended::SlowConsumer { cursor });
        Some(framed.frame.ended(code, &message, cursor))
    }

    /// Ends the operation or subscription with this id. Returns `false` if there is none.
    pub(super) fn remove(&mut self, id: &str) -> bool {
        let Some(entry) = self.operations_by_id.remove(id) else {
            return false;
        };
        self.tags.remove(&entry.tag);
        true
    }

    /// Whether the socket uses the protocol `graphql-transport-ws`.
    pub(super) fn is_graphql_transport_ws(&self) -> bool {
        self.dialect == Dialect::GraphQlTransportWs
    }
}
