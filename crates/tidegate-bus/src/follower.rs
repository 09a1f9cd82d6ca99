//! Decides from where a node takes the next changes. Nothing here waits or does I/O.

use std::collections::VecDeque;

use tidegate_changelog::{LogIdentity, LogMessage, LogPosition};

use crate::chain::{Chain, Sequence, Verdict};
use crate::message::Message;
use crate::place::{Malformed, Place};

/// The most live messages that wait until a gap before them is filled.
const MOST_WAITING: usize = 1024;

/// From where the next changes come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// From the reader's live messages.
    Live,
    /// From the messages that JetStream keeps.
    Store,
    /// From the messages that the reader keeps in memory.
    Ring,
    /// From a slot of the node's own.
    Slot,
}

/// A node that follows the reader of a log.
#[derive(Debug)]
pub struct Follower {
    chain: Chain,
    source: Source,
    /// Live messages behind a gap.
    waiting: VecDeque<Message>,
    /// The stream that the node reads itself.
    local: Option<Sequence>,
}

impl Follower {
    /// A follower that hands out what commits after `start`.
    pub fn new(identity: LogIdentity, start: LogPosition) -> Self {
        Self {
            chain: Chain::new(identity, start),
            source: Source::Live,
            waiting: VecDeque::new(),
            local: None,
        }
    }

    /// The log.
    pub fn identity(&self) -> LogIdentity {
        self.chain.identity()
    }

    /// From where the next changes must be read.
    pub fn source(&self) -> Source {
        self.source
    }

    /// The place behind everything that was handed out.
    pub fn place(&self) -> Place {
        self.chain.place()
    }

    /// The position at which a stream of the node's own must start.
    pub fn complete(&self) -> LogPosition {
        self.chain.complete()
    }

    /// Takes a message of the reader. Appends what is new to `out`.
    ///
    /// # Errors
    ///
    /// Those of [`Chain::offer`].
    pub fn live(
        &mut self,
        message: Message,
        out: &mut Vec<LogMessage>,
    ) -> Result<Verdict, Malformed> {
        if self.source == Source::Slot {
            let verdict = self.chain.offer(&message, out)?;
            if verdict == Verdict::Taken {
                self.join();
            }
            return Ok(verdict);
        }
        if !self.waiting.is_empty() {
            self.wait(message);
            return Ok(Verdict::Gap);
        }
        let verdict = self.chain.offer(&message, out)?;
        if verdict == Verdict::Gap {
            self.source = Source::Store;
            self.wait(message);
        }
        Ok(verdict)
    }

    /// Takes the reader's answer to a question that was asked a moment ago. If it connects, live
    /// messages will connect too.
    ///
    /// # Errors
    ///
    /// Those of [`Chain::offer`].
    pub fn answer(
        &mut self,
        message: Message,
        out: &mut Vec<LogMessage>,
    ) -> Result<Verdict, Malformed> {
        let verdict = self.live(message, out)?;
        if self.source == Source::Slot && verdict == Verdict::Known {
            self.join();
        }
        Ok(verdict)
    }

    /// Takes what [`Source::Store`] or [`Source::Ring`] has behind [`place`](Self::place). If that
    /// does not help, the next source is asked.
    ///
    /// # Errors
    ///
    /// Those of [`Chain::offer`].
    pub fn fetched(
        &mut self,
        messages: &[Message],
        out: &mut Vec<LogMessage>,
    ) -> Result<(), Malformed> {
        let before = self.chain.place();
        for message in messages {
            self.chain.offer(message, out)?;
        }
        while let Some(message) = self.waiting.front() {
            match self.chain.offer(message, out)? {
                Verdict::Gap => break,
                Verdict::Taken | Verdict::Known | Verdict::OtherLog => {}
            }
            self.waiting.pop_front();
        }
        self.source = match self.source {
            Source::Slot => Source::Slot,
            _ if self.waiting.is_empty() => Source::Live,
            source if self.chain.place() > before => source,
            Source::Live | Source::Store => Source::Ring,
            Source::Ring => {
                self.leave();
                Source::Slot
            }
        };
        Ok(())
    }

    /// Makes the node read the log itself, until live messages connect.
    pub fn leave(&mut self) {
        self.source = Source::Slot;
        self.waiting.clear();
        self.local = None;
    }

    /// A stream of the node's own begins at `start`.
    pub fn opened(&mut self, start: LogPosition) {
        self.local = Some(Sequence::new(start));
    }

    /// Takes a message of the node's own stream. Appends it to `out` if it is new.
    ///
    /// # Errors
    ///
    /// Those of [`Chain::follow`].
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

    fn join(&mut self) {
        self.source = Source::Live;
        self.local = None;
    }

    fn wait(&mut self, message: Message) {
        if self.waiting.len() >= MOST_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back(message);
    }
}
