//! Several statements in one write and one transaction.
//!
//! Statements that read and write need no `BEGIN`: PostgreSQL runs what stands in front of a Sync
//! as one transaction and commits it there (PostgreSQL, "Message Flow", "Pipelining"). Only a
//! snapshot that several statements share is opened explicitly.

use std::sync::Arc;

use tidegate_sql::{Completion, Error, PipelineError, RowSink, TransactionOutcome};
use tidegate_wire::rejection::ServerError;

use super::batch::Batch;
use super::cache::Prepared;
use super::execute::Run;
use super::steps::Steps;
use super::task::{Failure, Task};
use crate::connection::{Connection, TransactionStatus};

/// `query_canceled`.
const CANCELLED: &str = "57014";

/// Why a batch has no result.
pub(crate) enum Setback {
    /// Nothing has run, and the statements have to be run in turn.
    Unfit,
    /// The connection may not act as the caller's role. Nothing has run.
    RoleRefused(Error),
    Failed(PipelineError),
}

impl From<Error> for Setback {
    fn from(error: Error) -> Self {
        Self::Failed(error.into())
    }
}

/// Why one attempt at a batch failed.
pub(super) enum Miss {
    /// What was known of a statement is out of date. Nothing has taken effect, and no sink has
    /// been given anything.
    Stale,
    Back(Setback),
}

impl From<Error> for Miss {
    fn from(error: Error) -> Self {
        Self::Back(error.into())
    }
}

impl From<PipelineError> for Miss {
    fn from(error: PipelineError) -> Self {
        Self::Back(Setback::Failed(error))
    }
}

impl Connection {
    /// Runs the statements of a batch and pushes their rows into the sinks, one for each.
    ///
    /// Statements that are not known yet are described first. When this returns, the transaction
    /// has ended, except after an error of a sink, of the stream, or a passed deadline; then the
    /// connection must be settled.
    pub(crate) async fn run_pipeline(
        &mut self,
        batch: &Batch<'_>,
        sinks: &mut [&mut dyn RowSink],
    ) -> Result<Vec<Completion>, Setback> {
        match self.attempt_pipeline(batch, sinks).await {
            Err(Miss::Stale) => {}
            Err(Miss::Back(setback)) => return Err(setback),
            Ok(completions) => return Ok(completions),
        }
        self.rewind(batch.deadline()).await?;
        match self.attempt_pipeline(batch, sinks).await {
            Err(Miss::Stale) => Err(Setback::Unfit),
            Err(Miss::Back(setback)) => Err(setback),
            Ok(completions) => Ok(completions),
        }
    }

    async fn attempt_pipeline(
        &mut self,
        batch: &Batch<'_>,
        sinks: &mut [&mut dyn RowSink],
    ) -> Result<Vec<Completion>, Miss> {
        for task in &batch.tasks {
            self.leave(task, false);
        }
        let Some(first) = batch.tasks.first() else {
            return Ok(Vec::new());
        };
        if !self.may_use_what_is_known(first).await? {
            return Err(Miss::Back(Setback::Unfit));
        }
        let known = match self.known(batch) {
            Some(known) => known,
            None => self.learn(batch).await?,
        };
        let runs = batch.tasks.iter().zip(known);
        let runs: Vec<_> = runs
            .map(|(task, (prepared, guessed))| {
                self.leave(task, task.is_suspect(&prepared));
                Run::new(task, prepared, guessed)
            })
            .collect();
        let mut steps = Steps::new(batch, runs);
        self.begin_steps(&mut steps)?;
        match self.exchange_steps(&mut steps, sinks).await {
            Ok(()) => self.conclude_steps(steps),
            Err(error) => Err(steps.lost(error).into()),
        }
    }

    /// What is known of all statements. A guess about a read is confirmed only behind the
    /// statements in front of it, so nothing is guessed where those have effects.
    fn known(&mut self, batch: &Batch<'_>) -> Option<Vec<(Arc<Prepared>, bool)>> {
        let may_guess = !batch.has_effects();
        let known = batch.tasks.iter();
        let known = known.map(|task| self.statement(task, may_guess));
        known.collect()
    }

    fn statement(&mut self, task: &Task<'_>, may_guess: bool) -> Option<(Arc<Prepared>, bool)> {
        self.session.statements.known(task, may_guess)
    }

