//! What is to be said beside the data.

use std::sync::Arc;

/// A step of a path in the response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// A member, by its response key.
    Key(Arc<str>),
    /// An element of a list, from 0.
    Index(usize),
}

/// A path in the response.
pub type Path = Vec<Segment>;

/// What the response says beside its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Values that GraphQL cannot show: null stands at their place, or at that of the nearest
    /// value around it that may be null. The caller's data is at fault (`BAD_USER_INPUT`).
    pub flaws: Vec<Flaw>,
    /// The lists that have more rows than are shown, because of [`Limits`](crate::Limits).
    pub truncated: Vec<Path>,
    /// Where in the output the text of each [`RootField::Gap`] belongs, in their order.
    ///
    /// [`RootField::Gap`]: crate::operation::RootField::Gap
    pub gaps: Vec<usize>,
}

/// A value that GraphQL cannot show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Where it would stand.
    pub path: Path,
    /// Why it cannot be shown.
    pub problem: &'static str,
}
