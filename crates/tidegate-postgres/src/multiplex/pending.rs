//! A pipeline on a multiplexed connection, queued or sent.

use std::sync::Arc;
use std::time::Duration;

use tidegate_sql::{BoundStatement, Statement};
use tidegate_wire::tag;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::buffered_rows::BufferedRows;
use crate::metadata::StatementKey;
use crate::statement::PreparedStatement;

/// A pipeline that is queued or sent, and the rows received so far.
pub(super) struct PendingPipeline {
    pub(super) steps: Vec<PendingStatement>,
    pub(super) requested: Instant,
    /// How long the pipeline is expected to take.
    pub(super) expected: Duration,
    /// The rows of the pipeline, as protocol messages.
    rows: Vec<u8>,
    /// The offset in `rows` at which the rows of each completed statement end.
    ends: Vec<usize>,
    progress: Progress,
    reply: oneshot::Sender<BufferedRows>,
}

pub(super) struct PendingStatement {
    pub(super) statement: Arc<Statement>,
    pub(super) prepared: Arc<PreparedStatement>,
}

/// The state of a pipeline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// The response to the switch to the caller is outstanding.
    Switching,
    /// Responses to statements are outstanding.
    Running,
    Failed(PipelineFault),
}

/// Why a pipeline failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PipelineFault {
    /// PostgreSQL refused the switch to the caller, or a statement failed.
    Refused,
    /// Cached data of a statement was stale.
    Stale,
    /// PostgreSQL refused a write, because the session is read-only.
    Writes,
    /// The rows do not fit into the buffer.
    Large,
}

impl PendingPipeline {
    pub(super) fn new(
        steps: Vec<PendingStatement>,
        switches: bool,
        requested: Instant,
        expected: Duration,
        reply: oneshot::Sender<BufferedRows>,
    ) -> Self {
        Self {
            ends: Vec::with_capacity(steps.len()),
            steps,
            requested,
            expected,
            rows: Vec::new(),
            progress: if switches {
                Progress::Switching
            } else {
                Progress::Running
            },
            reply,
        }
    }

    /// Consumes a message of the response to the switch, and returns `true`. Returns `false` for an
    /// error, and for a message that belongs to a statement.
    pub(super) fn consume_switch(&mut self, tag: u8) -> bool {
        let takes = self.progress == Progress::Switching && tag != tag::ERROR_RESPONSE;
        if takes && tag == tag::COMMAND_COMPLETE {
            self.progress = Progress::Running;
        }
        takes
    }

    /// Whether the response to the switch is outstanding.
    pub(super) fn is_switching(&self) -> bool {
        self.progress == Progress::Switching
    }

    /// The first statement that has not completed; `None` if all have.
    pub(super) fn current(&self) -> Option<&PendingStatement> {
        self.steps.get(self.ends.len())
    }

    /// Whether all statements have completed without an error.
    pub(super) fn is_complete(&self) -> bool {
        self.progress == Progress::Running && self.ends.len() == self.steps.len()
    }

    /// Why the pipeline failed; `None` if it did not.
    pub(super) fn fault(&self) -> Option<PipelineFault> {
        match self.progress {
            Progress::Failed(fault) => Some(fault),
            Progress::Switching | Progress::Running => None,
        }
    }

    /// Buffers a row, unless the pipeline has failed. `message` is the whole protocol message.
    pub(super) fn buffer_row(&mut self, message: &[u8]) {
        if self.progress == Progress::Running {
            self.rows.extend_from_slice(message);
        }
    }

    /// The size of the buffered rows in bytes.
    pub(super) fn size(&self) -> usize {
        self.rows.len()
    }

    /// Records that the current statement has completed, unless the pipeline has failed.
    pub(super) fn complete(&mut self) {
        if self.progress == Progress::Running {
            self.ends.push(self.rows.len());
        }
    }

    /// Records why the pipeline failed. Only the first reason is kept.
    pub(super) fn fail(&mut self, fault: PipelineFault) {
        if self.fault().is_none() {
            self.progress = Progress::Failed(fault);
        }
    }

    /// Stops multiplexing the pipeline's statements for some seconds.
    pub(super) fn suspend(&self, now: Instant) {
        for step in &self.steps {
            step.prepared.description.latency.suspend(now);
        }
    }

    /// Passes the rows to the request, if the request still waits for them.
    pub(super) fn deliver(self) {
        let descriptions = self
            .steps
            .iter()
            .map(|step| step.prepared.description.clone());
        let parts = descriptions.zip(self.ends).collect();
        drop(self.reply.send(BufferedRows::new(parts, self.rows)));
    }
}

/// A statement whose Parse was sent in a pipeline that has no response yet. The statement's
/// description comes from another connection, and PostgreSQL has not confirmed it on this
/// connection.
#[derive(Clone)]
pub(super) struct SpeculativePrepare {
    pub(super) key: StatementKey,
    pub(super) prepared: Arc<PreparedStatement>,
}

impl SpeculativePrepare {
    pub(super) fn new(bound: &BoundStatement, prepared: &Arc<PreparedStatement>) -> Self {
        Self {
            key: StatementKey::of(bound),
            prepared: prepared.clone(),
        }
    }
}
