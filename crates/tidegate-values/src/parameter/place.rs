//! Paths of values within a parameter, for errors.

use std::fmt;

use postgres_types::{Kind, Type};

use crate::error::ValueError;

/// The path of a value within a parameter, as a linked list from the value outwards. It is
/// formatted only when an error needs it.
#[derive(Clone, Copy)]
pub(super) enum ValuePath<'a> {
    /// The parameter itself, with a function that returns its path.
    Root(&'a dyn Fn() -> String),
    Element(&'a ValuePath<'a>, usize),
    Member(&'a ValuePath<'a>, &'a str),
}

impl ValuePath<'_> {
    /// The error for a value that does not fit its type.
    pub(super) fn invalid(&self, r#type: &Type, problem: impl fmt::Display) -> ValueError {
        ValueError::InvalidValue {
            place: self.to_string(),
            expected: written(r#type),
            problem: problem.to_string(),
        }
    }

    /// The error for a format that is given for a type that accepts none. The error names the
    /// placeholder, which is the path of the parameter after its first `.`.
    pub(super) fn unformatted(&self, problem: String) -> ValueError {
        let root = self.root();
        let name = root
            .split_once('.')
            .map_or(root.as_str(), |(_, name)| name)
            .to_owned();
        ValueError::InvalidFormat { name, problem }
    }

    fn root(&self) -> String {
        match self {
            Self::Root(place) => place(),
            Self::Element(outer, _) | Self::Member(outer, _) => outer.root(),
        }
    }
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(place) => f.write_str(&place()),
            Self::Element(outer, index) => write!(f, "{outer}[{index}]"),
            Self::Member(outer, name) => write!(f, "{outer}.{name}"),
        }
    }
}

/// The name of a type in SQL.
pub(super) fn written(r#type: &Type) -> String {
    match r#type.kind() {
        Kind::Array(element) => format!("{}[]", written(element)),
        _ => r#type.name().to_owned(),
    }
}
