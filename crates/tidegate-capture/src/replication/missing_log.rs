//! Retention slots whose log is missing on the server.
//!
//! A new standby has the WAL only from its base backup on. Before PostgreSQL 17, Patroni copies
//! slots to standbys, and the copy of a slot may begin before the base backup. After a promotion
//! PostgreSQL reports the copy as valid, and only reading it fails.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_changelog::LogPosition;

/// The names of slots that could not be read, each with its position at that time.
#[derive(Clone, Default)]
pub(super) struct MissingLog(Arc<Mutex<HashMap<String, LogPosition>>>);

impl MissingLog {
    /// Whether reading the slot failed at this position. If another node has created the slot
    /// again, the slot has another position, so the earlier failure does not count.
    pub(super) fn has(&self, slot: &str, position: LogPosition) -> bool {
        self.0.lock().get(slot) == Some(&position)
    }

    /// Removes the record of a slot that was created again.
    pub(super) fn forget(&self, slot: &str) {
        self.0.lock().remove(slot);
    }

    /// Creates the handle for a stream of the slot, which is now at `position`.
    pub(super) fn of(&self, slot: &str, position: LogPosition) -> SlotLog {
        SlotLog {
            missing: self.clone(),
            slot: slot.to_owned(),
            position,
        }
    }
}

/// The handle by which a stream records that the log of its slot is missing.
pub(super) struct SlotLog {
    missing: MissingLog,
    slot: String,
    position: LogPosition,
}

impl SlotLog {
    /// Records that the log of the slot is missing.
    pub(super) fn record_missing(&self) {
        let mut slots = self.missing.0.lock();
        slots.insert(self.slot.clone(), self.position);
    }
}
