//! Where a value stands, for errors.

use std::fmt;

use postgres_types::{Kind, Type};

use crate::error::ValueError;

/// A path into a parameter, as a list from the inside out: nothing is written until an error
/// needs it.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// The parameter itself.
    Root(&'a dyn Fn() -> String),
    Element(&'a Place<'a>, usize),
    Member(&'a Place<'a>, &'a str),
}

impl Place<'_> {
    /// The error of a value that does not fit its type.
    pub(super) fn invalid(&self, r#type: &Type, problem: impl fmt::Display) -> ValueError {
        ValueError::InvalidValue {
            place: self.to_string(),
            expected: written(r#type),
            problem: problem.to_string(),
        }
    }

    /// The error of a format on a type that takes none.
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

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root(place) => f.write_str(&place()),
            Self::Element(outer, index) => write!(f, "{outer}[{index}]"),
            Self::Member(outer, name) => write!(f, "{outer}.{name}"),
        }
    }
}

/// A type's name as SQL writes it.
pub(super) fn written(r#type: &Type) -> String {
    match r#type.kind() {
        Kind::Array(element) => format!("{}[]", written(element)),
        _ => r#type.name().to_owned(),
    }
}
