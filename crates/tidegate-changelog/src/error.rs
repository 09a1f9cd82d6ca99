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
        /// What is missing.
        reason: String,
        /// What to run or to change.
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
        /// What was waited for.
        what: String,
        /// The longest wait.
        limit: Duration,
    },
    /// The log does not reach back that far.
    #[error("the log does not reach back that far")]
    Gone,
    /// PostgreSQL cannot be reached, is starting or stopping, or has no slot free.
    #[error("the change log cannot be read at the moment")]
    Unavailable(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A fault of this program.
    #[error("internal error")]
    Internal(#[source] Box<dyn std::error::Error + Send + Sync>),
}
