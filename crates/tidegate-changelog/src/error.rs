//! Errors of change logs.

use std::time::Duration;

/// The result of the functions of [`ChangeLog`](crate::ChangeLog).
pub type LogResult<T> = Result<T, LogError>;

/// The reason why the change log cannot be read, or a table cannot be captured.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// A privilege or a setting is missing.
    #[error("the changes may not be captured: {reason}; {remedy}")]
    NotAllowed {
        /// The missing privilege or setting.
        reason: String,
        /// The SQL to run or the setting to change.
        remedy: String,
    },
    /// The table cannot be captured as requested.
    #[error("the changes of this table cannot be captured: {0}")]
    Unsupported(String),
    /// The table does not exist.
    #[error("the table does not exist")]
    NoTable,
    /// A wait took too long.
    #[error("{what} took longer than {limit:?}")]
    TimedOut {
        /// The step that took too long.
        what: String,
        /// The time limit.
        limit: Duration,
    },
    /// The log no longer reaches back to the requested position, or does not continue the requested
    /// log. Also returned if the database, a publication or a replication slot no longer exists.
    #[error("the log does not reach back that far")]
    Gone,
    /// PostgreSQL cannot be reached, is starting or stopping, or has no free connection or
    /// replication slot.
    #[error("the change log cannot be read at the moment")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A bug of this program.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}
