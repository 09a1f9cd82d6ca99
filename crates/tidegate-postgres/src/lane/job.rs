//! A read on a lane.

use std::sync::Arc;
use std::time::Duration;

use tidegate_sql::{BoundStatement, Statement};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::Answer;
use crate::session::cache::Prepared;
use crate::wire::tag;

/// A read that was sent, or will be, and its answer as far as it has come.
pub(super) struct Job {
    pub(super) statement: Arc<Statement>,
    pub(super) prepared: Arc<Prepared>,
    pub(super) asked: Instant,
    /// How long it was expected to take.
    pub(super) expected: Duration,
    /// The messages of its rows.
    pub(super) rows: Vec<u8>,
    stage: Stage,
    reply: oneshot::Sender<Answer>,
}

/// How far a read has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The answers of the switch to the caller's role are to come.
    Switching,
    /// Its own answers are to come.
    Reading,
    Complete,
    /// The caller's role was refused.
    Refused,
    Failed,
    /// It failed because its statement was out of date.
    Stale,
}

impl Job {
    pub(super) fn new(
        statement: Arc<Statement>,
        prepared: Arc<Prepared>,
        switching: bool,
        (asked, expected): (Instant, Duration),
        reply: oneshot::Sender<Answer>,
    ) -> Self {
        Self {
            statement,
            prepared,
            asked,
            expected,
            rows: Vec::new(),
            stage: if switching {
                Stage::Switching
            } else {
                Stage::Reading
            },
            reply,
        }
    }

    /// Takes a message that belongs to the switch to the caller's role; `false` if it belongs to the
    /// read.
    pub(super) fn takes_switch(&mut self, tag: u8) -> bool {
        let takes = self.stage == Stage::Switching && tag != tag::ERROR_RESPONSE;
        if takes && tag == tag::COMMAND_COMPLETE {
            self.stage = Stage::Reading;
        }
        takes
    }

    /// Whether its answer can be given.
    pub(super) fn is_good(&self) -> bool {
        self.stage == Stage::Complete
    }

    /// Whether its statement was out of date.
    pub(super) fn is_stale(&self) -> bool {
        self.stage == Stage::Stale
    }

    /// Whether it has failed by itself.
    pub(super) fn has_failed(&self) -> bool {
        matches!(self.stage, Stage::Refused | Stage::Failed | Stage::Stale)
    }

    /// PostgreSQL has said that it is done.
    pub(super) fn complete(&mut self) {
        if self.stage == Stage::Reading {
            self.stage = Stage::Complete;
        }
    }

    /// It failed; its statement may be out of date.
    pub(super) fn break_off(&mut self, stale: bool) {
        self.stage = match (self.stage, stale) {
            (Stage::Switching, _) => Stage::Refused,
            (_, true) => Stage::Stale,
            (_, false) => Stage::Failed,
        };
    }

    /// What it returned is not what its description says.
    pub(super) fn contradict(&mut self) {
        self.break_off(true);
    }

    /// The request runs it on a connection of its own, and it stays away from lanes for a while,
    /// unless it was the caller's role that was refused.
    pub(super) fn fail(self, now: Instant) {
        if self.stage == Stage::Refused {
            return;
        }
        self.prepared.shape.pace.stay_away(now);
    }

    /// Hands the rows over; when nobody waits any more, nobody needs them.
    pub(super) fn end(self) {
        let shape = self.prepared.shape.clone();
        drop(self.reply.send(Answer::new(shape, self.rows)));
    }
}

/// A statement that is prepared by a read on the lane, and described to nobody yet.
#[derive(Clone)]
pub(super) struct Guess {
    /// Its text and hints.
    pub(super) bound: BoundStatement,
    pub(super) prepared: Arc<Prepared>,
}

impl Guess {
    pub(super) fn new(bound: &BoundStatement, prepared: &Arc<Prepared>) -> Self {
        let bound = BoundStatement {
            statement: bound.statement.clone(),
            hints: bound.hints.clone(),
            formats: Vec::new(),
            sets: Vec::new(),
            listed: false,
            places: Vec::new(),
        };
        Self {
            bound,
            prepared: prepared.clone(),
        }
    }
}
