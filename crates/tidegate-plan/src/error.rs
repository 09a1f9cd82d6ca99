//! What is wrong with an operation.

use std::sync::Arc;

use tidegate_sql::InputError;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation cannot be planned.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value of the request is wrong; the text names its place and what was expected.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An update or a delete that would hit every row.
    #[error("`{0}` needs an `id` or a `where` that is not empty")]
    Unbounded(Arc<str>),
    /// The root field with this response key cannot be planned.
    #[error("{1}")]
    Root(Arc<str>, #[source] Box<Error>),
    /// The rows of all levels together, or the response, are larger than so many bytes.
    #[error("the result is larger than {0} bytes")]
    TooLarge(u64),
    /// Our fault.
    #[error("internal error: {0}")]
    Internal(&'static str),
}
