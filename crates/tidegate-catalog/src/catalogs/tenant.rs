//! The state of the cache for one database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::lock::Mutex as AsyncMutex;
use parking_lot::Mutex;
use tidegate_sql::RoleName;

use super::group::RoleGroup;
use super::loaded::Loaded;
use super::members::{KeyQuery, RoleGroups};
use super::slot::SchemaSlot;
use super::{DdlVisibility, Schemas, WATCHED};
use crate::load::{Fingerprint, RoleKey, Roles, RolesChange};

/// The state of the cache for one database.
#[derive(Default)]
pub(super) struct DatabaseState {
    state: Mutex<State>,
    /// The lock of the task that compares the fingerprint.
    pub(super) comparing: AsyncMutex<()>,
    /// The lock of the task that queries the keys of roles.
    pub(super) keying: AsyncMutex<()>,
    used: AtomicU64,
    failing: AtomicBool,
}

/// A count of definitions, and how they were counted. Counts that were made differently are not
/// comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DdlCount {
    pub(super) telling: DdlVisibility,
    pub(super) count: u64,
}

#[derive(Default)]
struct State {
    /// The fingerprint of the definitions, and that of the roles.
    fingerprint: Option<(String, Roles)>,
    /// The number of changes of definitions that were detected.
    epoch: u64,
    /// The epoch before which schemas must not have been loaded to be served, because a change was
    /// made through this node.
    required: u64,
    /// Whether the database reports the definitions of functions and triggers.
    telling: DdlVisibility,
    /// The count of definitions at the last comparison of the fingerprint.
    definitions: Option<DdlCount>,
    /// The tick of the last comparison of the fingerprint.
    compared: u64,
    /// The number of comparisons of the fingerprint.
    comparisons: u64,
    members: RoleGroups,
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

    pub(super) fn telling(&self) -> DdlVisibility {
        self.state.lock().telling
    }

    /// Sets how definitions are counted from now on: by whether the database reports them.
    pub(super) fn rely(&self, telling: DdlVisibility) {
        self.state.lock().telling = telling;
    }

    /// Whether the state is current: no definition was made through this node since the last
    /// comparison, and the database is watched.
    pub(super) fn is_compared(&self, definitions: DdlCount, now: u64) -> bool {
        let state = self.state.lock();
        state.fingerprint.is_some()
            && state.definitions == Some(definitions)
            && now.saturating_sub(state.compared) < WATCHED
    }

    /// The state of the roles at the last comparison.
    pub(super) fn roles(&self) -> Option<Roles> {
        let state = self.state.lock();
        state.fingerprint.as_ref().map(|(_, roles)| roles.clone())
    }

