//! The last changes of a database, for those that come back or are behind.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::change::Change;
use crate::cursor::Place;

/// How many changes are looked at at once.
const LOOK: usize = 8192;
/// How many changes are given at once.
const MOST: usize = 256;
/// How many bytes of changes are given at once, about.
const MOST_BYTES: usize = 2 << 20;

/// Changes in their order, as many as fit.
#[derive(Debug)]
pub(crate) struct Ring {
    changes: VecDeque<Arc<Change>>,
    bytes: usize,
    limit: usize,
    /// Everything behind this place is here.
    start: Place,
    /// The place of the last change, or where the stream is.
    head: Place,
}

impl Ring {
    /// A ring of so many bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            changes: VecDeque::new(),
            bytes: 0,
            limit,
            start: Place::default(),
            head: Place::default(),
        }
    }

    /// Forgets everything; what comes next comes behind `start`.
    pub(crate) fn restart(&mut self, start: Place) {
        self.changes.clear();
        self.bytes = 0;
        self.start = start;
        self.head = start;
    }

    /// Takes the next change.
    pub(crate) fn push(&mut self, change: Arc<Change>) {
        self.head = change.place;
        self.bytes += change.size();
        self.changes.push_back(change);
        while self.bytes > self.limit
            && self.changes.len() > 1
            && let Some(oldest) = self.changes.pop_front()
        {
            self.bytes -= oldest.size();
            self.start = oldest.place;
        }
    }

    /// The stream has come this far without a change.
    pub(crate) fn reach(&mut self, place: Place) {
        self.head = self.head.max(place);
    }

    /// The last place.
    pub(crate) fn head(&self) -> Place {
        self.head
    }

    /// Everything behind this place is here.
    pub(crate) fn start(&self) -> Place {
        self.start
    }

    /// Whether everything behind a place is here.
    pub(crate) fn covers(&self, place: Place) -> bool {
        place >= self.start
    }

    /// How much of the ring lies behind a place, from 0 to 1.
    pub(crate) fn share_behind(&self, place: Place) -> f64 {
        let behind = self.changes.len() - self.at(place);
        #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
        let share = behind as f64 / self.changes.len().max(1) as f64;
        #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
        let full = self.bytes as f64 / self.limit.max(1) as f64;
        share * full
    }

    /// Some changes of tables behind a place, and the place up to which that is all of them.
    pub(crate) fn read(
        &self,
        after: Place,
        wants: impl Fn(u32) -> bool,
    ) -> (Vec<Arc<Change>>, Place) {
        let mut found = Vec::new();
        let (mut last, mut bytes) = (after, 0);
        for (looked, change) in self.changes.range(self.at(after)..).enumerate() {
            if looked == LOOK || found.len() == MOST || bytes > MOST_BYTES {
                return (found, last);
            }
            last = change.place;
            if wants(change.shape.oid) {
                bytes += change.size();
                found.push(change.clone());
            }
        }
        (found, self.head.max(last))
    }

    fn at(&self, after: Place) -> usize {
        self.changes.partition_point(|change| change.place <= after)
    }
}
