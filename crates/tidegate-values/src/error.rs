//! Errors of decoding and of encoding values.

/// The result of decoding bytes from PostgreSQL.
pub type Result<T, E = MalformedValue> = std::result::Result<T, E>;

/// PostgreSQL sent bytes that are not a value of the type that this crate assumes for the column.
/// This happens, for example, if the attributes of a composite type have changed since the type was
/// loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PostgreSQL sent bytes that are not a value of the column's type")]
pub struct MalformedValue;

/// The reason why a value or a format in a request is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// A value does not fit the type of its placeholder.
    #[error("`{place}` is not a {expected}: {problem}")]
    InvalidValue {
        /// The path of the value, such as `params.tags[2]`.
        place: String,
        /// The name of the PostgreSQL type.
        expected: String,
        /// The problem with the value.
        problem: String,
    },
    /// A column or placeholder cannot have a format, or its format is invalid.
    #[error("`type_formats.{name}`: {problem}")]
    InvalidFormat {
        /// The name of the placeholder or column.
        name: String,
        /// The problem with the format.
        problem: String,
    },
}
