//! The path of a value in a request, for errors.

use std::fmt;

/// A path as a linked list from the value outwards. It is formatted only when an error needs it.
#[derive(Clone, Copy)]
pub(crate) enum Path<'a> {
    /// The start of the path: the name of the filter, such as `where`, or the position in a
    /// condition text.
    Root(&'a str),
    /// A member of an object.
    Member(&'a Path<'a>, &'a str),
    /// An element of an array.
    Element(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(place) => f.write_str(place),
            Self::Member(outer, name) => write!(f, "{outer}.{name}"),
            Self::Element(outer, index) => write!(f, "{outer}[{index}]"),
        }
    }
}
