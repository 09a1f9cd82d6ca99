//! Errors of filters. All of them are the caller's fault.

use tidegate_values::ValueError;
use tidegate_values::json::JsonKind;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request has no valid filter, or a filter cannot become a matcher.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A JSON value of another kind was expected.
    #[error("`{place}` is {found}, expected {expected}")]
    WrongKind {
        /// The path of the value, such as `where.and[1].price.gt`.
        place: String,
        /// The kind that was found.
        found: JsonKind,
        /// What was expected.
        expected: String,
    },
    /// A value of the right kind that is not valid for its type.
    #[error("`{place}` is not a {expected}: {problem}")]
    InvalidValue {
        /// The path of the value.
        place: String,
        /// The PostgreSQL type.
        expected: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A name that is not a column or relationship of the relation.
    #[error("`{place}` names no column and no relationship of `{relation}`")]
    UnknownName {
        /// The path, which ends in the name.
        place: String,
        /// The relation, as PostgreSQL spells it.
        relation: Box<str>,
    },
    /// An operator that does not exist, or not for the column's type.
    #[error("`{place}` is not an operator for {type}, expected {expected}")]
    UnknownOperator {
        /// The path, which ends in the operator.
        place: String,
        /// The column's type.
        r#type: String,
        /// The valid operators.
        expected: String,
    },
    /// An object of operators that is empty.
    #[error("`{place}` has no operator, expected {expected}")]
    MissingOperator {
        /// The path of the object.
        place: String,
        /// The valid operators.
        expected: String,
    },
    /// An object has a member twice.
    #[error("`{place}` is given twice")]
    Repeated {
        /// The path, which ends in the member.
        place: String,
    },
    /// The objects are nested too deeply.
    #[error("`{place}` is nested too deeply: at most {most} levels")]
    TooDeep {
        /// The path of the first object that is too deep.
        place: String,
        /// The limit.
        most: usize,
    },
    /// The filter has too many conditions.
    #[error("`{place}` is one condition too many: at most {most} in a filter")]
    TooLarge {
        /// The path of the first condition beyond the limit.
        place: String,
        /// The limit.
        most: usize,
    },
    /// JSON that cannot be parsed, or a string that PostgreSQL could not store.
    #[error("`{place}` cannot be read: {problem}")]
    Unreadable {
        /// The path.
        place: String,
        /// What is wrong.
        problem: String,
    },
    /// A condition text that cannot be parsed.
    #[error("the condition cannot be read at character {position}: {problem}")]
    Condition {
        /// Character position (from 1) in the text.
        position: usize,
        /// What was found and what was expected.
        problem: String,
    },
    /// A condition that cannot be evaluated exactly outside PostgreSQL.
    #[error("`{place}` cannot be judged for events: {problem}")]
    Unsupported {
        /// The path of the condition.
        place: String,
        /// Why not, and what to do instead.
        problem: String,
    },
}

impl Error {
    /// The path of the value in the request, such as `where.and[1].price.gt`. `None` for a
    /// condition text, whose errors have a position instead.
    pub fn place(&self) -> Option<&str> {
        match self {
            Self::WrongKind { place, .. }
            | Self::InvalidValue { place, .. }
            | Self::UnknownName { place, .. }
            | Self::UnknownOperator { place, .. }
            | Self::MissingOperator { place, .. }
            | Self::Repeated { place }
            | Self::TooDeep { place, .. }
            | Self::TooLarge { place, .. }
            | Self::Unreadable { place, .. }
            | Self::Unsupported { place, .. } => Some(place),
            Self::Condition { .. } => None,
        }
    }

    /// The problem of a value without its path, for errors that have a position.
    pub(crate) fn without_place(&self) -> String {
        match self {
            Self::WrongKind {
                found, expected, ..
            } => format!("{found}, expected {expected}"),
            Self::InvalidValue {
                expected, problem, ..
            } => format!("not a {expected}: {problem}"),
            Self::UnknownOperator {
                r#type, expected, ..
            } => format!("no such comparison for {type}, only {expected}"),
            other => other.to_string(),
        }
    }

    /// The error of a value that has no text form of its type.
    pub(crate) fn of_value(error: ValueError, place: impl std::fmt::Display) -> Self {
        match error {
            ValueError::InvalidValue {
                place,
                expected,
                problem,
            } => Self::InvalidValue {
                place,
                expected,
                problem,
            },
            other @ ValueError::InvalidFormat { .. } => Self::Unreadable {
                place: place.to_string(),
                problem: other.to_string(),
            },
        }
    }
}
