//! Errors of filters. All of them are the caller's fault.

use tidegate_values::ValueError;
use tidegate_values::json::JsonKind;

/// A result with the error of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why a request has no valid filter, or why a filter cannot become a matcher.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The JSON value is of another kind than expected.
    #[error("`{place}` is {found}, expected {expected}")]
    WrongKind {
        /// The path of the value, such as `where.and[1].price.gt`.
        place: String,
        /// The kind of the value.
        found: JsonKind,
        /// The expected kind, in the words of the error message.
        expected: String,
    },
    /// The value is of the right kind, but not valid for its type.
    #[error("`{place}` is not a {expected}: {problem}")]
    InvalidValue {
        /// The path of the value.
        place: String,
        /// The PostgreSQL type.
        expected: String,
        /// The reason why the value is not valid.
        problem: String,
    },
    /// The name is not a column or relationship of the relation.
    #[error("`{place}` names no column and no relationship of `{relation}`")]
    UnknownName {
        /// The path, whose last part is the unknown name.
        place: String,
        /// The name of the relation, as PostgreSQL spells it.
        relation: Box<str>,
    },
    /// There is no operator of this name, or the column's type does not have the operator.
    #[error("`{place}` is not an operator for {type}, expected {expected}")]
    UnknownOperator {
        /// The path, whose last part is the operator.
        place: String,
        /// The column's type.
        r#type: String,
        /// The operators of the column's type. If a value of the type can be an object, also the
        /// members of this object.
        expected: String,
    },
    /// An object that must have operators is empty, or a composite value lacks an attribute.
    #[error("`{place}` has no operator, expected {expected}")]
    IncompleteObject {
        /// The path of the object.
        place: String,
        /// The operators of the column's type. If a value of the type can be an object, also the
        /// members of this object.
        expected: String,
    },
    /// An object has two members of the same name.
    #[error("`{place}` is given twice")]
    Repeated {
        /// The path, whose last part is the repeated name.
        place: String,
    },
    /// The objects are nested too deeply.
    #[error("`{place}` is nested too deeply: at most {most} levels")]
    TooDeep {
        /// The path of the first object that is too deep.
        place: String,
        /// The deepest nesting that is allowed.
        most: usize,
    },
    /// The filter has too many conditions.
    #[error("`{place}` is too many conditions: at most {most} in a filter")]
    TooLarge {
        /// The path of the first condition beyond the limit.
        place: String,
        /// The largest number of conditions that is allowed.
        most: usize,
    },
    /// The JSON cannot be parsed, or a string has characters that PostgreSQL cannot store.
    #[error("`{place}` cannot be read: {problem}")]
    Unreadable {
        /// The path of the JSON value.
        place: String,
        /// The reason why the JSON is rejected.
        problem: String,
    },
    /// A condition text cannot be parsed.
    #[error("the condition cannot be read at character {position}: {problem}")]
    Condition {
        /// The position in the text, counted in characters from 1.
        position: usize,
        /// The problem, for example the text that was found and the text that was expected.
        problem: String,
    },
    /// A condition cannot be evaluated exactly outside PostgreSQL.
    #[error("`{place}` cannot be evaluated for events: {problem}")]
    Unsupported {
        /// The path of the condition.
        place: String,
        /// The reason, and what to do instead.
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
            | Self::IncompleteObject { place, .. }
            | Self::Repeated { place }
            | Self::TooDeep { place, .. }
            | Self::TooLarge { place, .. }
            | Self::Unreadable { place, .. }
            | Self::Unsupported { place, .. } => Some(place),
            Self::Condition { .. } => None,
        }
    }

    /// The `problem` of an [`Error::Condition`] for this error. An invalid value or operator is
    /// described without its path, because [`Error::Condition`] has a position in the text instead.
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

    /// The error for a value that `tidegate_values` cannot encode as the type of its column.
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
