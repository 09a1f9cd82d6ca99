//! Cuts a stream of changes into messages.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use tidegate_changelog::{Lineage, LogMessage, LogPosition};

use crate::message::BusMessage;
use crate::place::{Malformed, MessageKind, Place};

/// Groups the messages of a stream into [`BusMessage`]s. An *item* is one pgoutput message. Each
/// [`BusMessage`] can be read without the earlier ones.
#[derive(Clone, Debug)]
pub struct Batcher {
    lineage: Lineage,
    /// A message ends before an item that would make it larger than this number of bytes.
    limit: usize,
    /// The maximum size of an item in bytes. Larger items are left out.
    longest: usize,
    /// The place after the last item, or the last position that the stream reported.
    place: Place,
    /// The end of the last message with changes, or of the last item that was left out.
    sent: Place,
    /// The last place at which no transaction is open and no earlier item waits to be sent.
    complete: Place,
    /// The most recent description of each table, by OID, as a message of pgoutput.
    relations: HashMap<u32, Bytes>,
    /// Descriptions that precede the next change. A message never ends between a description and
    /// its change, so that a node with the change has the description too.
    pending: Vec<(u32, Bytes)>,
    /// The descriptions that the current message needs although its items do not include them.
    context: Vec<Bytes>,
    /// The OIDs of the tables that the current message describes.
    described: HashSet<u32>,
    items: Vec<Bytes>,
    /// The place after the last transaction that ends in the current message; `None` if no
    /// transaction ends in it.
    end: Option<Place>,
    /// The size of the current message in bytes.
    size: usize,
    /// The position that the stream has reported after the last item; `None` if there is none.
    reached: Option<LogPosition>,
}

impl Batcher {
    /// Creates a batcher for a stream that starts at `start`. Messages have at most about `limit`
    /// bytes, unless a single item is larger. An item of more than `longest` bytes is left out, and
    /// the nodes that get the messages notice the gap.
    pub fn new(lineage: Lineage, start: LogPosition, limit: usize, longest: usize) -> Self {
        Self {
            lineage,
            limit,
            longest,
            place: Place::at(start),
            sent: Place::at(start),
            complete: Place::at(start),
            relations: HashMap::new(),
            pending: Vec::new(),
            context: Vec::new(),
            described: HashSet::new(),
            items: Vec::new(),
            end: None,
            size: 0,
            reached: None,
        }
    }

    /// The place after everything that was added. One exception: if a position was added after
    /// items that are not in a message yet, the place stays before this position until
    /// [`Self::flush`] makes the message.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The end of the last message with changes, or of the last item that was left out.
    pub fn sent(&self) -> Place {
        self.sent
    }

    /// A message without changes that reports how far the log was read.
    pub fn progress(&self) -> BusMessage {
        // Inside a transaction, and while items wait, an earlier position is reported again. The
        // message with the items reports the next position.
        let (from, to) = if self.place.is_open() || !self.items.is_empty() {
            (self.sent.min(self.complete), self.complete)
        } else {
            (self.sent, self.place)
        };
        BusMessage {
            identity: self.lineage.log,
            from,
            to,
            relations: Vec::new(),
            items: Vec::new(),
            ancestors: self.lineage.ancestors.clone(),
        }
    }

    /// Adds a message of the stream. Appends to `out` the [`BusMessage`]s that are complete now.
    ///
    /// # Errors
    ///
    /// If the message is malformed, if it cannot follow the previous messages, or if it changes a
    /// table that was not described before.
    pub fn push(
        &mut self,
        message: LogMessage,
        out: &mut Vec<BusMessage>,
    ) -> Result<(), Malformed> {
        match message {
            LogMessage::Reached(position) => {
                if !self.place.is_open() && position > self.place.lsn {
                    if self.items.is_empty() {
                        self.place = Place::at(position);
                        self.complete = self.place;
                    } else {
                        self.reached = Some(position);
                    }
                }
                Ok(())
            }
            LogMessage::Change(item) => {
                self.reached = None;
                self.push_item(item, out)
            }
        }
    }

    fn push_item(&mut self, item: Bytes, out: &mut Vec<BusMessage>) -> Result<(), Malformed> {
        let kind = MessageKind::of(&item)?;
        let after = self.place.after(&kind)?;
        let is_end = matches!(kind, MessageKind::Commit { .. });
        let changed = match kind {
            MessageKind::Type => return Ok(()),
            MessageKind::Relation(relation) => {
                self.relations.insert(relation, item.clone());
                self.pending.push((relation, item));
                return Ok(());
            }
            MessageKind::Change(relations) => relations,
            MessageKind::Begin { .. } | MessageKind::Commit { .. } => Vec::new(),
        };
        if item.len() > self.longest {
            self.flush(out);
            self.place = after;
            self.sent = after;
            return Ok(());
        }
        if self.size + item.len() > self.limit {
            self.flush(out);
        }
        let pending = std::mem::take(&mut self.pending);
        for relation in changed {
            let is_pending = pending.iter().any(|(other, _)| *other == relation);
            if self.described.insert(relation) && !is_pending {
                let known = self.relations.get(&relation).ok_or(Malformed)?;
                self.size += known.len();
                self.context.push(known.clone());
            }
        }
        for (relation, description) in pending {
            self.described.insert(relation);
            self.size += description.len();
            self.items.push(description);
        }
        self.size += item.len();
        self.items.push(item);
        if is_end {
            self.end = Some(after);
        }
        self.place = after;
        Ok(())
    }

    /// Ends the current message if a transaction ends in it. Otherwise its items wait for further
    /// items of their transaction. Without this wait, each item could become a message of its own,
    /// because PostgreSQL sends each item separately.
    pub fn finish(&mut self, out: &mut Vec<BusMessage>) {
        if self.end.is_some() {
            self.flush(out);
        }
    }

    /// Ends the current message, even in the middle of a transaction.
    pub fn flush(&mut self, out: &mut Vec<BusMessage>) {
        if self.items.is_empty() {
            return;
        }
        out.push(BusMessage {
            identity: self.lineage.log,
            from: self.sent,
            to: self.place,
            relations: std::mem::take(&mut self.context),
            items: std::mem::take(&mut self.items),
            ancestors: Vec::new(),
        });
        self.described.clear();
        self.size = 0;
        self.sent = self.place;
        if let Some(position) = self.reached.take() {
            self.place = Place::at(position);
        }
        let end = self.end.take();
        self.complete = if self.place.is_open() {
            end.unwrap_or(self.complete)
        } else {
            self.place
        };
    }
}
