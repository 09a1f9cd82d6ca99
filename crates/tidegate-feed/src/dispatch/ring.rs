//! The most recent changes of a database in memory, for subscriptions that resume or lag.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::decode::change::RowChange;
use crate::event::cursor::EventPosition;

/// The maximum number of changes that one read examines.
const MAX_SCANNED: usize = 8192;
/// The maximum number of changes that one read returns.
const MAX_CHANGES: usize = 256;
/// The maximum total size, in bytes, of the changes that one read returns. The change that exceeds
/// it is still returned, as the last one.
const MAX_BYTES: usize = 2 << 20;

/// The most recent changes, in order. When they exceed the limit on bytes, the ring drops the
/// oldest changes, but never the newest change.
#[derive(Debug)]
pub(crate) struct Ring {
    changes: VecDeque<Arc<RowChange>>,
    /// The bytes of all changes in the ring.
    bytes: usize,
    /// The maximum of `bytes`.
    limit: usize,
    /// The ring contains every change after this position.
    start: EventPosition,
    /// The position of the last change, or the position of the stream if the stream is further.
    head: EventPosition,
}

impl Ring {
    /// Creates a ring for `limit` bytes of changes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            changes: VecDeque::new(),
            bytes: 0,
            limit,
            start: EventPosition::default(),
            head: EventPosition::default(),
        }
    }

    /// Drops all changes. The next change comes after `start`.
    pub(crate) fn restart(&mut self, start: EventPosition) {
        self.changes.clear();
        self.bytes = 0;
        self.start = start;
        self.head = start;
    }

    /// Adds a change after all others.
    pub(crate) fn push(&mut self, change: Arc<RowChange>) {
        self.head = change.position;
        self.bytes += change.size();
        self.changes.push_back(change);
        self.drop_oldest();
    }

    /// Changes the limit on bytes. If the ring holds more, the oldest changes are dropped.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
        self.drop_oldest();
    }

    fn drop_oldest(&mut self) {
        while self.bytes > self.limit
            && self.changes.len() > 1
            && let Some(oldest) = self.changes.pop_front()
        {
            self.bytes -= oldest.size();
            self.start = oldest.position;
        }
    }

    /// Records that the stream has reached a position, and that no further change comes before it.
    pub(crate) fn reach(&mut self, position: EventPosition) {
        self.head = self.head.max(position);
    }

    /// The position up to which everything was dispatched.
    pub(crate) fn head(&self) -> EventPosition {
        self.head
    }

    /// The position after which the ring contains every change.
    pub(crate) fn start(&self) -> EventPosition {
        self.start
    }

    /// Whether the ring contains every change after a position.
    pub(crate) fn covers(&self, position: EventPosition) -> bool {
        position >= self.start
    }

    /// The share of the ring that is filled by the changes after a position, from 0 to about 1. The
    /// share is estimated from the number of these changes.
    pub(crate) fn share_after(&self, position: EventPosition) -> f64 {
        let after = self.changes.len() - self.index_after(position);
        #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
        let share = after as f64 / self.changes.len().max(1) as f64;
        #[expect(clippy::cast_precision_loss, reason = "a share, not a count")]
        let full = self.bytes as f64 / self.limit.max(1) as f64;
        share * full
    }

    /// Reads changes after a position, up to the limits of one read. Skips changes of a table if
    /// `wants` returns `false` for the table's OID. Returns the changes, and the position up to
    /// which they are complete.
    pub(crate) fn read(
        &self,
        after: EventPosition,
        wants: impl Fn(u32) -> bool,
    ) -> (Vec<Arc<RowChange>>, EventPosition) {
        let mut found = Vec::new();
        let (mut last, mut bytes) = (after, 0);
        for (scanned, change) in self.changes.range(self.index_after(after)..).enumerate() {
            if scanned == MAX_SCANNED || found.len() == MAX_CHANGES || bytes > MAX_BYTES {
                return (found, last);
            }
            last = change.position;
            if wants(change.schema.oid) {
                bytes += change.size();
                found.push(change.clone());
            }
        }
        (found, self.head.max(last))
    }

    fn index_after(&self, after: EventPosition) -> usize {
        self.changes
            .partition_point(|change| change.position <= after)
    }
}
