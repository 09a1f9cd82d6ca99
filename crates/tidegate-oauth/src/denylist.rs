//! Sessions that were ended, as far as this node knows: looked at on every request.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, RwLock};

use crate::settings::DENYLIST_OVERLAP;
use crate::{EndedSession, Lifetimes, SessionId, Timestamp};

/// The ended sessions whose access tokens have not all expired yet.
#[derive(Debug, Default)]
pub(crate) struct Denylist {
    ended: RwLock<HashMap<SessionId, Timestamp>>,
    looked_at: Mutex<Option<Timestamp>>,
}

impl Denylist {
    /// Whether the session was ended.
    pub(crate) fn contains(&self, id: SessionId) -> bool {
        self.ended
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .contains_key(&id)
    }

    /// Adds a session that was ended here.
    pub(crate) fn add(&self, id: SessionId, at: Timestamp) {
        self.ended
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id, at);
    }

    /// From when on the next look at the store must read.
    pub(crate) fn since(&self, lifetimes: &Lifetimes, now: Timestamp) -> Timestamp {
        let looked_at = *self
            .looked_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let oldest = now.minus(lifetimes.denial());
        looked_at.map_or(oldest, |looked_at| {
            looked_at.minus(DENYLIST_OVERLAP).max(oldest)
        })
    }

    /// Takes in what a look at the store that began at `now` found, and drops what is too old to
    /// matter.
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
            .looked_at
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = Some(now);
    }
}
