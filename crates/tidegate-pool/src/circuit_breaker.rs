//! The circuit breaker: refuses new connections while PostgreSQL is down.

use tidegate_wire::backoff::Backoff;
use tokio::time::Instant;

use super::acquire_error::AcquireError;
use super::connector::Cause;

/// The circuit breaker is open while PostgreSQL cannot be reached. Requests that need a new
/// connection then fail immediately, and one task probes the server with growing delays.
pub(super) struct CircuitBreaker {
    backoff: Backoff,
    failure: Option<LastFailure>,
}

struct LastFailure {
    retry_at: Instant,
    cause: Cause,
}

impl CircuitBreaker {
    /// A closed circuit breaker with the delays of `backoff`.
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            failure: None,
        }
    }

    /// Opens the circuit breaker, because PostgreSQL could not be reached. Returns `true` if it was
    /// closed before; the calling function must then start to probe.
    pub(super) fn trip(&mut self, cause: Cause, now: Instant) -> bool {
        let was_closed = !self.is_open();
        if was_closed {
            self.probe_failed(cause, now);
        }
        was_closed
    }

    /// Schedules the next probe after a probe has failed.
    pub(super) fn probe_failed(&mut self, cause: Cause, now: Instant) {
        let retry_at = now + self.backoff.fail();
        self.failure = Some(LastFailure { retry_at, cause });
    }

    /// Closes the circuit breaker, because PostgreSQL responded.
    pub(super) fn close(&mut self) {
        self.backoff.succeed();
        self.failure = None;
    }

    pub(super) fn is_open(&self) -> bool {
        self.failure.is_some()
    }

    /// The time of the next probe; `None` while the circuit breaker is closed.
    pub(super) fn next_probe(&self) -> Option<Instant> {
        self.failure.as_ref().map(|failure| failure.retry_at)
    }

    /// The error for requests that need a new connection; `None` while the circuit breaker is
    /// closed.
    pub(super) fn error(&self, now: Instant) -> Option<AcquireError> {
        let failure = self.failure.as_ref()?;
        Some(AcquireError::Unavailable {
            retry_after: failure.retry_at.saturating_duration_since(now),
            cause: failure.cause.clone(),
        })
    }
}
