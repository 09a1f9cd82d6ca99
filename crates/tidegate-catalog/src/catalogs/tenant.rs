//! The state of one database.

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

/// One database.
#[derive(Default)]
pub(super) struct DatabaseState {
    state: Mutex<State>,
    /// Held by the task that compares the fingerprint.
    pub(super) comparing: AsyncMutex<()>,
    /// Held by the task that queries keys.
    pub(super) keying: AsyncMutex<()>,
    used: AtomicU64,
    failing: AtomicBool,
}

/// A number of definitions, and how they were counted. Numbers that were counted differently are
/// not comparable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DdlCount {
    pub(super) telling: DdlVisibility,
    pub(super) count: u64,
}

#[derive(Default)]
struct State {
    /// The fingerprints of the definitions and of the roles.
    fingerprint: Option<(String, Roles)>,
    /// The number of detected changes of definitions.
    epoch: u64,
    /// Schemas loaded before this epoch must not be served, because the change came through this
    /// node.
    required: u64,
    /// Whether it reports the definitions of functions and triggers.
    telling: DdlVisibility,
    /// The count of definitions at the last comparison.
    definitions: Option<DdlCount>,
    /// The tick of the last comparison.
    compared: u64,
    /// The number of comparisons.
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

    /// Counts definitions from now on by what the database reports.
    pub(super) fn rely(&self, telling: DdlVisibility) {
        self.state.lock().telling = telling;
    }

    /// Whether the state is current: no definition went through this node since, and the database
    /// is watched.
    pub(super) fn is_compared(&self, definitions: DdlCount, now: u64) -> bool {
        let state = self.state.lock();
        state.fingerprint.is_some()
            && state.definitions == Some(definitions)
            && now.saturating_sub(state.compared) < WATCHED
    }

    /// The roles at the last comparison.
    pub(super) fn roles(&self) -> Option<Roles> {
        let state = self.state.lock();
        state.fingerprint.as_ref().map(|(_, roles)| roles.clone())
    }

    /// Stores a fingerprint that was read after `definitions` were counted. Returns whether
    /// anything changed that concerns known roles.
    pub(super) fn compared(&self, found: Fingerprint, definitions: DdlCount, now: u64) -> bool {
        let mut state = self.state.lock();
        let known = state.fingerprint.replace((found.definitions, found.roles));
        let redefined = known.as_ref().map(|(definitions, _)| definitions)
            != state
                .fingerprint
                .as_ref()
                .map(|(definitions, _)| definitions);
        state.epoch += u64::from(redefined);
        // A GRANT is a definition, and may change the key of a role.
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

    /// Records that only roles with a higher number than `after` have changed.
    pub(super) fn roles_added(&self, after: u32) {
        let change = RolesChange::Added { after };
        self.state.lock().members.change(change);
    }

    /// Treats the state as current for a while, because it could not be compared.
    pub(super) fn put_off(&self, definitions: DdlCount, now: u64) {
        let mut state = self.state.lock();
        state.definitions = Some(definitions);
        state.compared = now;
    }

    /// Whether the last attempt failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Records a failure. Returns whether it is the first one.
    pub(super) fn fail(&self) -> bool {
        !self.failing.swap(true, Ordering::Relaxed)
    }

    /// Records a success. Returns whether it is the first one after a failure.
    pub(super) fn succeed(&self) -> bool {
        self.failing.swap(false, Ordering::Relaxed)
    }

    /// Requires that only schemas loaded after the last change are served.
    pub(super) fn require(&self) {
        let mut state = self.state.lock();
        state.required = state.epoch;
    }

    /// Allows older schemas to be served, because newer ones cannot be loaded.
    pub(super) fn excuse(&self) {
        self.state.lock().required = 0;
    }

    /// Makes all known keys valid, because they cannot be queried.
    pub(super) fn excuse_keys(&self) {
        self.state.lock().members.excuse();
    }

    /// The group of a role whose key is valid.
    pub(super) fn group(&self, role: &RoleName, now: u64) -> Option<Arc<RoleGroup>> {
        self.state.lock().members.group(role, now)
    }

    /// The last known group of a role.
    pub(super) fn last_group(&self, role: &RoleName) -> Option<Arc<RoleGroup>> {
        let state = self.state.lock();
        let (group, _) = state.members.last(role)?;
        Some(Arc::clone(group))
    }

    /// See [`RoleGroups::wait`].
    pub(super) fn wait(&self, role: &RoleName) {
        self.state.lock().members.wait(role);
    }

    /// See [`RoleGroups::due`].
    pub(super) fn due(
        &self,
        first: Option<&RoleName>,
        (now, warm): (u64, u64),
        most: usize,
    ) -> KeyQuery {
        self.state.lock().members.due(first, (now, warm), most)
    }

    /// Stores the keys of roles. A role without a key does not exist.
    pub(super) fn keyed(&self, asked: &KeyQuery, keys: Vec<RoleKey>, now: u64) {
        self.state.lock().members.keyed(asked, keys, now);
    }

    /// Marks the key of a role as stale.
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

    /// The stale slots, the most recently used first, each with its name and group. Those not used
    /// in `warm` ticks are removed instead.
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

    /// Removes what was not used in `kept` ticks. Returns whether anything is left.
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
        // While the fingerprint is read it becomes known that the database reports nothing.
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
