//! Why a waiting request gets no connection; several may share one cause.

use std::time::Duration;

use tidegate_sql::{Error, Rejection};

use super::connector::{Cause, OpenError};

/// When a request that found the pool exhausted should come again.
const EXHAUSTED: Duration = Duration::from_secs(1);
/// The shortest time that a caller is told to wait.
const SHORTEST: Duration = Duration::from_millis(100);

#[derive(Clone, Debug)]
pub(super) enum Verdict {
    Exhausted,
    Unavailable { retry_after: Duration, cause: Cause },
    Barred(Box<Rejection>),
    NoDatabase,
    Internal(Cause),
}

impl Verdict {
    /// What the failure means for the requests of the role.
    pub(super) fn of(failure: OpenError, retry_after: Duration) -> Self {
        match failure {
            OpenError::Unreachable(cause) | OpenError::Full(cause) | OpenError::Login(_, cause) => {
                Self::Unavailable { retry_after, cause }
            }
            OpenError::Barred { said, .. } => Self::Barred(said),
            OpenError::NoDatabase => Self::NoDatabase,
            OpenError::Internal(cause) => Self::Internal(cause),
        }
    }
}

impl From<Verdict> for Error {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Exhausted => Self::PoolTimeout {
                retry_after: EXHAUSTED,
            },
            Verdict::Unavailable { retry_after, cause } => Self::Unavailable {
                retry_after: retry_after.max(SHORTEST),
                source: Some(Box::new(cause)),
            },
            Verdict::Barred(said) => Self::Rejected(said),
            Verdict::NoDatabase => Self::NoDatabase,
            Verdict::Internal(cause) => Self::Internal(Box::new(cause)),
        }
    }
}
