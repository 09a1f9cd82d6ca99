//! What can be wrong with a value, in each direction.

/// The result of reading PostgreSQL's bytes.
pub type Result<T, E = MalformedValue> = std::result::Result<T, E>;

/// Bytes from PostgreSQL that are no value of the type that was known for their column. A composite
/// type may have got other attributes since it was looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PostgreSQL sent bytes that are no value of the column's type")]
pub struct MalformedValue;

/// A value or a format of a request that does not fit its type: the caller's fault.
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
    /// A format on a column or placeholder that cannot have one, or that cannot be read.
    #[error("`type_formats.{name}`: {problem}")]
    InvalidFormat {
        /// The placeholder or column.
        name: String,
        /// What is wrong.
        problem: String,
    },
}
