//! A read on a lane.

use std::sync::Arc;

use tidegate_sql::Statement;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::answer::Answer;
use crate::session::cache::Prepared;

/// A read that was sent, or will be, and its answer as far as it has come.
pub(super) struct Job {
    pub(super) statement: Arc<Statement>,
    pub(super) prepared: Arc<Prepared>,
    pub(super) asked: Instant,
    /// The messages of its rows.
    pub(super) rows: Vec<u8>,
    pub(super) failed: bool,
    pub(super) reply: oneshot::Sender<Answer>,
}

impl Job {
    /// Whoever waits runs it on a connection of its own, and it stays away from lanes for a while.
    pub(super) fn fail(self, now: Instant) {
        self.prepared.shape.pace.stay_away(now);
    }

    /// Hands the rows over; when nobody waits any more, nobody needs them.
    pub(super) fn end(self) {
        let shape = self.prepared.shape.clone();
        drop(self.reply.send(Answer::new(shape, self.rows)));
    }
}
