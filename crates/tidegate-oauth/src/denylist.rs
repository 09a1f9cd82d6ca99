//! The denylist: the ended sessions, cached in this node. It is checked on every request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, RwLock};

use crate::settings::DENYLIST_OVERLAP;
use crate::{EndedSession, Lifetimes};
use tidegate_identity::{SessionId, Timestamp};

/// The ended sessions whose access tokens may not have expired yet.
#[derive(Debug, Default)]
pub(crate) struct Denylist {
    ended: RwLock<HashMap<SessionId, Timestamp>>,
    /// When the last refresh began; `None` before the first one.
    last_read: Mutex<Option<Timestamp>>,
}

impl Denylist {
    /// Whether the session with this id has ended.
    pub(crate) fn contains(&self, id: SessionId) -> bool {
        self.ended
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(&id)
    }

    /// Adds a session that was ended on this node.
    pub(crate) fn add(&self, id: SessionId, at: Timestamp) {
        self.ended
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, at);
    }

    /// The time since which the next refresh must read ended sessions from the store.
    pub(crate) fn since(&self, lifetimes: &Lifetimes, now: Timestamp) -> Timestamp {
        let last_read = *self
            .last_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let oldest = now.minus(lifetimes.denial());
        last_read.map_or(oldest, |last_read| {
            last_read.minus(DENYLIST_OVERLAP).max(oldest)
        })
    }

    /// Adds the ended sessions in `found`, the result of a refresh that began at `now`. Removes
    /// sessions whose access tokens have expired.
    pub(crate) fn merge(&self, found: &[EndedSession], lifetimes: &Lifetimes, now: Timestamp) {
        let oldest = now.minus(lifetimes.denial());
        let mut ended = self.ended.write().unwrap_or_else(PoisonError::into_inner);
        ended.retain(|_, at| *at >= oldest);
        ended.extend(
            found
                .iter()
                .filter(|end| end.at >= oldest)
                .map(|end| (end.id, end.at)),
        );
        drop(ended);
        *self
            .last_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
}
