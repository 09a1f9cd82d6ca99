//! Decides from which source a node takes the next changes. Nothing here waits or does I/O.

use tidegate_changelog::{LogIdentity, LogMessage, LogPosition};

use crate::chain::{Chain, Offered, Sequence};
use crate::message::BusMessage;
use crate::place::{Malformed, Place};

/// The source of the next changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The reader's live messages.
    Live,
    /// The messages that JetStream keeps. Live messages wait until the gap is filled.
    Store,
    /// A stream of this node's own, with its own slot. The node returns to live messages when one
    /// of them starts at or before the node's place.
    Slot,
}

/// A node that follows the reader of a log.
#[derive(Debug)]
pub struct Follower {
    chain: Chain,
    source: Source,
    /// The live message after the gap that is being filled; `None` if no gap is being filled.
    waiting: Option<BusMessage>,
    /// The state of the stream that the node reads itself; `None` if there is no such stream.
    local: Option<Sequence>,
}

impl Follower {
    /// A follower that hands out the changes of transactions that commit at or after `start`.
    pub fn new(identity: LogIdentity, start: LogPosition) -> Self {
        Self {
            chain: Chain::new(identity, start),
            source: Source::Live,
            waiting: None,
            local: None,
        }
    }

    /// The identity of the log.
    pub fn identity(&self) -> LogIdentity {
        self.chain.identity()
    }

    /// The source from which the next changes must be read.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The place after everything that was handed out.
    pub fn place(&self) -> Place {
        self.chain.place()
    }

    /// The position at which the node's own stream must start.
    pub fn complete(&self) -> LogPosition {
        self.chain.complete()
    }

    /// Processes a live message of the reader. Appends its new items to `out`. After a gap, the
    /// messages that JetStream keeps must be read.
    ///
    /// # Errors
    ///
    /// The errors of [`Chain::offer`].
    pub fn live(
        &mut self,
        message: &BusMessage,
        out: &mut Vec<LogMessage>,
    ) -> Result<Offered, Malformed> {
        let offered = self.chain.offer(message, out)?;
        match (offered, self.source) {
            (Offered::Gap, Source::Live) => {
                self.source = Source::Store;
                self.waiting = Some(message.clone());
            }
            // The next message of the reader continues at this node's place or before it, so there
            // is no gap.
            (Offered::Taken | Offered::Known, Source::Slot) => {
                self.source = Source::Live;
                self.local = None;
            }
            _ => {}
        }
        Ok(offered)
    }

    /// Processes a message from JetStream: the next one after [`place`](Self::place). `message` is
    /// `None` if JetStream has no such message. The node must then read the log itself. It must
    /// also do so if changes before `message` are missing.
    ///
    /// # Errors
    ///
    /// The errors of [`Chain::offer`].
    pub fn fetched(
        &mut self,
        message: Option<&BusMessage>,
        out: &mut Vec<LogMessage>,
    ) -> Result<(), Malformed> {
        let offered = match message {
            Some(message) => self.chain.offer(message, out)?,
            None => Offered::Gap,
        };
        if offered == Offered::Gap {
            self.read_own_stream();
            return Ok(());
        }
        let Some(waiting) = self.waiting.take() else {
            self.source = Source::Live;
            return Ok(());
        };
        match self.chain.offer(&waiting, out)? {
            Offered::Gap => self.waiting = Some(waiting),
            Offered::Taken | Offered::Known | Offered::OtherLog => self.source = Source::Live,
        }
        Ok(())
    }

    /// Makes the node read the log itself, until a live message starts at or before the node's
    /// place.
    pub fn read_own_stream(&mut self) {
        self.source = Source::Slot;
        self.waiting = None;
        self.local = None;
    }

    /// Records that the node's own stream begins at `start`.
    pub fn opened(&mut self, start: LogPosition) {
        self.local = Some(Sequence::new(start));
    }

    /// Processes a message of the node's own stream. Appends it to `out` if it was not handed out
    /// yet. Ignores the message if no stream was opened.
    ///
    /// # Errors
    ///
    /// The errors of [`Chain::follow`].
    pub fn local(
        &mut self,
        message: &LogMessage,
        out: &mut Vec<LogMessage>,
    ) -> Result<(), Malformed> {
        match &mut self.local {
            Some(sequence) => self.chain.follow(sequence, message, out),
            None => Ok(()),
        }
    }
}
