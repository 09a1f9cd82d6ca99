//! The interface for running statements.
//!
//! Rows are pushed into a [`RowSink`] as borrowed bytes, so that no code between PostgreSQL and the
//! response has to own a row.

use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

use postgres_types::Type;
use tidegate_values::{Column, RawRow};

use crate::error::{Error, Result};
use crate::principal::{Login, Principal};
use crate::statement::BoundStatement;
use crate::wal_position::{ReadFrom, WalPosition};

/// A boxed future, which the methods of object-safe traits return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Runs statements, each as a principal.
pub trait Executor: Send + Sync {
    /// Prepares one statement once and runs it with all its parameter sets, in a transaction of its
    /// own and in as few round trips as possible.
    ///
    /// The transaction has ended when the future completes. Rows may have reached the sink before
    /// an error. Dropping the future cancels the statement in PostgreSQL.
    fn query<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>>;

    /// Opens a transaction as the principal. The deadline of `options` applies to the whole
    /// transaction.
    fn begin<'a>(
        &'a self,
        who: &'a Principal,
        mode: Mode,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Box<dyn Transaction>>>;

    /// Runs the statements of a pipeline in order, in one transaction, and commits.
    ///
    /// An executor may send all statements in one write. This default implementation runs them one
    /// after the other.
    ///
    /// # Errors
    ///
    /// The first failure, with the outcome of the transaction. Rows may have reached the sinks
    /// before the failure.
    fn pipeline<'a>(
        &'a self,
        who: &'a Principal,
        pipeline: Pipeline<'a>,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Vec<Completion>, PipelineError>> {
        Box::pin(async move {
            let transaction = self.begin(who, pipeline.mode, options).await?;
            pipeline.run_in(transaction).await
        })
    }

    /// Has PostgreSQL parse and describe a statement without running it.
    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        options: &'a QueryOptions,
    ) -> BoxFuture<'a, Result<Description>>;

    /// The position in the WAL that follows the most recent write with this login. `None` if there
    /// was no such write in the last minute, if its position is unknown, or if the executor has no
    /// replicas.
    fn last_write(&self, _: &Login) -> Option<WalPosition> {
        None
    }
}

/// Statements that are sent together. None of them needs the rows of another.
#[expect(missing_debug_implementations, reason = "a sink cannot be shown")]
pub struct Pipeline<'a> {
    /// The mode of the transaction in which the statements run.
    pub mode: Mode,
    /// The statements, in order.
    pub steps: Vec<PipelineStep<'a>>,
    /// When to commit the transaction.
    pub commit: Commit,
}

impl Pipeline<'_> {
    /// Runs the statements one after the other in an open transaction of the pipeline's mode, and
    /// commits. An error of a sink rolls everything back, even with [`Commit::Together`].
    ///
    /// # Errors
    ///
    /// The errors of [`Executor::pipeline`].
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
pub struct PipelineStep<'a> {
    /// The statement.
    pub statement: &'a BoundStatement,
    /// The sink that receives the rows of the statement.
    pub sink: &'a mut dyn RowSink,
}

/// When to commit the transaction of a [`Pipeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commit {
    /// COMMIT is sent with the statements, in the same write. An error of a sink may come too late
    /// to roll the transaction back; [`PipelineError::outcome`] says whether the transaction was
    /// committed.
    Together,
    /// COMMIT is sent after the sinks have accepted all rows, so that an error of a sink rolls
    /// everything back. There are two exceptions, in which COMMIT is sent with the statements:
    ///
    /// - There is nothing to roll back, because the mode is [`Mode::Snapshot`], or all statements
    ///   are reads without side effects.
    /// - No statement has result columns. An error of a sink then comes too late for a rollback, so
    ///   a sink must not fail for a statement without columns.
    AfterRows,
}

/// The failure of a [`Pipeline`].
#[derive(Debug)]
pub struct PipelineError {
    /// The index of the statement that failed; `None` if the transaction as a whole failed.
    pub step: Option<usize>,
    /// The error.
    pub error: Error,
    /// The outcome of the transaction.
    pub outcome: TransactionOutcome,
}

