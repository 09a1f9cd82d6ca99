//! Runs several statements in one write and one transaction.
//!
//! Statements that read and write need no `BEGIN`: PostgreSQL runs everything before a Sync as one
//! transaction and commits it there (PostgreSQL, "Message Flow", "Pipelining"). Only a pipeline
//! whose statements share a snapshot has a `BEGIN`.

use std::sync::Arc;

use tidegate_sql::{Completion, Error, PipelineError, RowSink, TransactionOutcome};
use tidegate_wire::rejection::ServerError;

use super::execution::Execution;
use super::pipeline_request::PipelineRequest;
use super::pipeline_run::PipelineRun;
use crate::connection::{Connection, TransactionStatus};
use crate::metadata::StatementKey;
use crate::statement::{AttemptError, PreparedStatement, StatementTask};

/// The SQLSTATE `query_canceled`.
const CANCELLED: &str = "57014";

/// Why a pipeline failed.
pub(crate) enum PipelineFailure {
    /// Nothing has run. The statements have to run one after the other.
    NotPipelined,
    /// PostgreSQL refused the switch to the caller, or the sealed claims. Nothing has taken effect.
    RoleRefused(Error),
    Failed(PipelineError),
}

impl From<Error> for PipelineFailure {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Why one attempt failed.
pub(super) enum PipelineAttemptError {
    /// A cached description was stale. Nothing has taken effect, and the sinks have received
    /// nothing.
    Stale,
    Failed(PipelineFailure),
}

impl From<Error> for PipelineAttemptError {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<PipelineError> for PipelineAttemptError {
    fn from(error: PipelineError) -> Self {
        Self::Failed(PipelineFailure::Failed(error))
    }
}

impl Connection {
    /// Runs the statements of a pipeline and pushes the rows of each into its sink.
    ///
    /// Statements without a cached description are described first. On return the transaction has
    /// ended, except after an error of a sink, a broken stream or a passed deadline. In these cases
    /// the connection must be recovered.
    pub(crate) async fn run_pipeline(
        &mut self,
        batch: &PipelineRequest<'_>,
        sinks: &mut [&mut dyn RowSink],
    ) -> Result<Vec<Completion>, PipelineFailure> {
        match self.attempt_pipeline(batch, sinks).await {
            Err(PipelineAttemptError::Stale) => {}
            Err(PipelineAttemptError::Failed(setback)) => return Err(setback),
            Ok(completions) => return Ok(completions),
        }
        self.rewind(batch.deadline()).await?;
        match self.attempt_pipeline(batch, sinks).await {
            Err(PipelineAttemptError::Stale) => Err(PipelineFailure::NotPipelined),
            Err(PipelineAttemptError::Failed(setback)) => Err(setback),
            Ok(completions) => Ok(completions),
        }
    }

    async fn attempt_pipeline(
        &mut self,
        batch: &PipelineRequest<'_>,
        sinks: &mut [&mut dyn RowSink],
    ) -> Result<Vec<Completion>, PipelineAttemptError> {
        for task in &batch.tasks {
            self.note_side_effects(task, false);
        }
        let Some(first) = batch.tasks.first() else {
            return Ok(Vec::new());
        };
        if !self.may_use_cached(first).await? {
            return Err(PipelineAttemptError::Failed(PipelineFailure::NotPipelined));
        }
        let known = match self.known(batch) {
            Some(known) => known,
            None => self.describe_unknown(batch).await?,
        };
        let runs = batch.tasks.iter().zip(known);
        let runs: Vec<_> = runs
            .map(|(task, (prepared, unconfirmed))| {
                self.note_side_effects(task, task.is_impure(&prepared));
                Execution::new(task, prepared, unconfirmed)
            })
            .collect();
        let mut steps = PipelineRun::new(batch, runs);
        self.begin_steps(&mut steps)?;
        match self.exchange_steps(&mut steps, sinks).await {
            Ok(()) => self.conclude_steps(steps),
            Err(error) => Err(steps.interrupted(error).into()),
        }
    }

    /// The prepared statements of the pipeline, and whether each is unconfirmed. PostgreSQL
    /// confirms a description only after the earlier statements have run. So if an earlier
    /// statement has effects, unconfirmed descriptions are not used.
    fn known(
        &mut self,
        batch: &PipelineRequest<'_>,
    ) -> Option<Vec<(Arc<PreparedStatement>, bool)>> {
        let allow_unconfirmed = !batch.has_effects();
        let known = batch.tasks.iter();
        let known = known.map(|task| self.statement(task, allow_unconfirmed));
        known.collect()
    }

    fn statement(
        &mut self,
        task: &StatementTask<'_>,
        allow_unconfirmed: bool,
    ) -> Option<(Arc<PreparedStatement>, bool)> {
        self.session.statements.known(task, allow_unconfirmed)
    }

