//! An operation on its way through its statements.

use std::sync::Arc;

use bytes::BytesMut;
use tidegate_catalog::Schema;
use tidegate_sql::{BoundStatement, RowSink};

use crate::{Limits, Operation, Outcome, Result};

/// An operation on its way: statements come out, rows go in, the response's data comes out.
///
/// ```text
/// let mut plan = Plan::new(&schema, operation, &limits)?;
/// match plan.way() { Alone => no transaction, Snapshot | ReadWrite => begin }
/// while let Some(step) = plan.next()? {
///     transaction.query(step.statement, step.sink).await?;    // an error: plan.key() names the field
/// }
/// commit; let outcome = plan.finish(&mut out)?;
/// ```
#[derive(Debug)]
pub struct Plan<'a> {
    schema: &'a Schema,
    operation: Operation<'a>,
    limits: Limits,
}

/// A statement to run, and who takes its rows.
#[expect(missing_debug_implementations, reason = "a sink cannot be shown")]
pub struct Step<'p> {
    /// The statement.
    pub statement: &'p BoundStatement,
    /// Who takes its rows.
    pub sink: &'p mut dyn RowSink,
}

/// In what the statements of a plan are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// At most one statement: `Executor::query`, no explicit transaction.
    Alone,
    /// `Mode::Snapshot`.
    Snapshot,
    /// `Mode::ReadWrite`.
    ReadWrite,
}

impl<'a> Plan<'a> {
    /// Plans an operation whose identifiers are those of `schema`.
    ///
    /// # Errors
    ///
    /// [`crate::Error::Input`] for a value that does not fit its column, with its place;
    /// [`crate::Error::Unbounded`].
    pub fn new(schema: &'a Schema, operation: Operation<'a>, limits: &Limits) -> Result<Self> {
        Ok(Self {
            schema,
            operation,
            limits: *limits,
        })
    }

    /// In what the statements are to be run.
    pub fn way(&self) -> Way {
        Way::Alone
    }

    /// The next statement, once the one before it has been run to its end; `None` when there is
    /// none left.
    ///
    /// # Errors
    ///
    /// [`crate::Error::TooLarge`].
    #[expect(clippy::should_implement_trait, reason = "its items borrow the plan")]
    pub fn next(&mut self) -> Result<Option<Step<'_>>> {
        let _ = (&self.schema, &self.operation, &self.limits);
        Ok(None)
    }

    /// The response key of the root field whose statement was given last: the path of its error.
    pub fn key(&self) -> Option<&Arc<str>> {
        None
    }

    /// Appends the whole data object, `{"getArtists":[…]}`, once all statements have been run.
    ///
    /// # Errors
    ///
    /// [`crate::Error::TooLarge`].
    pub fn finish(self, out: &mut BytesMut) -> Result<Outcome> {
        out.extend_from_slice(b"{}");
        Ok(Outcome::default())
    }
}