    /// Stores a fingerprint that was read after `definitions` was counted. Returns whether there
    /// was a change that concerns known roles.
    pub(super) fn compared(&self, found: Fingerprint, definitions: DdlCount, now: u64) -> bool {
        let mut state = self.state.lock();
        let known = state.fingerprint.replace((found.definitions, found.roles));
        let redefined = known.as_ref().map(|(definitions, _)| definitions)
            != state
                .fingerprint
                .as_ref()
                .map(|(definitions, _)| definitions);
        state.epoch += u64::from(redefined);
        // GRANT is a definition too, and may change the key of a role.
        let change = if redefined {
            RolesChange::Changed
        } else {
            found.change
        };
        state.members.change(change);
        let unattended = now.saturating_sub(state.compared) >= WATCHED;
        if state.definitions != Some(definitions) || unattended {
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
        self.state.lock().members.change(change);
    }

    /// Treats the state as current until the next tick or definition, because the fingerprint
    /// cannot be compared.
    pub(super) fn put_off(&self, definitions: DdlCount, now: u64) {
        let mut state = self.state.lock();
        state.definitions = Some(definitions);
        state.compared = now;
    }

    /// Whether the last comparison or load failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Records a failure; returns whether it is the first one after a success.
    pub(super) fn fail(&self) -> bool {
        !self.failing.swap(true, Ordering::Relaxed)
    }

    /// Records a success; returns whether it is the first one after a failure.
    pub(super) fn succeed(&self) -> bool {
        self.failing.swap(false, Ordering::Relaxed)
    }

    /// Lets only schemas be served that were loaded after the last change.
    pub(super) fn require(&self) {
        let mut state = self.state.lock();
        state.required = state.epoch;
    }

    /// Lets older schemas be served, because newer ones cannot be loaded.
    pub(super) fn excuse(&self) {
        self.state.lock().required = 0;
    }

    /// Makes all known keys valid, because they cannot be queried at the moment.
    pub(super) fn excuse_keys(&self) {
        self.state.lock().members.excuse();
    }

    /// The group of a role; `None` if its key is not valid or not known.
    pub(super) fn group(&self, role: &RoleName, now: u64) -> Option<Arc<RoleGroup>> {
        self.state.lock().members.group(role, now)
    }

    /// The last known group of a role.
    pub(super) fn last_group(&self, role: &RoleName) -> Option<Arc<RoleGroup>> {
        let state = self.state.lock();
        let (group, _) = state.members.last(role)?;
        Some(Arc::clone(group))
    }

    /// Adds a role to the next key query, as [`RoleGroups::wait`].
    pub(super) fn wait(&self, role: &RoleName) {
        self.state.lock().members.wait(role);
    }

    /// The roles of the next key query, as [`RoleGroups::due`].
    pub(super) fn due(
        &self,
        first: Option<&RoleName>,
        (now, warm): (u64, u64),
        most: usize,
    ) -> KeyQuery {
        self.state.lock().members.due(first, (now, warm), most)
    }

    /// Stores the keys that a query returned. A role of the query without a key does not exist.
    pub(super) fn keyed(&self, asked: &KeyQuery, keys: Vec<RoleKey>, now: u64) {
        self.state.lock().members.keyed(asked, keys, now);
    }

    /// Marks the key of a role as stale, so that it is queried again.
    pub(super) fn doubt(&self, role: &RoleName) {
        self.state.lock().members.doubt(role);
    }

    /// The last schemas loaded for a role, even if they are stale.
    pub(super) fn kept(&self, role: &RoleName, name: &str) -> Option<Schemas> {
        let state = self.state.lock();
        let (group, former) = state.members.last(role)?;
        let kept = group.kept(name);
        kept.or_else(|| former?.kept(name))
    }

    /// The schemas of a role before its privileges changed.
    pub(super) fn former(&self, role: &RoleName, name: &str) -> Option<Loaded> {
        let state = self.state.lock();
        let (_, former) = state.members.last(role)?;
        former?.loaded(name)
    }

    /// The stale slots, the most recently used first, with their names and groups. Slots that were
    /// not used in the last `warm` ticks are removed instead.
    pub(super) fn stale(
        &self,
        now: u64,
        warm: u64,
    ) -> Vec<(Box<str>, Arc<SchemaSlot>, Arc<RoleGroup>)> {
        let (epoch, groups) = {
            let state = self.state.lock();
            (state.epoch, state.members.groups())
        };
        let mut found = Vec::new();
        for group in groups {
            let stale = group.stale(epoch, (now, warm)).into_iter();
            found.extend(stale.map(|(name, slot)| (name, slot, Arc::clone(&group))));
        }
        found.sort_by_key(|(_, slot, _)| slot.age(now));
        found
    }

    /// Removes the roles that were not used in the last `kept` ticks; returns whether any are left.
    pub(super) fn forget_old(&self, now: u64, kept: u64) -> bool {
        let left = self.state.lock().members.forget_old(now, kept);
        left || self.age(now) < kept
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
            telling: tenant.telling(),
            count: 3,
        };
        // While the fingerprint is read, the cache is told that the database reports no
        // definitions.
        tenant.rely(DdlVisibility::Never);
        tenant.compared(fingerprint(), before, 0);
        let now = DdlCount {
            telling: tenant.telling(),
            count: 3,
        };
        assert!(!tenant.is_compared(now, 0));
        tenant.compared(fingerprint(), now, 0);
        assert!(tenant.is_compared(now, 0));
    }
}
