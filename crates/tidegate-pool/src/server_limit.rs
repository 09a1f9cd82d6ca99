//! The limit found when PostgreSQL refuses connections because other clients use them.

use std::time::Duration;

use tokio::time::Instant;

use super::connector::Cause;

/// How long after a refusal (53300) the pool tries one more login.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// How long after the last refusal or retry the limit is forgotten.
const FORGET: Duration = Duration::from_mins(1);

/// A limit below the configured capacity, from the first refusal until the capacity is reached
/// again.
///
/// After a refusal the pool stays at its size: requests wait for its connections, and a login
/// replaces a connection that is closed first. A second later one more login is tried. If it
/// succeeds, the next may follow at once; otherwise a second later.
#[derive(Default)]
pub(super) struct ServerLimit {
    found: Option<LimitFound>,
}

struct LimitFound {
    connections: usize,
    retry_at: Instant,
    cause: Cause,
}

impl ServerLimit {
    /// PostgreSQL refused a login while the pool held `held` other connections. Returns whether no
    /// limit was known.
    pub(super) fn refused(&mut self, held: usize, cause: Cause, now: Instant) -> bool {
        let found = LimitFound {
            connections: held,
            retry_at: now + RETRY,
            cause,
        };
        self.found.replace(found).is_none()
    }

    /// A login succeeded; the pool now holds `held` of its `capacity` connections.
    pub(super) fn granted(&mut self, held: usize, capacity: usize, now: Instant) {
        let Some(found) = &mut self.found else {
            return;
        };
        if held > found.connections {
            found.connections = held;
            found.retry_at = now;
        }
        if held >= capacity {
            self.found = None;
        }
    }

    /// Forgets a limit that was not confirmed for a while.
    pub(super) fn expire(&mut self, now: Instant) {
        self.found.take_if(|found| now >= found.retry_at + FORGET);
    }

    /// The current limit of the pool's connections.
    pub(super) fn bound(&self, capacity: usize, now: Instant) -> usize {
        let bound = self.found.as_ref().map_or(capacity, |found| {
            found.connections + usize::from(found.retry_at <= now)
        });
        bound.min(capacity)
    }

    /// Why the limit is below the capacity, if it is.
    pub(super) fn cause(&self) -> Option<&Cause> {
        self.found.as_ref().map(|found| &found.cause)
    }
}
