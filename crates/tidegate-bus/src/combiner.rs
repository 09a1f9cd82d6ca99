//! Combines the messages of a reader into fewer messages for JetStream.

use std::collections::HashSet;

use bytes::Bytes;

use crate::message::BusMessage;
use crate::place::MessageKind;

/// Combines consecutive messages with changes. JetStream copies each message to several servers and
/// writes it to disk, so a few large messages cost much less than many small ones.
#[derive(Debug)]
pub struct Combiner {
    /// The maximum number of bytes of changes in a combined message, unless one message is larger.
    limit: usize,
    combined: Option<BusMessage>,
    /// The size in bytes of the changes and descriptions in `combined`.
    size: usize,
    /// The OIDs of the tables that `combined` describes.
    described: HashSet<u32>,
}

impl Combiner {
    /// A combiner of messages of about `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            combined: None,
            size: 0,
            described: HashSet::new(),
        }
    }

    /// Whether no message waits to be combined with later ones.
    pub fn is_empty(&self) -> bool {
        self.combined.is_none()
    }

    /// Adds the reader's next message; a message without changes is ignored. Returns the earlier
    /// messages, combined, if this message cannot be combined with them.
    pub fn push(&mut self, message: &BusMessage) -> Option<BusMessage> {
        if message.items.is_empty() {
            return None;
        }
        let size = message.relations.iter().chain(&message.items);
        let size = size.map(Bytes::len).sum::<usize>();
        let fits = |combined: &BusMessage| {
            // If a change between the two messages was left out, the gap must stay visible.
            combined.identity == message.identity
                && combined.to == message.from
                && self.size + size <= self.limit
        };
        let complete = self.combined.take_if(|combined| !fits(combined));
        if complete.is_some() {
            self.size = 0;
            self.described.clear();
        }
        self.size += size;
        // A table that the combined message describes needs no second description: if it has changed
        // since, the reader has sent the new one among the items.
        let mut relations = message.relations.clone();
        relations.retain(|description| self.is_new(description));
        for item in &message.items {
            self.is_new(item);
        }
        if let Some(combined) = &mut self.combined {
            combined.to = message.to;
            combined.relations.append(&mut relations);
            combined.items.extend_from_slice(&message.items);
        } else {
            self.combined = Some(message.clone());
        }
        complete
    }

    /// Records the table that an item describes. Returns whether `combined` did not describe it.
    fn is_new(&mut self, item: &Bytes) -> bool {
        match MessageKind::of(item) {
            Ok(MessageKind::Relation(oid)) => self.described.insert(oid),
            _ => false,
        }
    }

    /// Ends the current combined message and returns it; `None` if there is none.
    pub fn take(&mut self) -> Option<BusMessage> {
        self.size = 0;
        self.described.clear();
        self.combined.take()
    }
}
