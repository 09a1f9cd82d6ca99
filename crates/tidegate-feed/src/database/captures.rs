//! Which tables of a database are captured, and which gaps their captures had.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_changelog::{Captured, Demand, LogPosition};
use tokio::sync::{Notify, RwLock};
use tokio::time::Instant;

/// The capture of a table as it was last requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableCapture {
    pub(crate) demand: Demand,
    pub(crate) captured: Captured,
    /// Since when the table has been captured, whatever was repaired since.
    pub(crate) first_captured: LogPosition,
    pub(crate) last_used: Instant,
    /// Changes may be missing: the table has to be captured again.
    pub(crate) stale: bool,
    /// A gap that is not reported yet: before this the table was not captured.
    pub(crate) pending_gap: Option<Captured>,
    /// The last gap that was found since; it is reported after the pending one.
    pub(crate) next_gap: Option<Captured>,
}

/// The captured tables of a database.
#[derive(Default)]
pub(crate) struct Captures {
    tables: Mutex<HashMap<u32, TableCapture>>,
    /// Held shared while one table is captured; exclusively while tables are released, and while a
    /// new stream captures all of them again.
    pub(crate) lock: RwLock<()>,
    /// Serialise the captures of one table, each of which waits for the table's writers.
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

    /// A copy of all captures.
    pub(crate) fn all(&self) -> HashMap<u32, TableCapture> {
        self.tables.lock().clone()
    }

    /// Runs a function on the capture of a table, if it is captured, under the lock.
    pub(crate) fn update<R>(
        &self,
        relation: u32,
        update: impl FnOnce(&mut TableCapture) -> R,
    ) -> Option<R> {
        self.tables.lock().get_mut(&relation).map(update)
    }

    /// Runs a function on all captures, under the lock.
    pub(crate) fn with_all<R>(&self, f: impl FnOnce(&mut HashMap<u32, TableCapture>) -> R) -> R {
        f(&mut self.tables.lock())
    }

    /// The lock that serialises captures of a table.
    pub(crate) fn table_lock(&self, relation: u32) -> Arc<tokio::sync::Mutex<()>> {
        self.table_locks.lock().entry(relation).or_default().clone()
    }

    /// Forgets positions and gaps: another log was opened, whose positions mean something else, and
    /// which is itself a gap for every subscription.
    pub(crate) fn reset_positions(&self) {
        for capture in self.tables.lock().values_mut() {
            capture.captured.since = LogPosition(0);
            (capture.pending_gap, capture.next_gap) = (None, None);
        }
    }

    /// Notes that changes of a table may be missing, unless it was captured again since `since`.
    pub(crate) fn mark_stale(&self, relation: u32, since: LogPosition) {
        self.update(relation, |capture| {
            capture.stale |= capture.captured.since == since;
        });
    }

    /// Notes that changes are missing from before a table was captured like this. The gap is
    /// reported once the stream has reached it. A gap that is already pending keeps its position: a
    /// table may become stale more often than the stream catches up.
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

    /// The gaps that are to be reported, by table.
    pub(crate) fn pending_gaps(&self) -> Vec<(u32, Captured)> {
        let tables = self.tables.lock();
        tables
            .iter()
            .filter_map(|(relation, capture)| Some((*relation, capture.pending_gap?)))
            .collect()
    }

    /// Removes a pending gap; returns whether it was still pending.
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
