//! Why a change log cannot be read.

use std::time::Duration;

/// The result of the port's functions.
pub type LogResult<T> = Result<T, LogError>;

/// Why the log cannot be read.
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
        /// The awaited event.
        what: String,
        /// The longest wait.
        limit: Duration,
    },
    /// The log no longer reaches back to the requested position.
    #[error("the log does not reach back that far")]
    Gone,
    /// PostgreSQL cannot be reached, is starting or stopping, or has no free slot.
    #[error("the change log cannot be read at the moment")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A bug of this program.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}
