//! A read on a lane.

use std::sync::Arc;
use std::time::Duration;

use tidegate_sql::{BoundStatement, Statement};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::Answer;
use crate::session::cache::Prepared;

/// A read that was sent, or will be, and its answer as far as it has come.
pub(super) struct Job {
    pub(super) statement: Arc<Statement>,
    pub(super) prepared: Arc<Prepared>,
    pub(super) asked: Instant,
    /// How long it was expected to take.
    pub(super) expected: Duration,
    /// The messages of its rows.
    pub(super) rows: Vec<u8>,
    /// Whether PostgreSQL has said that it is done.
    pub(super) complete: bool,
    pub(super) failed: bool,
    /// Whether it failed because its statement was out of date.
    pub(super) stale: bool,
    reply: oneshot::Sender<Answer>,
}

impl Job {
    pub(super) fn new(
        statement: Arc<Statement>,
        prepared: Arc<Prepared>,
        (asked, expected): (Instant, Duration),
        reply: oneshot::Sender<Answer>,
    ) -> Self {
        Self {
            statement,
            prepared,
            asked,
            expected,
            rows: Vec::new(),
            complete: false,
            failed: false,
            stale: false,
            reply,
        }
    }

    /// Whether its answer can be given.
    pub(super) fn is_good(&self) -> bool {
        self.complete && !self.failed
    }

    /// What it returned is not what its description says.
    pub(super) fn contradict(&mut self) {
        self.failed = true;
        self.stale = true;
    }

    /// Whoever waits runs it on a connection of its own, and it stays away from lanes for a while.
    pub(super) fn fail(self, now: Instant) {
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
