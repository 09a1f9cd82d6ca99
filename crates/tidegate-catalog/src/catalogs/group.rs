//! Roles with the same privileges, and a cache entry (a *slot*) for each schema that they use by
//! name. Another slot may contain all schemas together.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::lock::Mutex as AsyncMutex;
use parking_lot::{Mutex, RwLock};
use tidegate_sql::RoleName;

use super::Schemas;
use super::loaded::Loaded;
use crate::error::Result;

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

    /// The most recently loaded version of the schema `name`, even if it is stale; `None` if it was
    /// never loaded.
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

    /// Removes the slot of a schema that does not exist or was never loaded, unless another slot
    /// has replaced it.
    pub(super) fn remove(&self, name: &str, slot: &Arc<SchemaSlot>) {
        let mut slots = self.slots.lock();
        if slots
            .get(name)
            .is_some_and(|known| Arc::ptr_eq(known, slot))
        {
            slots.remove(name);
        }
    }

    /// Returns the slots whose schema was loaded before `epoch`, and the slots whose schema was
    /// never loaded. If such a slot was not used in the last `max_age` ticks, removes it and does
    /// not return it.
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

/// The loaded schemas, and the epoch (`State::epoch` of the database) in which the load began.
type CurrentLoad = (Loaded, u64);

/// The roles for which a loaded schema is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Validity {
    /// The schema is valid for all roles of the group.
    Group,
    /// The schema was loaded as one role and may be valid only for this role, because the role's
    /// privileges changed.
    Role,
}

/// Schemas and the roles for which they are valid.
pub(super) type FoundSchemas = (Schemas, Validity);

/// A cache entry for schemas, as the roles of one group see them.
#[derive(Default)]
pub(super) struct SchemaSlot {
    loaded: RwLock<Option<CurrentLoad>>,
    loading: AsyncMutex<()>,
    used: AtomicU64,
}

impl SchemaSlot {
    pub(super) fn touch(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }

    pub(super) fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.used())
    }

    /// The cache's tick counter at the last use.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The schemas; `None` if they were not loaded in the epoch `required` or later.
    pub(super) fn current(&self, required: u64) -> Option<Schemas> {
        let loaded = self.loaded.read();
        let fresh = loaded.as_ref().filter(|(_, epoch)| *epoch >= required);
        fresh.map(|(loaded, _)| Arc::clone(&loaded.schemas))
    }

    /// The most recently loaded version of the schemas, even if it is stale; `None` before the
    /// first load.
    pub(super) fn last_loaded(&self) -> Option<Schemas> {
        self.loaded().map(|loaded| loaded.schemas)
    }

    /// The most recently loaded version, with the data that makes the next load cheaper; `None`
    /// before the first load.
    pub(super) fn loaded(&self) -> Option<Loaded> {
        let loaded = self.loaded.read();
        loaded.as_ref().map(|(loaded, _)| loaded.clone())
    }

    pub(super) fn is_older_than(&self, epoch: u64) -> bool {
        let loaded = self.loaded.read();
        loaded.as_ref().is_none_or(|(_, loaded)| *loaded < epoch)
    }

    /// Reloads the schemas with `refresh`, unless another task has reloaded them while this task
    /// waited. The slot stores the schemas only if they are valid for the whole group.
    pub(super) async fn load<F>(
        &self,
        epoch: impl Fn() -> u64,
        refresh: impl FnOnce(Option<Loaded>) -> F,
    ) -> Result<FoundSchemas>
    where
        F: Future<Output = Result<(Loaded, Validity)>>,
    {
        let _guard = self.loading.lock().await;
        // The epoch is read before the load, so that a change during the load makes the result
        // stale.
        let epoch = epoch();
        if !self.is_older_than(epoch)
            && let Some(schemas) = self.last_loaded()
        {
            return Ok((schemas, Validity::Group));
        }
        let (loaded, validity) = refresh(self.loaded()).await?;
        let schemas = Arc::clone(&loaded.schemas);
        if validity == Validity::Group {
            *self.loaded.write() = Some((loaded, epoch));
        }
        Ok((schemas, validity))
    }
}
