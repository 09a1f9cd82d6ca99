//! Errors of planning.

use std::sync::Arc;

use tidegate_sql::InputError;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an operation cannot be planned or its response cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An invalid value of the request. The text names its path and what was expected.
    #[error(transparent)]
    Input(#[from] InputError),
    /// An update or a delete without a condition.
    #[error("`{0}` needs an `id` or a `where` that is not empty")]
    Unbounded(Arc<str>),
    /// The root field with this response key cannot be planned.
    #[error("{1}")]
    Root(Arc<str>, #[source] Box<Error>),
    /// The rows of all levels, or the response, exceed this many bytes.
    #[error("the result is larger than {0} bytes")]
    TooLarge(u64),
    /// An internal error.
    #[error("internal error: {0}")]
    Internal(&'static str),
}
