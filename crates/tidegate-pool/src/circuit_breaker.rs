//! Whether connections are opened at all.

use tidegate_wire::backoff::Backoff;
use tokio::time::Instant;

use super::acquire_error::AcquireError;
use super::connector::Cause;

/// Open while PostgreSQL cannot be reached: requests that need a new connection then fail at
/// once, and one task tries to connect, with growing pauses.
pub(super) struct CircuitBreaker {
    backoff: Backoff,
    failure: Option<Failure>,
}

struct Failure {
    retry_at: Instant,
    cause: Cause,
}

impl CircuitBreaker {
    /// Closed, with the pauses of `backoff`.
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            failure: None,
        }
    }

    /// Opens it, since PostgreSQL could not be reached. Returns whether it was closed; the caller
    /// must then start to probe.
    pub(super) fn trip(&mut self, cause: Cause, now: Instant) -> bool {
        let was_closed = !self.is_open();
        if was_closed {
            self.probe_failed(cause, now);
        }
        was_closed
    }

    /// The probe failed too: the next one comes later.
    pub(super) fn probe_failed(&mut self, cause: Cause, now: Instant) {
        let retry_at = now + self.backoff.fail();
        self.failure = Some(Failure { retry_at, cause });
    }

    /// Closes it, since PostgreSQL answered.
    pub(super) fn close(&mut self) {
        self.backoff.succeed();
        self.failure = None;
    }

    pub(super) fn is_open(&self) -> bool {
        self.failure.is_some()
    }

    /// When the next probe is due.
    pub(super) fn next_probe(&self) -> Option<Instant> {
        self.failure.as_ref().map(|failure| failure.retry_at)
    }

    /// The error of requests that need a new connection while it is open.
    pub(super) fn error(&self, now: Instant) -> Option<AcquireError> {
        let failure = self.failure.as_ref()?;
        Some(AcquireError::Unavailable {
            retry_after: failure.retry_at.saturating_duration_since(now),
            cause: failure.cause.clone(),
        })
    }
}
