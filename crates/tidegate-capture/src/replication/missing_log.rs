//! Retention slots whose log is missing on the server.
//!
//! A standby that joined a moment ago has the log only from its base backup on. A copy of the slot,
//! as Patroni makes it before PostgreSQL 17, may begin earlier. After a promotion PostgreSQL shows
//! such a slot as good, and only reading it fails.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_changelog::LogPosition;

/// The names of slots that could not be read, each with its position at that time.
#[derive(Clone, Default)]
pub(super) struct MissingLog(Arc<Mutex<HashMap<String, LogPosition>>>);

impl MissingLog {
    /// Whether the slot could not be read at its present position. It can once another node has made
    /// it again.
    pub(super) fn has(&self, slot: &str, position: LogPosition) -> bool {
        self.0.lock().get(slot) == Some(&position)
    }

    pub(super) fn forget(&self, slot: &str) {
        self.0.lock().remove(slot);
    }

    /// What a stream that reads the slot tells of it.
    pub(super) fn of(&self, slot: &str, position: LogPosition) -> SlotLog {
        SlotLog {
            missing: self.clone(),
            slot: slot.to_owned(),
            position,
        }
    }
}

/// The log that a slot keeps.
pub(super) struct SlotLog {
    missing: MissingLog,
    slot: String,
    position: LogPosition,
}

impl SlotLog {
    pub(super) fn is_missing(&self) {
        let slots = &mut self.missing.0.lock();
        slots.insert(self.slot.clone(), self.position);
    }
}