    /// Has PostgreSQL describe what is not known, before anything runs. If it refuses one, the
    /// statements run in turn, which reports the first error; so do more statements than the cache
    /// holds.
    async fn learn(&mut self, batch: &Batch<'_>) -> Result<Vec<(Arc<Prepared>, bool)>, Miss> {
        let may_guess = !batch.has_effects();
        let mut unknown: Vec<&Task<'_>> = Vec::new();
        for task in &batch.tasks {
            let is_same = |other: &&Task<'_>| task.is_same_statement(other);
            if self.statement(task, may_guess).is_none() && !unknown.iter().any(is_same) {
                unknown.push(task);
            }
        }
        if !unknown.iter().all(|task| task.is_kept()) {
            return Err(Miss::Back(Setback::Unfit));
        }
        match self.prepare_all(&unknown).await {
            Ok(_) => self.known(batch).ok_or(Miss::Back(Setback::Unfit)),
            Err(Failure::Final(error)) if self.session.prefix.is_refused() => {
                Err(Miss::Back(Setback::RoleRefused(error)))
            }
            Err(Failure::Final(error)) if !is_refusal(&error) => Err(error.into()),
            Err(_) => Err(Miss::Back(Setback::Unfit)),
        }
    }

    /// After the last `ReadyForQuery`: what came of it.
    fn conclude_steps(&mut self, mut steps: Steps<'_>) -> Result<Vec<Completion>, Miss> {
        if let Some(refusal) = self.refusal() {
            self.discard_guesses(&steps);
            let error = self.rejected(refusal, steps.runs[0].task.bound);
            return Err(Miss::Back(Setback::RoleRefused(error)));
        }
        for run in &steps.runs {
            // A definition that has come meanwhile may have counted.
            let suspect = run.task.is_suspect(&run.prepared);
            self.leave(run.task, suspect);
            self.ran(run.task, suspect);
        }
        if let Some((step, wrong)) = steps.wrong.take() {
            self.discard_guesses(&steps);
            return Err(PipelineError::at(step, Error::Input(wrong)).into());
        }
        if let Some(error) = steps.failure.take() {
            self.discard_guesses(&steps);
            return Err(self.failed_step(&steps, error));
        }
        if self.session.transaction() != TransactionStatus::Idle {
            let error = self.breach("a statement changed the transaction around it");
            return Err(steps.lost(error).into());
        }
        for run in &steps.runs {
            if run.guessed && run.task.is_kept() {
                self.session
                    .statements
                    .keep(run.task.bound, run.prepared.clone());
            }
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
        steps.learn_pace();
        let completions = steps.runs.iter().map(|run| Completion {
            affected_rows: run.affected,
        });
        Ok(completions.collect())
    }

    fn failed_step(&mut self, steps: &Steps<'_>, error: ServerError) -> Miss {
        if error.is_stale_statement() {
            // Perhaps it was one of our own: code that a statement called can deallocate all.
            self.session.statements.forget_own();
        }
        if steps.overdue && error.is(CANCELLED) {
            return steps.rolled_back(Error::Deadline).into();
        }
        let Some(run) = steps.runs.get(steps.current) else {
            // At the commit: a deferred constraint, a serialization failure.
            let last = steps.runs[steps.runs.len() - 1].task;
            return PipelineError::from(self.rejected(error, last.bound)).into();
        };
        let task = run.task;
        if is_stale(run, &error) {
            steps.batch.tasks.iter().for_each(|task| self.forget(task));
            if !steps.runs.iter().any(|run| run.announced) {
                return Miss::Stale;
            }
            task.dictionary.distrust();
            return steps.rolled_back(self.stale(error, task)).into();
        }
        steps.rolled_back(self.rejected(error, task.bound)).into()
    }

    fn discard_guesses(&mut self, steps: &Steps<'_>) {
        for run in steps.runs.iter().filter(|run| run.guessed) {
            self.session.statements.discard(&run.prepared.name);
        }
    }
}

/// Whether the statement is to blame, and not the connection.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Rejected(_) | Error::Input(_))
}

/// Whether an error of a statement only says that what was known of it is out of date.
fn is_stale(run: &Run<'_>, error: &ServerError) -> bool {
    error.is_stale_statement()
        || run.task.has_lost_hint(error)
        || (run.guessed && error.is_bad_guess())
}
