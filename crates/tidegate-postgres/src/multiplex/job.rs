//! A pipeline on a multiplexed connection.

use std::sync::Arc;
use std::time::Duration;

use tidegate_sql::{BoundStatement, Statement};
use tidegate_wire::tag;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::Answer;
use crate::session::cache::Prepared;

/// A pipeline that was sent, or will be, and its answer as far as it has come.
pub(super) struct Job {
    pub(super) steps: Vec<Step>,
    pub(super) asked: Instant,
    /// How long it was expected to take.
    pub(super) expected: Duration,
    /// The messages of its rows.
    rows: Vec<u8>,
    /// Where the rows of each completed step end in `rows`.
    ends: Vec<usize>,
    stage: Stage,
    reply: oneshot::Sender<Answer>,
}

/// A statement of a pipeline.
pub(super) struct Step {
    pub(super) statement: Arc<Statement>,
    pub(super) prepared: Arc<Prepared>,
}

/// How far a pipeline has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The answers of the role switch are due.
    Switching,
    /// The answers of its statements are due.
    Running,
    Failed(Fault),
}

/// Why a pipeline failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The switch to the caller's role was refused, or a statement failed.
    Refused,
    /// What was known of a statement is out of date.
    Stale,
    /// PostgreSQL refused it because it writes.
    Writes,
    /// It returned too much.
    Large,
}

impl Job {
    pub(super) fn new(
        steps: Vec<Step>,
        switches: bool,
        (asked, expected): (Instant, Duration),
        reply: oneshot::Sender<Answer>,
    ) -> Self {
        Self {
            ends: Vec::with_capacity(steps.len()),
            steps,
            asked,
            expected,
            rows: Vec::new(),
            stage: if switches {
                Stage::Switching
            } else {
                Stage::Running
            },
            reply,
        }
    }

    /// Takes a message that belongs to the role switch; `false` if it belongs to a statement.
    pub(super) fn takes_switch(&mut self, tag: u8) -> bool {
        let takes = self.stage == Stage::Switching && tag != tag::ERROR_RESPONSE;
        if takes && tag == tag::COMMAND_COMPLETE {
            self.stage = Stage::Running;
        }
        takes
    }

    /// The statement whose answers are due.
    pub(super) fn current(&self) -> Option<&Step> {
        self.steps.get(self.ends.len())
    }

    /// Whether its answer can be given.
    pub(super) fn is_good(&self) -> bool {
        self.stage == Stage::Running && self.ends.len() == self.steps.len()
    }

    /// Why it failed, if it did.
    pub(super) fn fault(&self) -> Option<Fault> {
        match self.stage {
            Stage::Failed(fault) => Some(fault),
            Stage::Switching | Stage::Running => None,
        }
    }

    /// Keeps a row.
    pub(super) fn keep_row(&mut self, message: &[u8]) {
        if self.stage == Stage::Running {
            self.rows.extend_from_slice(message);
        }
    }

    /// How many bytes of rows there are.
    pub(super) fn size(&self) -> usize {
        self.rows.len()
    }

    /// PostgreSQL has completed the current statement.
    pub(super) fn complete(&mut self) {
        if self.stage == Stage::Running {
            self.ends.push(self.rows.len());
        }
    }

    /// Notes why it fails; the first reason counts.
    pub(super) fn fail(&mut self, fault: Fault) {
        if self.fault().is_none() {
            self.stage = Stage::Failed(fault);
        }
    }

    /// Keeps its statements off multiplexed connections for a while.
    pub(super) fn ban(&self, now: Instant) {
        for step in &self.steps {
            step.prepared.shape.pace.stay_away(now);
        }
    }

    /// Hands the rows to the request, if it still waits.
    pub(super) fn answer(self) {
        let shapes = self.steps.iter().map(|step| step.prepared.shape.clone());
        let parts = shapes.zip(self.ends).collect();
        drop(self.reply.send(Answer::new(parts, self.rows)));
    }
}

/// A statement that a pipeline prepares on the connection, by a description that PostgreSQL gave
/// for another connection and has not confirmed here.
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
