//! Errors of requests that get no connection. Several requests may share one error.

use std::time::Duration;

use tidegate_sql::{DatabaseError, Error, LoginRefused};

use super::connector::{Cause, OpenError};

/// The delay after which a client should retry if the pool is exhausted.
const EXHAUSTED: Duration = Duration::from_secs(1);
/// The shortest delay after which a client should retry while PostgreSQL is unavailable.
const MIN_RETRY_AFTER: Duration = Duration::from_millis(100);

/// Why a request gets no connection.
#[derive(Clone, Debug)]
pub(super) enum AcquireError {
    Exhausted,
    Unavailable { retry_after: Duration, cause: Cause },
    LoginRefused { retry_after: Duration, cause: Cause },
    AccessDenied(Box<DatabaseError>),
    NoDatabase,
    Internal(Cause),
}

impl AcquireError {
    /// The error for the waiting requests of a role whose login failed.
    pub(super) fn of(failure: OpenError, retry_after: Duration) -> Self {
        match failure {
            OpenError::Unreachable(cause) | OpenError::Full(cause) | OpenError::Limited(cause) => {
                Self::Unavailable { retry_after, cause }
            }
            OpenError::Login(cause) => Self::LoginRefused { retry_after, cause },
            OpenError::AccessDenied { rejection, .. } => Self::AccessDenied(rejection),
            OpenError::NoDatabase => Self::NoDatabase,
            OpenError::Internal(cause) => Self::Internal(cause),
        }
    }
}

impl From<AcquireError> for Error {
    fn from(error: AcquireError) -> Self {
        match error {
            AcquireError::Exhausted => Self::PoolTimeout {
                retry_after: EXHAUSTED,
            },
            AcquireError::Unavailable { retry_after, cause } => Self::Unavailable {
                retry_after: retry_after.max(MIN_RETRY_AFTER),
                source: Some(Box::new(cause)),
            },
            AcquireError::LoginRefused { retry_after, cause } => Self::Unavailable {
                retry_after,
                source: Some(Box::new(LoginRefused(Box::new(cause)))),
            },
            AcquireError::AccessDenied(rejection) => Self::Rejected(rejection),
            AcquireError::NoDatabase => Self::NoDatabase,
            AcquireError::Internal(cause) => Self::Internal(Box::new(cause)),
        }
    }
}
