//! The limit on the pool's connections while other clients use the remaining connections of
//! PostgreSQL.

use std::time::Duration;

use tokio::time::Instant;

use super::connector::Cause;

/// How long after a refusal (53300) the pool tries another login.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// If the pool may try another login but tries none for this time, the limit is removed.
const FORGET_AFTER: Duration = Duration::from_mins(1);

/// A limit on the pool's connections below the configured capacity. It exists from the first
/// refusal until the pool reaches the capacity again. It is also removed if PostgreSQL has not
/// confirmed it for [`FORGET_AFTER`].
///
/// After a refusal the pool does not grow: requests wait for its connections, and a connection is
/// closed before another one is opened. A second later the pool tries one more login. If this login
/// succeeds, the pool may try the next login immediately. If it fails, the pool waits for another
/// second.
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
    /// Records that PostgreSQL refused a login while the pool held `held` other connections.
    /// Returns `true` if no limit was known before.
    pub(super) fn refused(&mut self, held: usize, cause: Cause, now: Instant) -> bool {
        let found = LimitFound {
            connections: held,
            retry_at: now + RETRY,
            cause,
        };
        self.found.replace(found).is_none()
    }

    /// Records a successful login, after which the pool holds `held` of its `capacity` connections.
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

    /// Removes the limit if PostgreSQL has not confirmed it for [`FORGET_AFTER`].
    pub(super) fn expire(&mut self, now: Instant) {
        self.found
            .take_if(|found| now >= found.retry_at + FORGET_AFTER);
    }

    /// The current limit on the pool's connections: the limit that the refusals have shown, plus 1
    /// if another login may be tried, but at most `capacity`.
    pub(super) fn bound(&self, capacity: usize, now: Instant) -> usize {
        let bound = self.found.as_ref().map_or(capacity, |found| {
            found.connections + usize::from(found.retry_at <= now)
        });
        bound.min(capacity)
    }

    /// The error of the most recent refusal; `None` if there is no limit.
    pub(super) fn cause(&self) -> Option<&Cause> {
        self.found.as_ref().map(|found| &found.cause)
    }
}
