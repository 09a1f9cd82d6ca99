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

/// A field that rows are read for: a root field, or the end of a relationship below one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of the root field.
    pub root: usize,
    /// The response keys that lead from there to the field.
    pub below: Vec<Arc<str>>,
}

impl Place {
    /// A root field, by its number.
    pub fn root(root: usize) -> Self {
        Self {
            root,
            below: Vec::new(),
        }
    }

    /// Whether it is that field or stands below it.
    pub fn is_within(&self, other: &Self) -> bool {
        self.root == other.root && self.below.starts_with(&other.below)
    }
}

/// A path in the response.
pub type Path = Vec<Segment>;

/// What the response says beside its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Values that GraphQL cannot show: null stands at their place, or at that of the nearest
    /// value around it that may be null. The caller's data is at fault (`BAD_USER_INPUT`).
    pub flaws: Vec<Flaw>,
    /// Where null stands for a field that has failed, of those that are no root fields.
    pub lost: Vec<Lost>,
    /// The lists that have more rows than are shown, because of [`Limits`](crate::Limits).
    pub truncated: Vec<Path>,
    /// Where in the output the text of each [`RootField::Gap`] belongs, in their order.
    ///
    /// [`RootField::Gap`]: crate::operation::RootField::Gap
    pub gaps: Vec<usize>,
}

/// Where null stands for a field that has failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The field.
    pub place: Place,
    /// One of the places of the response where it stands.
    pub path: Path,
}

/// A value that GraphQL cannot show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// Where it would stand.
    pub path: Path,
    /// Why it cannot be shown.
    pub problem: &'static str,
}
