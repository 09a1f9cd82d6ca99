//! Errors of calls.

use std::sync::Arc;

use tidegate_methods::StoreError;
use tidegate_sql::InputError;
use tidegate_values::ValueError;

/// The reason why a call has no result. [`crate::Reply`] decides which part of the reason the
/// response shows.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The message is not JSON.
    #[error("the message is not valid JSON: {problem}")]
    NoJson {
        /// The error of the JSON parser, with its position.
        problem: String,
    },
    /// The message is valid JSON, but not a valid request object.
    #[error("{0}")]
    InvalidRequest(&'static str),
    /// The message exceeds a limit.
    #[error("more than {limit} {what} in one message")]
    TooMany {
        /// The name of the counted items, such as `calls`.
        what: &'static str,
        /// The limit that is exceeded.
        limit: usize,
    },
    /// The tenant has no method of this name.
    #[error("method not found")]
    MethodNotFound,
    /// A member called a method that the tenant's owner did not write. Members share a role and
    /// its sessions, so a method of a sub-user could read data that a previous member left there.
    #[error("members call only methods that the owner of the database wrote")]
    NotForMembers,
    /// A parameter is missing, unknown or invalid.
    #[error(transparent)]
    Params(InputError),
    /// The definition of the method is invalid: its statement, a type hint or a format. The author
    /// of the method is at fault.
    #[error(transparent)]
    Definition(InputError),
    /// The statement failed or could not run. The source shows whether the caller, PostgreSQL or
    /// the service is at fault.
    #[error(transparent)]
    Statement(tidegate_sql::Error),
    /// The commit of a batch failed, and it is unknown whether the batch was committed.
    #[error("it is not known whether the batch was committed")]
    InDoubt(#[source] tidegate_sql::Error),
    /// The method could not be looked up.
    #[error("the method could not be looked up")]
    Registry(#[source] StoreError),
    /// The call was rolled back, because another call of the batch or the commit failed.
    #[error("another call of the batch failed, and nothing of it took effect")]
    RolledBack {
        /// The error object of the call or commit that failed; `None` if the response to the failed
        /// call contains the error object.
        cause: Option<Arc<str>>,
    },
}

impl Error {
    /// The error for a failed statement of a method.
    pub fn of_statement(error: tidegate_sql::Error) -> Self {
        match error {
            tidegate_sql::Error::Input(input) => Self::of_input(input),
            error => Self::Statement(error),
        }
    }

    /// The error for input that was refused. A format for a type that accepts no format is an error
    /// of the definition. This includes the format of a placeholder, because the call would fail
    /// with any value.
    pub(crate) fn of_input(input: InputError) -> Self {
        match &input {
            InputError::MissingParameter { .. }
            | InputError::ExtraParameter { .. }
            | InputError::Value(ValueError::InvalidValue { .. }) => Self::Params(input),
            _ => Self::Definition(input),
        }
    }
}
