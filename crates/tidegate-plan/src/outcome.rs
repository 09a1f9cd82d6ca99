//! What a plan reports besides the data.

use std::sync::Arc;

/// A segment of a path in the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathSegment {
    /// A member, by its response key.
    Key(Arc<str>),
    /// An element of a list, counted from 0.
    Index(usize),
}

/// A path in the response.
pub type Path = Vec<PathSegment>;

/// What a plan reports besides the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanOutcome {
    /// Values that GraphQL cannot represent. They are null in the data, or the nearest nullable
    /// value around them is. The caller's data is at fault (`BAD_USER_INPUT`).
    pub field_errors: Vec<FieldError>,
    /// The lists with more rows than [`Limits`](crate::Limits) allow.
    pub truncated: Vec<Path>,
    /// The byte offsets of the output at which the texts of [`RootField::Gap`] belong, in order.
    ///
    /// [`RootField::Gap`]: crate::operation::RootField::Gap
    pub gaps: Vec<usize>,
}

/// A value that GraphQL cannot represent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Its path in the response.
    pub path: Path,
    /// Why it cannot be represented.
    pub problem: &'static str,
}
