//! What goes out: ends of operations, and events.

use tidegate_feed::{Delivery, Ended, Item};
use tokio::task::JoinError;

use super::{End, Flow, Session};
use crate::socket::answer;
use crate::socket::handshake::Dialect;
use crate::socket::operation::Done;

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

    /// Events are due.
    pub(super) async fn due(&mut self, due: Option<Vec<Delivery>>) -> Flow {
        let Some(due) = due else {
            return Err(End::new(1013, "slow_consumer"));
        };
        let mut texts = Vec::with_capacity(due.len());
        let (mut over, mut slow) = (Vec::new(), false);
        for Delivery { subscription, item } in due {
            let Some(id) = self.tags.get(&subscription) else {
                continue;
            };
            let framed = self.entries.get(id).and_then(|entry| entry.frame.get());
            let Some(framed) = framed else {
                continue;
            };
            let frame = &framed.frame;
            texts.push(match item {
                Item::Acknowledged { cursor } => frame.acknowledged(cursor),
                Item::Event {
                    cursor,
                    operation,
                    row,
                } => frame.event(operation, &row, cursor),
                Item::Resync { cursor, reason } => frame.resync(reason, cursor),
                Item::Ended(ended) => {
                    slow |= matches!(ended, Ended::SlowConsumer { .. });
                    over.push(id.clone());
                    let (code, message, cursor) = answer::ended(&ended);
                    frame.ended(code, &message, cursor)
                }
            });
        }
        for id in over {
            self.forget(&id);
        }
        self.send_all(texts).await?;
        if slow {
            return Err(End::new(1013, "slow_consumer"));
        }
        Ok(())
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
