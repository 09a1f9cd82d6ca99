//! Errors of values, in each direction.

/// The result of decoding PostgreSQL's bytes.
pub type Result<T, E = MalformedValue> = std::result::Result<T, E>;

/// Bytes from PostgreSQL that are not a value of the known type of their column. The attributes of
/// a composite type may have changed since the type was loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PostgreSQL sent bytes that are not a value of the column's type")]
pub struct MalformedValue;

/// A value or format of a request that does not fit its type: the caller's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    /// A value that does not fit the type of its placeholder.
    #[error("`{place}` is not a {expected}: {problem}")]
    InvalidValue {
        /// The path of the value, such as `params.tags[2]`.
        place: String,
        /// The PostgreSQL type.
        expected: String,
        /// What was found.
        problem: String,
    },
    /// A format for a column or placeholder that cannot have one, or a format that is invalid.
    #[error("`type_formats.{name}`: {problem}")]
    InvalidFormat {
        /// The placeholder or column.
        name: String,
        /// The problem.
        problem: String,
    },
}
