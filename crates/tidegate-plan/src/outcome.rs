//! The facts that a plan reports besides the data.

use std::sync::Arc;

/// A segment of a path in the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSegment {
    /// A member of an object, by its response key.
    Key(Arc<str>),
    /// An element of a list, counted from 0.
    Index(usize),
}

/// A path in the response.
pub type Path = Vec<PathSegment>;

/// The facts that a plan reports besides the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanOutcome {
    /// An error for each value that GraphQL cannot represent. In the data, null replaces the value,
    /// or the nearest nullable value that encloses it. The error has the code `BAD_USER_INPUT`,
    /// because the stored data causes it.
    pub field_errors: Vec<FieldError>,
    /// The paths of the lists that had more rows than [`Limits`](crate::Limits) allow and were cut.
    pub truncated: Vec<Path>,
    /// The byte offsets in the output buffer at which the caller inserts the texts of the fields
    /// [`RootField::Inserted`], in ascending order.
    ///
    /// [`RootField::Inserted`]: crate::operation::RootField::Inserted
    pub insertion_points: Vec<usize>,
}

/// A value that GraphQL cannot represent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The path of the value in the response.
    pub path: Path,
    /// The reason why the value cannot be represented.
    pub problem: &'static str,
}
