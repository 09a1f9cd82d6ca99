//! What PostgreSQL was found to have for this pool when other clients use its connections too.

use std::time::Duration;

use tokio::time::Instant;

use super::connector::Cause;

/// How long after PostgreSQL had no connection left (53300) the pool tries for one more.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// How long after the last refusal or retry the bound is forgotten.
const FORGET: Duration = Duration::from_mins(1);

/// A bound below the configured capacity, from the first refusal until the capacity is reached
/// again.
///
/// Behind a refusal the pool keeps to the connections that it has: requests wait for those, and a
/// login takes the place of a connection that is closed first. A second later one login more is
/// tried. If it works, the next may follow at once; if not, a second later again.
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
    /// PostgreSQL refused a login; the pool holds this many connections without it. Returns
    /// whether no limit was known.
    pub(super) fn refused(&mut self, held: usize, cause: Cause, now: Instant) -> bool {
        let found = LimitFound {
            connections: held,
            retry_at: now + RETRY,
            cause,
        };
        self.found.replace(found).is_none()
    }

    /// A login worked; the pool holds this many connections of its `capacity` with it.
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

    /// Forgets a bound that nothing has confirmed for a while.
    pub(super) fn expire(&mut self, now: Instant) {
        self.found.take_if(|found| now >= found.retry_at + FORGET);
    }

    /// How many connections the pool may hold now.
    pub(super) fn bound(&self, capacity: usize, now: Instant) -> usize {
        let bound = self.found.as_ref().map_or(capacity, |found| {
            found.connections + usize::from(found.retry_at <= now)
        });
        bound.min(capacity)
    }

    /// Why the bound is below the capacity, if it is.
    pub(super) fn cause(&self) -> Option<&Cause> {
        self.found.as_ref().map(|found| &found.cause)
    }
}
