//! Errors of planning.

use std::sync::Arc;

use tidegate_sql::InputError;

/// A result whose error is [`Error`] by default.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why an operation cannot be planned, or why its response cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value of the request is invalid. The text names the path of the value and what was
    /// expected.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The update or delete in the root field with this response key has no condition.
    #[error("`{0}` needs an `id` or a `where` that is not empty")]
    Unbounded(Arc<str>),
    /// The root field with this response key cannot be planned.
    #[error("{1}")]
    Root(Arc<str>, #[source] Box<Error>),
    /// The response has, or would have, more than this many bytes.
    #[error("the result is larger than {0} bytes")]
    TooLarge(u64),
    /// This crate or its caller has a bug.
    #[error("internal error: {0}")]
    Internal(&'static str),
}