/// The outcome of the transaction of a failed [`Pipeline`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionOutcome {
    /// The transaction was rolled back.
    RolledBack,
    /// The transaction was committed, and then a sink failed.
    Committed,
    /// The outcome is not known: the connection was lost or the deadline passed after COMMIT had
    /// been sent.
    Unknown,
}

impl PipelineError {
    /// The failure of the statement with the index `step`. The transaction was rolled back.
    pub fn at(step: usize, error: Error) -> Self {
        let step = Some(step);
        Self {
            step,
            ..error.into()
        }
    }
}

impl From<Error> for PipelineError {
    /// The failure of the transaction as a whole. The transaction was rolled back or never opened.
    fn from(error: Error) -> Self {
        Self {
            step: None,
            error,
            outcome: TransactionOutcome::RolledBack,
        }
    }
}

/// An open transaction. Dropping it rolls it back.
pub trait Transaction: Send {
    /// Runs a statement with all its parameter sets. After an error the transaction is unusable and
    /// must be dropped.
    fn query<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
        sink: &'a mut dyn RowSink,
    ) -> BoxFuture<'a, Result<Completion>>;

    /// Has PostgreSQL parse and describe a statement inside the transaction.
    fn describe<'a>(
        &'a mut self,
        statement: &'a BoundStatement,
    ) -> BoxFuture<'a, Result<Description>>;

    /// Commits the transaction. Deferred constraints are checked now.
    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<()>>;
}

/// The mode of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `READ COMMITTED READ WRITE`, for mutations and batches.
    ReadWrite,
    /// `REPEATABLE READ READ ONLY`: one snapshot for several statements.
    Snapshot,
}

/// The options of a statement or transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueryOptions {
    /// The time at which the statement is cancelled; `None` for no limit.
    pub deadline: Option<Instant>,
    /// The author of the statements' texts.
    pub author: Author,
    /// The limit that the statement's connection counts towards.
    pub limit: ConnectionLimit,
    /// The servers on which a read may run. A write always runs on the primary.
    pub read_from: ReadFrom,
}

/// The limit that a connection counts towards, if many callers share the role of the connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionLimit {
    /// The limit of the caller.
    #[default]
    Caller,
    /// The common limit of all members of a group for subscriptions to the table with this OID. A
    /// statement for subscriptions may serve several members, or several members may wait for its
    /// end. Therefore it does not count towards the limit of a single member.
    Subscriptions(u32),
}

/// The author of a statement's text. The author determines the connections on which the statement
/// may run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Author {
    /// A caller, or a sub-user who wrote a method. The statement runs on a connection that logged
    /// in as the caller's role.
    #[default]
    Caller,
    /// The tenant's owner, who wrote a method. The statement may run on a shared connection of the
    /// tenant.
    Owner,
    /// Tidegate itself. The statement may run on a shared connection of the tenant.
    Service,
}

/// The result of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// The number of rows written, summed over the parameter sets. `None` for a statement that does
    /// not write, and for a `SELECT` that writes in its `WITH`, because PostgreSQL does not report
    /// the number.
    pub affected_rows: Option<u64>,
}

/// The types that PostgreSQL infers for a statement.
#[derive(Clone, Debug)]
pub struct Description {
    /// The type of each placeholder, in the order of `Statement::placeholders`.
    pub parameters: Vec<Type>,
    /// The result's columns; empty for a statement that returns no rows.
    pub columns: Vec<Column>,
}

/// Receives the rows of a statement.
pub trait RowSink: Send {
    /// Called once for each statement before its rows, even if no row follows. `columns` is empty
    /// for a statement that has no result columns.
    fn columns(&mut self, columns: &[Column]) -> Result<()>;

    /// Receives one row.
    fn row(&mut self, row: RawRow<'_>) -> Result<Flow>;

    /// Waits until the sink can accept the next row. Called after [`Flow::Wait`].
    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Called by [`Executor::pipeline`] after all rows of a statement, and before the sink of the
    /// next statement is called.
    fn end(&mut self, _: Completion) -> Result<()> {
        Ok(())
    }
}

/// Whether a sink can accept the next row immediately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The executor may push the next row.
    Continue,
    /// The executor must wait for [`RowSink::ready`] before it pushes the next row.
    Wait,
}
