//! Errors of calls.

use std::sync::Arc;

use tidegate_methods::StoreError;
use tidegate_sql::InputError;
use tidegate_values::ValueError;

/// Why a call has no result. [`crate::Reply`] decides what the caller is told.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The message is not JSON.
    #[error("the message is not valid JSON: {problem}")]
    NoJson {
        /// What was found, and where.
        problem: String,
    },
    /// Valid JSON that is not a request object.
    #[error("{0}")]
    InvalidRequest(&'static str),
    /// The message exceeds a limit.
    #[error("more than {limit} {what} in one message")]
    TooMany {
        /// What exceeds the limit.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
    /// The tenant has no such method.
    #[error("method not found")]
    MethodNotFound,
    /// A parameter is missing, unknown or invalid.
    #[error(transparent)]
    Params(InputError),
    /// The definition is invalid: its statement, a type hint or a format. The author of the method
    /// is at fault.
    #[error(transparent)]
    Definition(InputError),
    /// The statement failed or could not run. The source says who is at fault.
    #[error(transparent)]
    Statement(tidegate_sql::Error),
    /// The commit of a batch failed, and it is unknown whether it took effect.
    #[error("it is not known whether the batch was committed")]
    InDoubt(#[source] tidegate_sql::Error),
    /// The method could not be looked up.
    #[error("the method could not be looked up")]
    Registry(#[source] StoreError),
    /// Another call of the batch failed.
    #[error("another call of the batch failed, and nothing of it took effect")]
    RolledBack {
        /// The other call's error object, if no other response contains it.
        cause: Option<Arc<str>>,
    },
}

impl Error {
    /// Maps an error of a prepared statement; `placeholders` are the names of the statement's
    /// parameters.
    pub fn of_statement(error: tidegate_sql::Error, placeholders: &[String]) -> Self {
        match error {
            tidegate_sql::Error::Input(input) => Self::of_input(input, placeholders),
            error => Self::Statement(error),
        }
    }

    pub(crate) fn of_input(input: InputError, placeholders: &[String]) -> Self {
        match &input {
            InputError::MissingParameter { .. }
            | InputError::ExtraParameter { .. }
            | InputError::Value(ValueError::InvalidValue { .. }) => Self::Params(input),
            // For a column the definition is at fault, for a placeholder its value.
            InputError::Value(ValueError::InvalidFormat { name, .. })
                if placeholders.contains(name) =>
            {
                Self::Params(input)
            }
            _ => Self::Definition(input),
        }
    }

    /// Whether the operator should be notified.
    pub fn is_fault_of_service(&self) -> bool {
        use tidegate_sql::Error as Sql;
        matches!(
            self,
            Self::Statement(Sql::Internal(_) | Sql::Unavailable { .. } | Sql::SinkClosed)
                | Self::InDoubt(_)
                | Self::Registry(_)
        )
    }
}
