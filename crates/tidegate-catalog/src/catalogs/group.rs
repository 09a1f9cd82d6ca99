//! Roles with the same privileges, and the schemas that they see.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_sql::RoleName;

use super::Schemas;
use super::loaded::Loaded;
use super::slot::SchemaSlot;

/// A group of roles with the same key (`load/keys.sql`), with a slot for each schema that one of
/// them requested by name. The empty name, which PostgreSQL does not allow, stands for all schemas.
pub(super) struct RoleGroup {
    key: Arc<str>,
    /// A role of the group. Reloads in the background run as this role.
    representative: Mutex<RoleName>,
    slots: Mutex<HashMap<Box<str>, Arc<SchemaSlot>>>,
}

impl RoleGroup {
    pub(super) fn new(key: Arc<str>, representative: RoleName) -> Self {
        Self {
            key,
            representative: Mutex::new(representative),
            slots: Mutex::default(),
        }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn representative(&self) -> RoleName {
        self.representative.lock().clone()
    }

    /// Sets the representative to a role that was just found to belong to the group.
    pub(super) fn set_representative(&self, role: &RoleName) {
        self.representative.lock().clone_from(role);
    }

    pub(super) fn slot(&self, name: &str) -> Arc<SchemaSlot> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(name) {
            return Arc::clone(slot);
        }
        Arc::clone(slots.entry(name.into()).or_default())
    }

    /// The last loaded version of the schema `name`, even if it is stale; `None` if it was never
    /// loaded.
    pub(super) fn last_loaded(&self, name: &str) -> Option<Schemas> {
        self.slots.lock().get(name)?.last_loaded()
    }

    pub(super) fn loaded(&self, name: &str) -> Option<Loaded> {
        self.slots.lock().get(name)?.loaded()
    }

    /// Creates slots for the schemas that have slots in `other`, the previous group of a role, so
    /// that the background reload loads them for this group too.
    pub(super) fn inherit_slots(&self, other: &Self) {
        let used: Vec<_> = {
            let others = other.slots.lock();
            let others = others.iter();
            others
                .map(|(name, slot)| (name.clone(), slot.used()))
                .collect()
        };
        for (name, used) in used {
            self.slot(&name).touch(used);
        }
    }

    /// Removes a slot whose schema does not exist.
    pub(super) fn remove(&self, name: &str, slot: &Arc<SchemaSlot>) {
        let mut slots = self.slots.lock();
        if slots
            .get(name)
            .is_some_and(|known| Arc::ptr_eq(known, slot))
        {
            slots.remove(name);
        }
    }

    /// The slots that were loaded before `epoch`, or never. Removes those of them that were not
    /// used in the last `max_age` ticks, and does not return them.
    pub(super) fn stale(
        &self,
        epoch: u64,
        now: u64,
        max_age: u64,
    ) -> Vec<(Box<str>, Arc<SchemaSlot>)> {
        let mut slots = self.slots.lock();
        slots.retain(|_, slot| !slot.is_older_than(epoch) || slot.age(now) < max_age);
        let stale = slots.iter().filter(|(_, slot)| slot.is_older_than(epoch));
        stale
            .map(|(name, slot)| (name.clone(), Arc::clone(slot)))
            .collect()
    }

    /// Removes the slots that were not used in the last `max_idle` ticks.
    pub(super) fn remove_unused(&self, now: u64, max_idle: u64) {
        self.slots.lock().retain(|_, slot| slot.age(now) < max_idle);
    }
}
