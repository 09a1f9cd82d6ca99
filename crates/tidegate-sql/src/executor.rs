//! The port that runs statements.
//!
//! Rows are pushed into a [`RowSink`] as borrowed bytes, so that nothing between PostgreSQL and
//! the response owns a row.

use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

use postgres_types::Type;
use tidegate_values::{Column, RawRow};

use crate::error::{Error, Result};
use crate::principal::Principal;
use crate::statement::BoundStatement;

/// A boxed future, as object-safe ports return them.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs statements as a principal.
pub trait Executor: Send + Sync {
    /// Runs one statement with all its parameter sets in one transaction of its own, prepared
    /// once, in as few round trips as the answer needs.
    ///
    /// The transaction has ended when this returns; rows may have reached the sink before an
    /// error. Dropping the future cancels the statement in the database.
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        terms: &'a Terms,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>>;

    /// Opens a transaction as the principal. The deadline of `terms` counts for all of it.
    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        mode: Mode,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>>;

    /// Runs the statements of a pipeline in order, in one transaction, and commits.
    ///
    /// An executor that can sends them in one write. This default runs them in turn.
    ///
    /// # Errors
    ///
    /// The first failure and what became of the transaction; rows may have reached the sinks.
    fn pipeline<'a>(
        &'a self,
        who: &'a Principal,
        pipeline: Pipeline<'a>,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Vec<Completion>, PipelineError>> {
        Box::pin(async move {
            let transaction = self.begin(who, pipeline.mode, terms).await?;
            pipeline.run_in(transaction).await
        })
    }

    /// Lets PostgreSQL parse and describe a statement; nothing runs.
    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Description>>;
}

/// Statements that are sent together: none needs the rows of an earlier one.
#[expect(missing_debug_implementations, reason = "a sink cannot be shown")]
pub struct Pipeline<'a> {
    /// The transaction that they share.
    pub mode: Mode,
    /// The statements, in order.
    pub steps: Vec<Step<'a>>,
    /// When the transaction is committed.
    pub commit: Commit,
}

impl Pipeline<'_> {
    /// Runs the statements in turn in an open transaction of the pipeline's mode, and commits. A
    /// refused row undoes everything, whatever [`Pipeline::commit`] says.
    ///
    /// # Errors
    ///
    /// As for [`Executor::pipeline`].
    pub async fn run_in(
        self,
        mut transaction: Box<dyn Transaction>,
    ) -> Result<Vec<Completion>, PipelineError> {
        let mut completions = Vec::with_capacity(self.steps.len());
        for (index, step) in self.steps.into_iter().enumerate() {
            let ran = transaction.query(step.statement, step.sink).await;
            let ended = ran.and_then(|completion| step.sink.end(completion).map(|()| completion));
            completions.push(ended.map_err(|error| PipelineError::at(index, error))?);
        }
        let committed = transaction.commit().await;
        committed.map_err(|error| PipelineError {
            step: None,
            outcome: match error {
                Error::Rejected(_) => TransactionOutcome::RolledBack,
                _ => TransactionOutcome::Unknown,
            },
            error,
        })?;
        Ok(completions)
    }
}

/// One statement of a [`Pipeline`].
#[expect(missing_debug_implementations, reason = "a sink cannot be shown")]
pub struct Step<'a> {
    /// The statement.
    pub statement: &'a BoundStatement,
    /// Takes its rows.
    pub sink: &'a mut dyn RowSink,
}

/// When the transaction of a [`Pipeline`] is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// With the statements, in the same write: a sink that refuses a row may undo nothing, and the
    /// error says whether it did.
    Together,
    /// Once the sinks have taken all rows: a refused row undoes everything. Where no statement
    /// writes, or none returns rows, there is nothing to wait for, and the commit goes out with
    /// the statements; a sink must not refuse what has no columns.
    AfterRows,
}

/// Why a [`Pipeline`] failed.
#[derive(Debug)]
pub struct PipelineError {
    /// The index of the statement to blame; `None` for the transaction as a whole.
    pub step: Option<usize>,
    /// What went wrong.
    pub error: Error,
    /// What became of the transaction.
    pub outcome: TransactionOutcome,
}

/// What became of the transaction of a [`Pipeline`] that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionOutcome {
    /// Nothing of it has taken effect.
    RolledBack,
    /// It was committed, and then a sink refused its rows.
    Committed,
    /// The connection was lost, or the deadline passed, when PostgreSQL had been told to commit.
    Unknown,
}

impl PipelineError {
    /// A statement failed, and the transaction was rolled back.
    pub fn at(step: usize, error: Error) -> Self {
        let step = Some(step);
        Self {
            step,
            ..error.into()
        }
    }
}

impl From<Error> for PipelineError {
    /// The transaction as a whole failed and was rolled back, or never began.
    fn from(error: Error) -> Self {
        Self {
            step: None,
            error,
            outcome: TransactionOutcome::RolledBack,
        }
    }
}

/// An open transaction. Dropping it rolls back.
pub trait Transaction: Send {
    /// Runs a statement with all its parameter sets. After an error the transaction can only be
    /// dropped.
    fn query<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>>;

    /// Lets PostgreSQL parse and describe a statement inside the transaction.
    fn describe<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
    ) -> BoxFuture<'a, Result<Description>>;

    /// Commits; deferred constraints speak here.
    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}

/// How a transaction is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `READ COMMITTED READ WRITE`: what a mutation or a batch gets.
    ReadWrite,
    /// `REPEATABLE READ READ ONLY`: one snapshot for several statements.
    Snapshot,
}

/// The terms on which work is accepted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// When the work is cancelled, if it has not ended by then.
    pub deadline: Option<Instant>,
    /// Who wrote the text of the statements.
    pub author: Author,
}

/// Who wrote the text of a statement, which decides on which connections it may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Author {
    /// A caller or a sub-user: a connection that logged in as the caller's role.
    #[default]
    Caller,
    /// The tenant's owner, in a stored method: a connection that callers of the tenant share.
    Owner,
    /// Tidegate itself: a connection that callers of the tenant share.
    Service,
}

/// What happened to a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Rows written, summed over the parameter sets; `None` for a statement that does not write.
    pub affected_rows: Option<u64>,
}

/// What PostgreSQL infers of a statement.
#[derive(Clone, Debug)]
pub struct Description {
    /// The type of each placeholder, in the order of `Statement::placeholders`.
    pub parameters: Vec<Type>,
    /// The result's columns; empty for a statement that returns no rows.
    pub columns: Vec<Column>,
}

/// Takes the rows of a statement.
pub trait RowSink: Send {
    /// Called once per statement before any row, also when no row follows (then possibly with
    /// no columns at all).
    fn columns(&mut self, columns: &[Column]) -> Result<()>;

    /// Takes one row.
    fn row(&mut self, row: RawRow<'_>) -> Result<Flow>;

    /// Waits until the sink can take more; called after [`Flow::Wait`].
    fn ready(&mut self) -> BoxFuture<'_, Result<()>>;

    /// Called by [`Executor::pipeline`] behind the last row of a statement, and before anything of
    /// the next one reaches its sink.
    fn end(&mut self, _: Completion) -> Result<()> {
        Ok(())
    }
}

/// Whether a sink takes the next row at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Send the next row.
    Continue,
    /// Call [`RowSink::ready`] first.
    Wait,
}
