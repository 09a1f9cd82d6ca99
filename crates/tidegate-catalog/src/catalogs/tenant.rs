//! The state of the cache for one database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::lock::Mutex as AsyncMutex;
use parking_lot::Mutex;
use tidegate_sql::RoleName;

use super::group::{RoleGroup, SchemaSlot};
use super::loaded::Loaded;
use super::role_groups::{KeyQuery, RoleGroups};
use super::{DdlVisibility, Schemas, WATCH_TICKS};
use crate::load::{Fingerprint, RoleKey, Roles, RolesChange};

#[derive(Default)]
pub(super) struct DatabaseState {
    state: Mutex<State>,
    /// Held by the task that compares the fingerprint, so that only one compares at a time.
    pub(super) comparison_lock: AsyncMutex<()>,
    /// Held by the task that queries the keys of roles, so that only one queries at a time.
    pub(super) key_query_lock: AsyncMutex<()>,
    used: AtomicU64,
    failing: AtomicBool,
}

/// A count of definitions (`DdlCounter`), and the visibility that the counter used. Counts with
/// different visibilities are not comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DdlCount {
    pub(super) visibility: DdlVisibility,
    pub(super) count: u64,
}

#[derive(Default)]
struct State {
    /// The fingerprint of the definitions and the state of the roles at the most recent comparison;
    /// `None` before the first comparison.
    fingerprint: Option<(String, Roles)>,
    /// The number of changes of definitions that were detected.
    epoch: u64,
    /// The lowest value of `epoch` whose schemas may be served. It is raised to `epoch` if this
    /// node may have run DDL, so that the next request sees the change. It is also raised if the
    /// previous comparison was long ago.
    required: u64,
    /// Whether the database reports the DDL that its functions and triggers run.
    visibility: DdlVisibility,
    /// The count of definitions at the last comparison of the fingerprint; `None` before the first
    /// one.
    definitions: Option<DdlCount>,
    /// The tick of the last comparison of the fingerprint.
    compared: u64,
    /// The number of comparisons of the fingerprint.
    comparisons: u64,
    role_groups: RoleGroups,
}

impl DatabaseState {
    pub(super) fn touch(&self, now: u64) {
        self.used.store(now, Ordering::Relaxed);
    }

