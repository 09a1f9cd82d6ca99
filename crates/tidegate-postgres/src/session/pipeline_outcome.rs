//! The outcome of a pipeline after all responses have arrived.

use tidegate_sql::{Completion, Error, PipelineError, TransactionOutcome};
use tidegate_wire::server_error::ServerError;

use super::pipeline::{PipelineAttemptError, PipelineFailure};
use super::pipeline_run::PipelineRun;
use crate::connection::TransactionStatus;

/// The SQLSTATE `query_canceled`.
const CANCELLED: &str = "57014";

impl PipelineRun<'_, '_> {
    /// Processes the result after the last `ReadyForQuery`.
    pub(super) fn conclude(mut self) -> Result<Vec<Completion>, PipelineAttemptError> {
        if let Some(refusal) = self.connection.session.prefix.refusal() {
            self.discard_unconfirmed();
            let bound = self.steps[0].task.bound;
            let error = self.connection.rejected(refusal, bound);
            let failure = PipelineFailure::RoleRefused(error);
            return Err(PipelineAttemptError::Failed(failure));
        }
        for step in &self.steps {
            self.connection.note_changes(step);
        }
        if let Some((index, invalid)) = self.invalid.take() {
            self.discard_unconfirmed();
            return Err(PipelineError::at(index, Error::Input(invalid)).into());
        }
        if let Some(error) = self.failure.take() {
            self.discard_unconfirmed();
            return Err(self.failed_step(error));
        }
        if self.connection.session.transaction() != TransactionStatus::Idle {
            let what = "a statement changed the transaction around it";
            let error = self.connection.protocol_error(what);
            return Err(self.interrupted(error).into());
        }
        for step in &self.steps {
            self.connection.keep_confirmed(step);
        }
        if let Some((index, error)) = self.refused.take() {
            return Err(PipelineError {
                step: Some(index),
                error,
                outcome: TransactionOutcome::Committed,
            }
            .into());
        }
        self.record_latency();
        let completions = self.steps.iter().map(|step| Completion {
            affected_rows: step.affected,
        });
        Ok(completions.collect())
    }

    /// The result after PostgreSQL has reported `error` for the current step or for the commit.
    fn failed_step(&mut self, error: ServerError) -> PipelineAttemptError {
        if error.is_stale_statement() {
            // Code that a statement called may have deallocated all prepared statements of the
            // session, including those of internal commands.
            self.connection.forget_internal();
        }
        if self.overdue && error.is(CANCELLED) {
            return self.rolled_back(Error::Deadline).into();
        }
        let Some(step) = self.steps.get(self.current) else {
            // The commit failed, because of a deferred constraint or a serialization failure.
            let last = self.steps[self.steps.len() - 1].task;
            return PipelineError::from(self.connection.rejected(error, last.bound)).into();
        };
        let task = step.task;
        let is_untouched = !self.steps.iter().any(|step| step.announced);
        if is_untouched && task.is_seal_refused(&error) {
            let error = self.connection.rejected(error, task.bound);
            return PipelineAttemptError::Failed(PipelineFailure::RoleRefused(error));
        }
        let error = if step.may_be_stale(&error) {
            for task in &self.request.tasks {
                self.connection.forget(task);
            }
            if is_untouched {
                return PipelineAttemptError::Stale;
            }
            task.metadata.invalidate_descriptions();
            self.connection.stale(error, task)
        } else {
            self.connection.rejected(error, task.bound)
        };
        self.rolled_back(error).into()
    }

    fn discard_unconfirmed(&mut self) {
        for step in self.steps.iter().filter(|step| step.unconfirmed) {
            let name = &step.prepared.name;
            self.connection.session.statements.discard(name);
        }
    }

    /// Records the latency of the statements. Each statement is assumed to take an equal part of
    /// the time.
    fn record_latency(&self) {
        let count = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        for step in &self.steps {
            let latency = &step.prepared.description.latency;
            latency.record_direct(step.began.elapsed() / count);
        }
    }
}
