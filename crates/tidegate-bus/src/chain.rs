//! Joins the messages of successive readers by their places, so that each change is handed out to
//! the feed once and in order. Nothing here waits or does I/O.

use std::collections::HashMap;

use bytes::Bytes;
use tidegate_changelog::{LogIdentity, LogMessage, LogPosition};

use crate::message::BusMessage;
use crate::place::{Malformed, MessageKind, Place};

/// The result of offering a message to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// Some items of the message were new.
    Taken,
    /// All items of the message were handed out before.
    Known,
    /// An earlier message is missing.
    Gap,
    /// The message is of another log, or of another timeline of this log.
    OtherLog,
}

/// How far the changes of a log were handed out.
#[derive(Debug)]
pub struct Chain {
    identity: LogIdentity,
    /// The place after everything that was handed out.
    place: Place,
    /// The position before which everything was handed out. It does not grow inside a transaction.
    complete: LogPosition,
    /// For each table, by OID, the last description that was handed out.
    known: HashMap<u32, Bytes>,
}

/// The state of a sequence of items that came from one stream of the log.
#[derive(Debug)]
pub struct Sequence {
    /// The place after the last item.
    place: Place,
    /// The last description of each table, by OID.
    relations: HashMap<u32, Bytes>,
    /// The OIDs of the tables that were described since the last change, begin or commit.
    pending: Vec<u32>,
}

impl Sequence {
    /// A sequence that begins at the start of a stream.
    pub fn new(start: LogPosition) -> Self {
        Self {
            place: Place::at(start),
            relations: HashMap::new(),
            pending: Vec::new(),
        }
    }

    fn of(message: &BusMessage) -> Result<Self, Malformed> {
        let mut relations = HashMap::new();
        for item in &message.relations {
            let MessageKind::Relation(oid) = MessageKind::of(item)? else {
                return Err(Malformed);
            };
            relations.insert(oid, item.clone());
        }
        Ok(Self {
            place: message.from,
            relations,
            pending: Vec::new(),
        })
    }
}

impl Chain {
    /// A chain that begins at a position.
    pub fn new(identity: LogIdentity, start: LogPosition) -> Self {
        Self {
            identity,
            place: Place::at(start),
            complete: start,
            known: HashMap::new(),
        }
    }

    /// The identity of the log.
    pub fn identity(&self) -> LogIdentity {
        self.identity
    }

    /// The place after everything that was handed out.
    pub fn place(&self) -> Place {
        self.place
    }

    /// The position before which everything was handed out.
    pub fn complete(&self) -> LogPosition {
        self.complete
    }

    /// Appends to `out` the items of a message that were not handed out yet.
    ///
    /// # Errors
    ///
    /// If the items of the message are malformed, or do not lead from `from` to `to`. The chain
    /// must not be used after this error.
    pub fn offer(
        &mut self,
        message: &BusMessage,
        out: &mut Vec<LogMessage>,
    ) -> Result<Offered, Malformed> {
        if message.identity != self.identity {
            return Ok(Offered::OtherLog);
        }
        if message.from > self.place {
            return Ok(Offered::Gap);
        }
        if message.to <= self.place {
            return Ok(Offered::Known);
        }
        if message.items.is_empty() {
            return Ok(self.advance(message.to, out));
        }
        let mut sequence = Sequence::of(message)?;
        for item in &message.items {
            self.take(&mut sequence, item, out)?;
        }
        if sequence.place == message.to {
            Ok(Offered::Taken)
        } else {
            Err(Malformed)
        }
    }

    /// Processes a message of a stream that the node reads itself. Appends it to `out`, unless it
    /// was already handed out. `sequence` is the state of that stream.
    ///
    /// # Errors
    ///
    /// If the message is malformed, cannot follow the previous messages of the stream, or changes a
    /// table that the stream has not described.
    pub fn follow(
        &mut self,
        sequence: &mut Sequence,
        message: &LogMessage,
        out: &mut Vec<LogMessage>,
    ) -> Result<(), Malformed> {
        match message {
            LogMessage::Change(item) => self.take(sequence, item, out),
            LogMessage::Reached(_) if sequence.place.is_open() => Ok(()),
            LogMessage::Reached(position) => {
                sequence.place = sequence.place.max(Place::at(*position));
                if sequence.place > self.place {
                    self.advance(sequence.place, out);
                }
                Ok(())
            }
        }
    }

    /// Skips a part of the log that contains no changes.
    fn advance(&mut self, to: Place, out: &mut Vec<LogMessage>) -> Offered {
        // If one of the two places is inside a transaction, at least one message of this
        // transaction lies between them and is missing.
        if self.place.is_open() || to.is_open() {
            return Offered::Gap;
        }
        self.place = to;
        self.complete = to.lsn;
        out.push(LogMessage::Reached(to.lsn));
        Offered::Taken
    }

    fn take(
        &mut self,
        sequence: &mut Sequence,
        item: &Bytes,
        out: &mut Vec<LogMessage>,
    ) -> Result<(), Malformed> {
        let kind = MessageKind::of(item)?;
        let after = sequence.place.after(&kind)?;
        let changed = match kind {
            MessageKind::Type => return Ok(()),
            MessageKind::Relation(oid) => {
                sequence.relations.insert(oid, item.clone());
                sequence.pending.push(oid);
                return Ok(());
            }
            MessageKind::Change(relations) => relations,
            MessageKind::Begin { .. } | MessageKind::Commit { .. } => Vec::new(),
        };
        sequence.place = after;
        let pending = std::mem::take(&mut sequence.pending);
        if after <= self.place {
            return Ok(());
        }
        // A description that the stream has repeated here is handed out even if it is known:
        // PostgreSQL sends it again after a change of privileges or policies.
        for oid in pending {
            self.describe(sequence, oid, true, out)?;
        }
        for oid in changed {
            self.describe(sequence, oid, false, out)?;
        }
        self.place = after;
        if !after.is_open() {
            self.complete = after.lsn;
        }
        out.push(LogMessage::Change(item.clone()));
        Ok(())
    }

    fn describe(
        &mut self,
        sequence: &Sequence,
        oid: u32,
        always: bool,
        out: &mut Vec<LogMessage>,
    ) -> Result<(), Malformed> {
        let description = sequence.relations.get(&oid).ok_or(Malformed)?;
        if always || self.known.get(&oid) != Some(description) {
            // The description is copied, because a slice would keep the whole message in memory.
            self.known.insert(oid, Bytes::copy_from_slice(description));
            out.push(LogMessage::Change(description.clone()));
        }
        Ok(())
    }
}
