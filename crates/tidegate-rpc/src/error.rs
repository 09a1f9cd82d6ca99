//! Why a call was not run, or failed.

use std::sync::Arc;

use tidegate_methods::StoreError;
use tidegate_sql::InputError;
use tidegate_values::ValueError;

/// Why a call has no result. What its caller is told is the business of [`crate::Reply`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's fault: the message is no JSON text.
    #[error("the message is not valid JSON: {problem}")]
    NoJson {
        /// What was found, and where.
        problem: String,
    },
    /// The caller's fault: JSON, but no request object.
    #[error("{0}")]
    InvalidRequest(&'static str),
    /// The caller's fault: a message beyond the limits.
    #[error("more than {limit} {what} in one message")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many are accepted.
        limit: usize,
    },
    /// The caller's fault: the tenant has no such method.
    #[error("there is no such method")]
    MethodNotFound,
    /// The caller's fault: a parameter is missing, is none of the statement's, or does not fit.
    #[error(transparent)]
    Params(InputError),
    /// The fault of whoever defined the method: its statement, a type hint or a format cannot be
    /// used.
    #[error(transparent)]
    Definition(InputError),
    /// The statement ran and failed, or could not run; the cause says whose fault it is.
    #[error(transparent)]
    Statement(tidegate_sql::Error),
    /// The transaction of a batch could not be committed, and perhaps it was all the same.
    #[error("it is not known whether the batch was committed")]
    InDoubt(#[source] tidegate_sql::Error),
    /// The method could not be looked up.
    #[error("the method could not be looked up")]
    Registry(#[source] StoreError),
    /// Nobody's fault here: another call of the batch failed.
    #[error("another call of the batch failed, and nothing of it took effect")]
    RolledBack {
        /// What failed, as an error object, where no other answer tells it.
        cause: Option<Arc<str>>,
    },
}

impl Error {
    /// What an error of a prepared statement means to its call; `placeholders` are the names of the
    /// statement's parameters.
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
            // Of a column it is the definition's; of a placeholder its value does not match.
            InputError::Value(ValueError::InvalidFormat { name, .. })
                if placeholders.contains(name) =>
            {
                Self::Params(input)
            }
            _ => Self::Definition(input),
        }
    }

    /// Whether whoever runs the service should hear of it.
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