    pub(super) fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.used.load(Ordering::Relaxed))
    }

    pub(super) fn epoch(&self) -> u64 {
        self.state.lock().epoch
    }

    pub(super) fn required(&self) -> u64 {
        self.state.lock().required
    }

    pub(super) fn comparisons(&self) -> u64 {
        self.state.lock().comparisons
    }

    pub(super) fn visibility(&self) -> DdlVisibility {
        self.state.lock().visibility
    }

    /// Sets whether the database reports DDL. Definitions are counted accordingly.
    pub(super) fn set_visibility(&self, visibility: DdlVisibility) {
        self.state.lock().visibility = visibility;
    }

    /// Whether the state is current. This is the case if the fingerprint was compared less than
    /// [`WATCH_TICKS`] ticks ago, and if the DDL count of this node is still the count at
    /// that comparison.
    pub(super) fn is_compared(&self, definitions: DdlCount, now: u64) -> bool {
        let state = self.state.lock();
        state.fingerprint.is_some()
            && state.definitions == Some(definitions)
            && now.saturating_sub(state.compared) < WATCH_TICKS
    }

    /// The state of the roles at the last comparison; `None` before the first one.
    pub(super) fn roles(&self) -> Option<Roles> {
        let state = self.state.lock();
        state.fingerprint.as_ref().map(|(_, roles)| roles.clone())
    }

    /// Stores a fingerprint that was read after `definitions` was counted. Returns whether a
    /// definition has changed, or a role that existed at the previous comparison. Returns `false`
    /// for the first fingerprint.
    pub(super) fn compared(&self, found: Fingerprint, definitions: DdlCount, now: u64) -> bool {
        let mut state = self.state.lock();
        let known = state.fingerprint.replace((found.definitions, found.roles));
        let redefined = known.as_ref().map(|(definitions, _)| definitions)
            != state
                .fingerprint
                .as_ref()
                .map(|(definitions, _)| definitions);
        state.epoch += u64::from(redefined);
        // The changed definition may be a GRANT, which may change the key of any role.
        let change = if redefined {
            RolesChange::Changed
        } else {
            found.change
        };
        state.role_groups.change(change);
        let was_unwatched = now.saturating_sub(state.compared) >= WATCH_TICKS;
        if state.definitions != Some(definitions) || was_unwatched {
            state.required = state.epoch;
        }
        state.definitions = Some(definitions);
        state.compared = now;
        state.comparisons += 1;
        change == RolesChange::Changed && known.is_some()
    }

    /// Records that only roles with a higher OID than `after` have changed.
    pub(super) fn roles_added(&self, after: u32) {
        let change = RolesChange::Added { after };
        self.state.lock().role_groups.change(change);
    }

    /// Records that nothing has changed since the last comparison. Does nothing if the comparison
    /// was [`WATCH_TICKS`] or more ticks ago.
    pub(super) fn unchanged(&self, now: u64) {
        let mut state = self.state.lock();
        if now.saturating_sub(state.compared) < WATCH_TICKS {
            state.compared = now;
        }
    }

    /// Lets requests skip the comparison, because the fingerprint cannot be compared now. Requests
    /// compare again after a definition was counted, and after [`WATCH_TICKS`] ticks at the latest.
    pub(super) fn skip_comparison(&self, definitions: DdlCount, now: u64) {
        let mut state = self.state.lock();
        state.definitions = Some(definitions);
        state.compared = now;
    }

    /// Whether the last comparison or load failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Records a failure; returns whether it is the first one after a success.
    pub(super) fn record_failure(&self) -> bool {
        !self.failing.swap(true, Ordering::Relaxed)
    }

    /// Records a success; returns whether it is the first one after a failure.
    pub(super) fn record_success(&self) -> bool {
        self.failing.swap(false, Ordering::Relaxed)
    }

    /// From now on, schemas are served only if they were loaded after the most recently detected
    /// change.
    pub(super) fn require_current(&self) {
        let mut state = self.state.lock();
        state.required = state.epoch;
    }

    /// Lets older schemas be served, because newer ones cannot be loaded.
    pub(super) fn allow_stale(&self) {
        self.state.lock().required = 0;
    }

    pub(super) fn allow_stale_keys(&self) {
        self.state.lock().role_groups.allow_stale();
    }

    pub(super) fn group(&self, role: &RoleName, now: u64) -> Option<Arc<RoleGroup>> {
        self.state.lock().role_groups.group(role, now)
    }

    /// The last known group of a role, even if the role's key is not valid; `None` for an unknown
    /// role.
    pub(super) fn last_group(&self, role: &RoleName) -> Option<Arc<RoleGroup>> {
        let state = self.state.lock();
        let (group, _) = state.role_groups.last(role)?;
        Some(Arc::clone(group))
    }

    pub(super) fn add_waiting(&self, role: &RoleName) {
        self.state.lock().role_groups.add_waiting(role);
    }

    pub(super) fn next_key_query(
        &self,
        first: Option<&RoleName>,
        now: u64,
        max_age: u64,
        max: usize,
    ) -> KeyQuery {
        self.state
            .lock()
            .role_groups
            .next_key_query(first, now, max_age, max)
    }

    pub(super) fn store_keys(&self, query: &KeyQuery, keys: Vec<RoleKey>, now: u64) {
        self.state.lock().role_groups.store_keys(query, keys, now);
    }

    pub(super) fn invalidate_key(&self, role: &RoleName) {
        self.state.lock().role_groups.invalidate_key(role);
    }

    /// The schemas most recently loaded for a role, even if they are stale; `None` if none were
    /// loaded.
    pub(super) fn last_loaded(&self, role: &RoleName, name: &str) -> Option<Schemas> {
        let state = self.state.lock();
        let (group, previous) = state.role_groups.last(role)?;
        let current = group.last_loaded(name);
        current.or_else(|| previous?.last_loaded(name))
    }

    /// The schemas loaded for the previous group of a role. The role belonged to that group before
    /// the role's key changed. `None` if there are none.
    pub(super) fn previous(&self, role: &RoleName, name: &str) -> Option<Loaded> {
        let state = self.state.lock();
        let (_, previous) = state.role_groups.last(role)?;
        previous?.loaded(name)
    }

    /// The stale slots, the most recently used first, with their names and groups. Slots that were
    /// not used in the last `max_age` ticks are removed instead.
    pub(super) fn stale(
        &self,
        now: u64,
        max_age: u64,
    ) -> Vec<(Box<str>, Arc<SchemaSlot>, Arc<RoleGroup>)> {
        let (epoch, groups) = {
            let state = self.state.lock();
            (state.epoch, state.role_groups.groups())
        };
        let mut found = Vec::new();
        for group in groups {
            let stale = group.stale(epoch, now, max_age).into_iter();
            found.extend(stale.map(|(name, slot)| (name, slot, Arc::clone(&group))));
        }
        found.sort_by_key(|(_, slot, _)| slot.age(now));
        found
    }

    /// Removes unused roles and slots; see [`RoleGroups::remove_unused`]. Returns whether any roles
    /// are left, or the database itself was used in the last `max_idle` ticks.
    pub(super) fn remove_unused(&self, now: u64, max_idle: u64) -> bool {
        let left = self.state.lock().role_groups.remove_unused(now, max_idle);
        left || self.age(now) < max_idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint() -> Fingerprint {
        Fingerprint {
            definitions: "a fingerprint".to_owned(),
            roles: Roles::default(),
            change: RolesChange::Changed,
        }
    }

    #[test]
    fn a_number_that_was_counted_otherwise_says_nothing() {
        let tenant = DatabaseState::default();
        let before = DdlCount {
            visibility: tenant.visibility(),
            count: 3,
        };
        // `before` was counted with another visibility.
        tenant.set_visibility(DdlVisibility::Never);
        tenant.compared(fingerprint(), before, 0);
        let now = DdlCount {
            visibility: tenant.visibility(),
            count: 3,
        };
        assert!(!tenant.is_compared(now, 0));
        tenant.compared(fingerprint(), now, 0);
        assert!(tenant.is_compared(now, 0));
    }
}
