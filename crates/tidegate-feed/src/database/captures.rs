//! The captured tables of a database, and the gaps in their captures.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_changelog::{Captured, Demand, LogPosition};
use tokio::sync::{Notify, RwLock};
use tokio::time::Instant;

/// The capture of a table as it was most recently requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableCapture {
    pub(crate) demand: Demand,
    pub(crate) captured: Captured,
    /// The position since which the table has been captured. Unlike `captured.since`, it stays the
    /// same when a repair captures the table again.
    pub(crate) first_captured: LogPosition,
    /// When a subscription last requested the capture, or the table was last found to have a
    /// subscription.
    pub(crate) last_used: Instant,
    /// Whether changes may be missing. If so, the table has to be captured again.
    pub(crate) stale: bool,
    /// A gap that is not reported yet; `None` if there is none. The value is the capture that ended
    /// the gap: changes before its `since` may be missing.
    pub(crate) pending_gap: Option<Captured>,
    /// The gap that was most recently recorded while `pending_gap` was set. It is reported after
    /// `pending_gap`. `None` if there is none.
    pub(crate) next_gap: Option<Captured>,
}

#[derive(Default)]
pub(crate) struct Captures {
    tables: Mutex<HashMap<u32, TableCapture>>,
    /// Held shared while one table is captured. Held exclusively while unused tables are released,
    /// and while a new stream captures all tables again.
    pub(crate) lock: RwLock<()>,
    /// The locks that serialise the captures of each table. A capture may hold its lock for a long
    /// time, because it waits for the transactions that write to the table.
    table_locks: Mutex<HashMap<u32, Arc<tokio::sync::Mutex<()>>>>,
    /// Wakes the task that reports gaps.
    pub(crate) gap_recorded: Notify,
}

impl Captures {
    pub(crate) fn get(&self, relation: u32) -> Option<TableCapture> {
        self.tables.lock().get(&relation).copied()
    }

    pub(crate) fn insert(&self, capture: TableCapture) {
        self.tables.lock().insert(capture.demand.relation, capture);
    }

    pub(crate) fn remove(&self, relation: u32) {
        self.tables.lock().remove(&relation);
    }

    pub(crate) fn all(&self) -> HashMap<u32, TableCapture> {
        self.tables.lock().clone()
    }

    /// Runs a function on the capture of a table, while the map of captures is locked. Returns
    /// `None` if the table is not captured.
    pub(crate) fn update<R>(
        &self,
        relation: u32,
        update: impl FnOnce(&mut TableCapture) -> R,
    ) -> Option<R> {
        self.tables.lock().get_mut(&relation).map(update)
    }

    /// Runs a function on all captures, while their map is locked.
    pub(crate) fn with_all<R>(&self, f: impl FnOnce(&mut HashMap<u32, TableCapture>) -> R) -> R {
        f(&mut self.tables.lock())
    }

    pub(crate) fn table_lock(&self, relation: u32) -> Arc<tokio::sync::Mutex<()>> {
        self.table_locks.lock().entry(relation).or_default().clone()
    }

    /// Resets positions and removes gaps, because another change log was opened. Positions of
    /// different logs cannot be compared, and every subscription gets a gap because of the new log.
    pub(crate) fn reset_positions(&self) {
        for capture in self.tables.lock().values_mut() {
            capture.captured.since = LogPosition(0);
            (capture.pending_gap, capture.next_gap) = (None, None);
        }
    }

    /// Records that changes of a table may be missing. `since` is the position since which the
    /// table was captured. Does nothing if the table has been captured again, from another
    /// position.
    pub(crate) fn mark_stale(&self, relation: u32, since: LogPosition) {
        self.update(relation, |capture| {
            capture.stale |= capture.captured.since == since;
        });
    }

    /// Records that changes from before `captured` may be missing. This gap is reported when the
    /// stream has reached the barrier of `captured`. If a gap of the table is already pending, the
    /// new gap is reported after it. The new gap does not replace the pending gap, because a table
    /// that keeps becoming stale would then never get a report. A third gap replaces the second.
    pub(crate) fn record_gap(&self, relation: u32, captured: Captured) {
        let barrier = captured.barrier.max(captured.since);
        self.update(relation, |capture| {
            let gap = Some(Captured {
                barrier,
                ..captured
            });
            match capture.pending_gap {
                None => capture.pending_gap = gap,
                Some(_) => capture.next_gap = gap,
            }
        });
        self.gap_recorded.notify_one();
    }

    /// The pending gaps, each with the OID of its table.
    pub(crate) fn pending_gaps(&self) -> Vec<(u32, Captured)> {
        let tables = self.tables.lock();
        tables
            .iter()
            .filter_map(|(relation, capture)| Some((*relation, capture.pending_gap?)))
            .collect()
    }

    /// Removes a pending gap, so that the next gap of the table is pending. Returns `false` if the
    /// gap was no longer pending.
    pub(super) fn take_gap(&self, relation: u32, gap: Captured) -> bool {
        let mut tables = self.tables.lock();
        let capture = tables.get_mut(&relation);
        let Some(capture) = capture.filter(|capture| capture.pending_gap == Some(gap)) else {
            return false;
        };
        capture.pending_gap = capture.next_gap.take();
        true
    }
}
