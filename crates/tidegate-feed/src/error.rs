//! Why a subscription is refused.

use std::sync::Arc;
use std::time::Duration;

use tidegate_changelog::LogError;

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a subscription is refused.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The table does not exist, or the role may not see it.
    #[error("the table does not exist, or may not be read")]
    NoTable,
    /// A column does not exist, or the role may not read it.
    #[error("the column `{0}` does not exist, or may not be read")]
    NoColumn(Box<str>),
    /// Changes of the table or of a column cannot be captured. The value is the reason.
    #[error("{0}")]
    Unsupported(String),
    /// The filter cannot be evaluated outside of PostgreSQL. The value is the reason.
    #[error("{0}")]
    Filter(String),
    /// The service lacks a privilege or a setting to capture changes.
    #[error("changes cannot be captured: {reason}; {remedy}")]
    CaptureNotAllowed {
        /// The missing privilege or setting.
        reason: String,
        /// The SQL to run or the setting to change.
        remedy: String,
    },
    /// The subscription could not be started within the time limit.
    #[error("{what} took longer than {limit:?}")]
    Timeout {
        /// The step that took too long.
        what: String,
        /// The time limit.
        limit: Duration,
    },
    /// The change log cannot be read at the moment. The value is the cause; `None` if the cause is
    /// unknown.
    #[error("the change log is not available at the moment; retry later")]
    Unavailable(#[source] Option<Box<dyn std::error::Error + Send + Sync>>),
    /// The role does not exist, or may not log in to the database.
    #[error("the role does not exist, or may not log in to this database")]
    NoRole,
    /// A query for privileges or collations failed.
    #[error("the privileges of the role could not be read")]
    Privileges(#[source] Arc<tidegate_sql::Error>),
    /// The connection of the subscription was closed.
    #[error("the connection was closed")]
    Closed,
    /// A bug of the service.
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
