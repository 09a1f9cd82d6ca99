//! What goes out: ends of operations, and events.

use bytes::Bytes;
use tidegate_feed::{Cursor, Delivery, Ended, Item};
use tokio::task::JoinError;

use super::{End, Flow, Session};
use crate::answer;
use crate::handshake::Dialect;
use crate::operation::Done;

impl Session {
    /// An operation has ended, or a subscription has begun.
    pub(super) async fn done(&mut self, done: Result<Done, JoinError>) -> Flow {
        let done = match done {
            Ok(done) => done,
            Err(error) if error.is_cancelled() => return Ok(()),
            Err(_) => return Err(End::new(1011, "internal error")),
        };
        if let Some((id, tag)) = done.id {
            let Some(entry) = self.entries.get_mut(&id).filter(|entry| entry.tag == tag) else {
                return Ok(());
            };
            if done.subscription.is_some() {
                entry.subscription = done.subscription;
            } else {
                self.forget(&id);
            }
        }
        self.send_all(done.texts).await
    }

    /// Events are due: they are written together.
    pub(super) async fn due(&mut self, due: Option<Vec<Delivery>>) -> Flow {
        let Some(due) = due else {
            return Err(End::new(1013, "slow_consumer"));
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
                }
                Item::Acknowledged { .. } => {}
                Item::Ended(ended) => {
                    // A node that stops is no error.
                    if !matches!(ended, Ended::Stopped) {
                        self.report(answer::ended(&ended).0);
                    }
                    slow |= matches!(ended, Ended::SlowConsumer { .. });
                    if let Some(id) = self.tags.get(&delivery.subscription).cloned() {
                        self.forget(&id);
                    }
                }
            }
        }
        self.flush().await?;
        if slow {
            return Err(End::new(1013, "slow_consumer"));
        }
        Ok(())
    }

    /// How something is told, if its subscription is still there.
    fn text(&self, Delivery { subscription, item }: &Delivery) -> Option<Bytes> {
        let id = self.tags.get(subscription)?;
        let frame = &self.entries.get(id)?.frame.get()?.frame;
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
                let (code, message, cursor) = answer::ended(ended);
                frame.ended(code, &message, cursor)
            }
        })
    }

    /// What a peer is told that took nothing for too long: that its events end, and the place up to
    /// which it has got everything once it takes what is on the way.
    pub(super) async fn slow(&mut self) -> Option<Bytes> {
        let mut entries = self.entries.values();
        let entry = entries.find(|entry| entry.subscription.is_some())?;
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
            // One that comes back may be behind what others were told.
            Some(first) => self
                .sent
                .filter(|sent| *sent < first)
                .or(Some(first.before())),
            None => reached,
        };
        let cursor = cursor.min(reached.or(cursor));
        let (code, message, cursor) = answer::ended(&Ended::SlowConsumer { cursor });
        Some(framed.frame.ended(code, &message, cursor))
    }

    /// Ends what runs under an id. Tells whether there was something.
    pub(super) fn forget(&mut self, id: &str) -> bool {
        let Some(entry) = self.entries.remove(id) else {
            return false;
        };
        self.tags.remove(&entry.tag);
        true
    }

    /// Whether the messages are those of `graphql-transport-ws`.
    pub(super) fn is_transport(&self) -> bool {
        self.dialect == Dialect::Transport
    }
}
