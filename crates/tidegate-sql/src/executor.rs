//! The port that runs statements.
//!
//! Rows are pushed into a [`RowSink`] as borrowed bytes, so that nothing between PostgreSQL and
//! the response owns a row.

use std::future::Future;
use std::pin::Pin;
use std::time::Instant;

use postgres_types::Type;

use crate::column::{Column, RawRow};
use crate::error::Result;
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

    /// Lets PostgreSQL parse and describe a statement; nothing runs.
    fn describe<'a>(
        &'a self,
        who: &'a Principal,
        statement: &'a BoundStatement,
        terms: &'a Terms,
    ) -> BoxFuture<'a, Result<Description>>;
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
}

/// Whether a sink takes the next row at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Send the next row.
    Continue,
    /// Call [`RowSink::ready`] first.
    Wait,
}
