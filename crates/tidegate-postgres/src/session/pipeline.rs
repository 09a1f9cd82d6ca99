//! Runs several statements in one write and one transaction.
//!
//! A pipeline in read-write mode needs no `BEGIN`: PostgreSQL runs everything before a Sync as one
//! transaction and commits it at the Sync (PostgreSQL, "Message Flow", "Pipelining"). Only a
//! pipeline whose statements share a snapshot has a `BEGIN`.

use std::sync::Arc;

use tidegate_sql::{Completion, Error, PipelineError, RowSink, TransactionOutcome};
use tidegate_wire::server_error::ServerError;

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
    /// Any other failure.
    Failed(PipelineError),
}

impl From<Error> for PipelineFailure {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Why one attempt to run a pipeline failed.
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
    /// the transaction may still be open, and the connection must be recovered.
    pub(crate) async fn run_pipeline(
        &mut self,
        request: &PipelineRequest<'_>,
        sinks: &mut [&mut dyn RowSink],
    ) -> Result<Vec<Completion>, PipelineFailure> {
        match self.attempt_pipeline(request, sinks).await {
            Err(PipelineAttemptError::Stale) => {}
            Err(PipelineAttemptError::Failed(failure)) => return Err(failure),
            Ok(completions) => return Ok(completions),
        }
        self.rewind(request.deadline()).await?;
        match self.attempt_pipeline(request, sinks).await {
            Err(PipelineAttemptError::Stale) => Err(PipelineFailure::NotPipelined),
            Err(PipelineAttemptError::Failed(failure)) => Err(failure),
            Ok(completions) => Ok(completions),
        }
    }

    async fn attempt_pipeline(
        &mut self,
        request: &PipelineRequest<'_>,
        sinks: &mut [&mut dyn RowSink],
    ) -> Result<Vec<Completion>, PipelineAttemptError> {
        for task in &request.tasks {
            self.note_side_effects(task, false);
        }
        let Some(first) = request.tasks.first() else {
            return Ok(Vec::new());
        };
        if !self.may_use_cached(first).await? {
            return Err(PipelineAttemptError::Failed(PipelineFailure::NotPipelined));
        }
        let known = match self.known(request) {
            Some(known) => known,
            None => self.describe_unknown(request).await?,
        };
        let steps = request.tasks.iter().zip(known);
        let steps: Vec<_> = steps
            .map(|(task, (prepared, unconfirmed))| {
                self.note_side_effects(task, task.is_impure(&prepared));
                Execution::new(task, prepared, unconfirmed)
            })
            .collect();
        let mut run = PipelineRun::new(request, steps);
        self.begin_steps(&mut run)?;
        match self.exchange_steps(&mut run, sinks).await {
            Ok(()) => self.conclude_steps(run),
            Err(error) => Err(run.interrupted(error).into()),
        }
    }

    /// The prepared statements of the pipeline, each with a flag that says whether it is
    /// unconfirmed. Returns `None` if PostgreSQL first has to describe one of the statements.
    ///
    /// PostgreSQL confirms a description only after the earlier statements have run. Therefore
    /// unconfirmed descriptions are not used if the pipeline has effects.
    fn known(
        &mut self,
        request: &PipelineRequest<'_>,
    ) -> Option<Vec<(Arc<PreparedStatement>, bool)>> {
        let allow_unconfirmed = !request.has_effects();
        let known = request.tasks.iter();
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

    /// Lets PostgreSQL describe the unknown statements before any statement runs.
    ///
    /// # Errors
    ///
    /// `NotPipelined` if PostgreSQL refuses a statement, if a statement must not stay prepared, or
    /// if the cache of statements is too small for the pipeline. The caller then runs the
    /// statements one after the other, and reports the first error. `RoleRefused` if PostgreSQL
    /// refuses the switch to the caller. Other errors are final.
    async fn describe_unknown(
        &mut self,
        request: &PipelineRequest<'_>,
    ) -> Result<Vec<(Arc<PreparedStatement>, bool)>, PipelineAttemptError> {
        let allow_unconfirmed = !request.has_effects();
        let mut unknown: Vec<&StatementTask<'_>> = Vec::new();
        for task in &request.tasks {
            let key = StatementKey::of(task.bound);
            let is_same = |other: &&StatementTask<'_>| key.matches(other.bound);
            if self.statement(task, allow_unconfirmed).is_none() && !unknown.iter().any(is_same) {
                unknown.push(task);
            }
        }
        if !unknown.iter().all(|task| task.is_kept()) {
            return Err(PipelineAttemptError::Failed(PipelineFailure::NotPipelined));
        }
        match self.prepare_all(&unknown).await {
            Ok(_) => self
                .known(request)
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
        mut run: PipelineRun<'_>,
    ) -> Result<Vec<Completion>, PipelineAttemptError> {
        if let Some(refusal) = self.refusal() {
            self.discard_unconfirmed(&run);
            let error = self.rejected(refusal, run.steps[0].task.bound);
            return Err(PipelineAttemptError::Failed(PipelineFailure::RoleRefused(
                error,
            )));
        }
        for step in &run.steps {
            self.note_changes(step);
        }
        if let Some((index, invalid)) = run.invalid.take() {
            self.discard_unconfirmed(&run);
            return Err(PipelineError::at(index, Error::Input(invalid)).into());
        }
        if let Some(error) = run.failure.take() {
            self.discard_unconfirmed(&run);
            return Err(self.failed_step(&run, error));
        }
        if self.session.transaction() != TransactionStatus::Idle {
            let error = self.protocol_error("a statement changed the transaction around it");
            return Err(run.interrupted(error).into());
        }
        for step in &run.steps {
            self.keep_confirmed(step);
        }
        if let Some((index, error)) = run.refused.take() {
            return Err(PipelineError {
                step: Some(index),
                error,
                outcome: TransactionOutcome::Committed,
            }
            .into());
        }
        run.record_latency();
        let completions = run.steps.iter().map(|step| Completion {
            affected_rows: step.affected,
        });
        Ok(completions.collect())
    }

    fn failed_step(&mut self, run: &PipelineRun<'_>, error: ServerError) -> PipelineAttemptError {
        if error.is_stale_statement() {
            // The error may be about an internal command, because code that a statement called can
            // deallocate all prepared statements.
            self.forget_internal();
        }
        if run.overdue && error.is(CANCELLED) {
            return run.rolled_back(Error::Deadline).into();
        }
        let Some(step) = run.steps.get(run.current) else {
            // The commit failed, because of a deferred constraint or a serialization failure.
            let last = run.steps[run.steps.len() - 1].task;
            return PipelineError::from(self.rejected(error, last.bound)).into();
        };
        let task = step.task;
        let is_untouched = !run.steps.iter().any(|step| step.announced);
        if is_untouched && task.is_seal_refused(&error) {
            let error = self.rejected(error, task.bound);
            return PipelineAttemptError::Failed(PipelineFailure::RoleRefused(error));
        }
        if step.may_be_stale(&error) {
            run.request.tasks.iter().for_each(|task| self.forget(task));
            if is_untouched {
                return PipelineAttemptError::Stale;
            }
            task.metadata.invalidate_descriptions();
            return run.rolled_back(self.stale(error, task)).into();
        }
        run.rolled_back(self.rejected(error, task.bound)).into()
    }

    fn discard_unconfirmed(&mut self, run: &PipelineRun<'_>) {
        for step in run.steps.iter().filter(|step| step.unconfirmed) {
            self.session.statements.discard(&step.prepared.name);
        }
    }
}

/// Whether the error is about the statement and not about the connection.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Rejected(_) | Error::Input(_))
}
