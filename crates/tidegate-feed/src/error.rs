//! Why a subscription is refused.

use std::sync::Arc;
use std::time::Duration;

use tidegate_sql::log::LogError;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a subscription is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The table is not there, or the role may not see it.
    #[error("the table is not there")]
    NoTable,
    /// A column is not there, or the role may not read it.
    #[error("the column `{0}` is not there, or may not be read")]
    NoColumn(Box<str>),
    /// The table or a column gives no changes.
    #[error("{0}")]
    Unsupported(String),
    /// The filter cannot be judged outside of PostgreSQL.
    #[error("{0}")]
    Filter(String),
    /// The service may not capture the changes.
    #[error("the changes may not be captured: {reason}; {remedy}")]
    CaptureNotAllowed {
        /// What is missing.
        reason: String,
        /// What to run.
        remedy: String,
    },
    /// It took too long until nothing could be missed.
    #[error("{what} took longer than {limit:?}")]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
    },
    /// The log cannot be read now.
    #[error("the log of changes cannot be read now")]
    Unavailable(#[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// The role is not there, or may not log in to the database.
    #[error("PostgreSQL does not let this user log in")]
    NoRole,
    /// PostgreSQL did not answer a question about rights.
    #[error("PostgreSQL did not say what the role may read")]
    Rights(#[source] Arc<tidegate_sql::Error>),
    /// The connection of the subscriber is gone.
    #[error("the subscriber is gone")]
    Closed,
    /// Our fault.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl From<LogError> for Error {
    fn from(error: LogError) -> Self {
        match error {
            LogError::NotAllowed { reason, remedy } => Self::CaptureNotAllowed { reason, remedy },
            LogError::Unsupported(reason) => Self::Unsupported(reason),
            LogError::NoTable => Self::NoTable,
            LogError::TimedOut { what, limit } => Self::Timeout { what, limit },
            LogError::Gone => Self::Unavailable(None),
            LogError::Unavailable(source) => Self::Unavailable(Some(source)),
            LogError::Internal(source) => Self::Internal(source),
        }
    }
}