    /// Lets PostgreSQL describe the unknown statements before anything runs. The statements run one
    /// after the other instead if PostgreSQL refuses one (which reports the first error), or if
    /// there are more of them than the cache holds.
    async fn describe_unknown(
        &mut self,
        batch: &PipelineRequest<'_>,
    ) -> Result<Vec<(Arc<PreparedStatement>, bool)>, PipelineAttemptError> {
        let allow_unconfirmed = !batch.has_effects();
        let mut unknown: Vec<&StatementTask<'_>> = Vec::new();
        for task in &batch.tasks {
            let key = StatementKey::of(task.bound);
            let is_same = |other: &&StatementTask<'_>| key.is_of(other.bound);
            if self.statement(task, allow_unconfirmed).is_none() && !unknown.iter().any(is_same) {
                unknown.push(task);
            }
        }
        if !unknown.iter().all(|task| task.is_kept()) {
            return Err(PipelineAttemptError::Failed(PipelineFailure::NotPipelined));
        }
        match self.prepare_all(&unknown).await {
            Ok(_) => self
                .known(batch)
                .ok_or(PipelineAttemptError::Failed(PipelineFailure::NotPipelined)),
            Err(AttemptError::Final(error)) if self.session.prefix.is_refused() => Err(
                PipelineAttemptError::Failed(PipelineFailure::RoleRefused(error)),
            ),
            Err(AttemptError::Final(error)) if !is_refusal(&error) => Err(error.into()),
            Err(_) => Err(PipelineAttemptError::Failed(PipelineFailure::NotPipelined)),
        }
    }

    /// Processes the result after the last `ReadyForQuery`.
    fn conclude_steps(
        &mut self,
        mut steps: PipelineRun<'_>,
    ) -> Result<Vec<Completion>, PipelineAttemptError> {
        if let Some(refusal) = self.refusal() {
            self.discard_unconfirmed(&steps);
            let error = self.rejected(refusal, steps.runs[0].task.bound);
            return Err(PipelineAttemptError::Failed(PipelineFailure::RoleRefused(
                error,
            )));
        }
        for run in &steps.runs {
            self.note_changes(run);
        }
        if let Some((step, wrong)) = steps.wrong.take() {
            self.discard_unconfirmed(&steps);
            return Err(PipelineError::at(step, Error::Input(wrong)).into());
        }
        if let Some(error) = steps.failure.take() {
            self.discard_unconfirmed(&steps);
            return Err(self.failed_step(&steps, error));
        }
        if self.session.transaction() != TransactionStatus::Idle {
            let error = self.protocol_error("a statement changed the transaction around it");
            return Err(steps.interrupted(error).into());
        }
        for run in &steps.runs {
            self.keep_confirmed(run);
        }
        if let Some((step, error)) = steps.refused.take() {
            let outcome = TransactionOutcome::Committed;
            let step = Some(step);
            return Err(PipelineError {
                step,
                error,
                outcome,
            }
            .into());
        }
        steps.record_latency();
        let completions = steps.runs.iter().map(|run| Completion {
            affected_rows: run.affected,
        });
        Ok(completions.collect())
    }

    fn failed_step(&mut self, steps: &PipelineRun<'_>, error: ServerError) -> PipelineAttemptError {
        if error.is_stale_statement() {
            // PostgreSQL may not know an internal command: code that a statement called can
            // deallocate all prepared statements.
            self.forget_internal();
        }
        if steps.overdue && error.is(CANCELLED) {
            return steps.rolled_back(Error::Deadline).into();
        }
        let Some(run) = steps.runs.get(steps.current) else {
            // The commit failed, because of a deferred constraint or a serialization failure.
            let last = steps.runs[steps.runs.len() - 1].task;
            return PipelineError::from(self.rejected(error, last.bound)).into();
        };
        let task = run.task;
        let is_untouched = !steps.runs.iter().any(|run| run.announced);
        if is_untouched && task.is_seal_refused(&error) {
            let error = self.rejected(error, task.bound);
            return PipelineAttemptError::Failed(PipelineFailure::RoleRefused(error));
        }
        if run.may_be_stale(&error) {
            steps.batch.tasks.iter().for_each(|task| self.forget(task));
            if is_untouched {
                return PipelineAttemptError::Stale;
            }
            task.metadata.invalidate_descriptions();
            return steps.rolled_back(self.stale(error, task)).into();
        }
        steps.rolled_back(self.rejected(error, task.bound)).into()
    }

    fn discard_unconfirmed(&mut self, steps: &PipelineRun<'_>) {
        for run in steps.runs.iter().filter(|run| run.unconfirmed) {
            self.session.statements.discard(&run.prepared.name);
        }
    }
}

/// Whether the error is about the statement and not about the connection.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Rejected(_) | Error::Input(_))
}
