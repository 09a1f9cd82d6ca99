//! The port to filters: which changes a subscription wants.

use std::fmt::Debug;
use std::sync::Arc;

use crate::change::Row;
use crate::shape::Shape;

/// A condition on rows.
pub trait Predicate: Debug + Send + Sync {
    /// The columns that it looks at.
    fn columns(&self) -> Vec<Box<str>>;

    /// A column and texts of which its value must be one, if the condition holds at all; changes
    /// with other values are then never shown to it. Only for types whose values are equal exactly
    /// when their texts are.
    fn equality(&self) -> Option<Equality>;

    /// Readies the condition for rows of a shape.
    ///
    /// # Errors
    /// What does not fit the shape, in words.
    fn compile(&self, shape: &Shape) -> Result<Arc<dyn Matcher>, String>;
}

/// A column that must have one of some values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equality {
    /// The column.
    pub column: Box<str>,
    /// The values' text forms, as PostgreSQL writes them.
    pub values: Vec<Box<str>>,
}

/// A condition on the rows of one shape.
pub trait Matcher: Send + Sync {
    /// Whether a row passes.
    fn judge(&self, row: Row<'_>) -> Verdict;
}

/// What a condition says of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It holds.
    Pass,
    /// It is false or unknown.
    Fail,
    /// A value that it needs is absent.
    Absent,
}
