//! Whether connections are opened at all.

use tokio::time::Instant;

use super::connector::Cause;
use super::verdict::Verdict;
use crate::backoff::Backoff;

/// Shut while PostgreSQL is down.
pub(super) struct Gate {
    backoff: Backoff,
    shut: Option<Shut>,
}

struct Shut {
    until: Instant,
    cause: Cause,
}

impl Gate {
    pub(super) fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            shut: None,
        }
    }

    /// PostgreSQL could not be reached. Answers whether that is news; then somebody must probe.
    pub(super) fn down(&mut self, cause: Cause, now: Instant) -> bool {
        let news = !self.is_down();
        if news {
            self.fail(cause, now);
        }
        news
    }

    /// The probe failed too: the next one comes later.
    pub(super) fn fail(&mut self, cause: Cause, now: Instant) {
        let until = now + self.backoff.fail();
        self.shut = Some(Shut { until, cause });
    }

    /// PostgreSQL answered.
    pub(super) fn open(&mut self) {
        self.backoff.succeed();
        self.shut = None;
    }

    pub(super) fn is_down(&self) -> bool {
        self.shut.is_some()
    }

    /// When the next probe is due.
    pub(super) fn next_probe(&self) -> Option<Instant> {
        self.shut.as_ref().map(|shut| shut.until)
    }

    /// What requests are told that need a new connection while the gate is shut.
    pub(super) fn verdict(&self, now: Instant) -> Option<Verdict> {
        let shut = self.shut.as_ref()?;
        Some(Verdict::Unavailable {
            retry_after: shut.until.saturating_duration_since(now),
            cause: shut.cause.clone(),
        })
    }
}
