//! Roles with the same rights, and the schemas that they see.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tidegate_sql::RoleName;

use super::Schemas;
use super::loaded::Loaded;
use super::slot::Slot;

/// Roles of one key (`load/keys.sql`), with a slot for each schema that one of them asked for by
/// name. The empty name, which PostgreSQL does not have, is for all schemas.
pub(super) struct Group {
    key: Arc<str>,
    /// One of the roles, as which schemas are loaded before a request needs them.
    example: Mutex<RoleName>,
    slots: Mutex<HashMap<Box<str>, Arc<Slot>>>,
}

impl Group {
    pub(super) fn new(key: Arc<str>, example: RoleName) -> Self {
        Self {
            key,
            example: Mutex::new(example),
            slots: Mutex::default(),
        }
    }

    pub(super) fn key(&self) -> &str {
        &self.key
    }

    pub(super) fn example(&self) -> RoleName {
        self.example.lock().clone()
    }

    /// A role that has just turned out to be one of the group.
    pub(super) fn set_example(&self, role: &RoleName) {
        self.example.lock().clone_from(role);
    }

    pub(super) fn slot(&self, name: &str) -> Arc<Slot> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(name) {
            return Arc::clone(slot);
        }
        Arc::clone(slots.entry(name.into()).or_default())
    }

    /// The last load of the schema `name`, even if it is stale.
    pub(super) fn kept(&self, name: &str) -> Option<Schemas> {
        self.slots.lock().get(name)?.kept()
    }

    pub(super) fn loaded(&self, name: &str) -> Option<Loaded> {
        self.slots.lock().get(name)?.loaded()
    }

    /// Makes the slots that a role used in another group, so that they are loaded ahead here too.
    pub(super) fn succeed(&self, other: &Self) {
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

    /// Removes a slot in which there turned out to be nothing.
    pub(super) fn remove(&self, name: &str, slot: &Arc<Slot>) {
        let mut slots = self.slots.lock();
        if slots
            .get(name)
            .is_some_and(|known| Arc::ptr_eq(known, slot))
        {
            slots.remove(name);
        }
    }

    /// The slots that are older than an epoch. Those of them that were not used in `warm` ticks are
    /// removed instead.
    pub(super) fn stale(&self, epoch: u64, (now, warm): (u64, u64)) -> Vec<(Box<str>, Arc<Slot>)> {
        let mut slots = self.slots.lock();
        slots.retain(|_, slot| !slot.is_older_than(epoch) || slot.age(now) < warm);
        let stale = slots.iter().filter(|(_, slot)| slot.is_older_than(epoch));
        stale
            .map(|(name, slot)| (name.clone(), Arc::clone(slot)))
            .collect()
    }

    /// Removes the slots that were not used in `kept` ticks.
    pub(super) fn forget_old(&self, now: u64, kept: u64) {
        self.slots.lock().retain(|_, slot| slot.age(now) < kept);
    }
}
