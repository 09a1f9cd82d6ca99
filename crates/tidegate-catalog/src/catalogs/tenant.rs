//! What is known of one database.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::lock::Mutex as Turn;
use parking_lot::Mutex;
use tidegate_sql::RoleName;

use super::group::Group;
use super::loaded::Loaded;
use super::members::{Asked, Members};
use super::slot::Slot;
use super::{Schemas, Telling, WATCHED};
use crate::load::{Fingerprint, RoleKey, Roles, RolesChange};

/// One database.
#[derive(Default)]
pub(super) struct Tenant {
    state: Mutex<State>,
    /// Held by the task that compares.
    pub(super) comparing: Turn<()>,
    /// Held by the task that asks which roles have the same rights.
    pub(super) keying: Turn<()>,
    used: AtomicU64,
    failing: AtomicBool,
}

/// How many definitions have gone through this node. Numbers that were counted in different ways
/// say nothing about each other, even if they are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) telling: Telling,
    pub(super) count: u64,
}

#[derive(Default)]
struct State {
    /// Of the definitions, and of the roles.
    fingerprint: Option<(String, Roles)>,
    /// Counts the changes of definitions that were noticed.
    epoch: u64,
    /// What was loaded before this epoch may not be served any more, because the change came
    /// through this node.
    required: u64,
    /// Whether it tells of what functions and triggers define.
    telling: Telling,
    /// The definitions that had gone through this node when it was last compared.
    definitions: Option<Counted>,
    /// When it was last compared.
    compared: u64,
    /// How often.
    comparisons: u64,
    members: Members,
}

impl Tenant {
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

    pub(super) fn telling(&self) -> Telling {
        self.state.lock().telling
    }

    /// From now on definitions are counted by what the database tells.
    pub(super) fn rely(&self, telling: Telling) {
        self.state.lock().telling = telling;
    }

    /// Whether what is known still holds: no definition went through this node since, and it is
    /// being watched.
    pub(super) fn is_compared(&self, definitions: Counted, now: u64) -> bool {
        let state = self.state.lock();
        state.fingerprint.is_some()
            && state.definitions == Some(definitions)
            && now.saturating_sub(state.compared) < WATCHED
    }

    /// The roles when they were last compared.
    pub(super) fn roles(&self) -> Option<Roles> {
        let state = self.state.lock();
        state.fingerprint.as_ref().map(|(_, roles)| roles.clone())
    }

    /// Takes a fingerprint that was read after `definitions` were counted; whether anything has
    /// changed since the one before that concerns roles that are known.
    pub(super) fn compared(&self, found: Fingerprint, definitions: Counted, now: u64) -> bool {
        let mut state = self.state.lock();
        let known = state.fingerprint.replace((found.definitions, found.roles));
        let redefined = known.as_ref().map(|(definitions, _)| definitions)
            != state
                .fingerprint
                .as_ref()
                .map(|(definitions, _)| definitions);
        state.epoch += u64::from(redefined);
        // A grant is a definition, and may give a role another key.
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

    /// Takes note that only roles with a higher number than `after` have changed.
    pub(super) fn roles_added(&self, after: u32) {
        let change = RolesChange::Added { after };
        self.state.lock().members.change(change);
    }

    /// Believes what is known for a while, because it could not be compared.
    pub(super) fn put_off(&self, definitions: Counted, now: u64) {
        let mut state = self.state.lock();
        state.definitions = Some(definitions);
        state.compared = now;
    }

    /// Whether the last attempt failed.
    pub(super) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }

    /// Notes a failure; whether it is the first one.
    pub(super) fn fail(&self) -> bool {
        !self.failing.swap(true, Ordering::Relaxed)
    }

    /// Notes a success; whether it is the first one after a failure.
    pub(super) fn succeed(&self) -> bool {
        self.failing.swap(false, Ordering::Relaxed)
    }

    /// Lets nothing be served that was loaded before the last change.
    pub(super) fn require(&self) {
        let mut state = self.state.lock();
        state.required = state.epoch;
    }

    /// Lets what was loaded before be served, because nothing newer can be loaded.
    pub(super) fn excuse(&self) {
        self.state.lock().required = 0;
    }

    /// Lets the keys that are known count, because newer ones cannot be asked for.
    pub(super) fn excuse_keys(&self) {
        self.state.lock().members.excuse();
    }

    /// The group of a role whose key counts.
    pub(super) fn group(&self, role: &RoleName, now: u64) -> Option<Arc<Group>> {
        self.state.lock().members.group(role, now)
    }

    /// The group that a role was last known to be in.
    pub(super) fn last_group(&self, role: &RoleName) -> Option<Arc<Group>> {
        let state = self.state.lock();
        let (group, _) = state.members.last(role)?;
        Some(Arc::clone(group))
    }

    /// See [`Members::wait`].
    pub(super) fn wait(&self, role: &RoleName) {
        self.state.lock().members.wait(role);
    }

    /// See [`Members::due`].
    pub(super) fn due(
        &self,
        first: Option<&RoleName>,
        (now, warm): (u64, u64),
        most: usize,
    ) -> Asked {
        self.state.lock().members.due(first, (now, warm), most)
    }

    /// Takes the keys of roles. Roles without one do not exist.
    pub(super) fn keyed(&self, asked: &Asked, keys: Vec<RoleKey>, now: u64) {
        self.state.lock().members.keyed(asked, keys, now);
    }

    /// The key of a role turned out to be another one.
    pub(super) fn doubt(&self, role: &RoleName) {
        self.state.lock().members.doubt(role);
    }

    /// The last schemas that were loaded for a role, even if they are stale.
    pub(super) fn kept(&self, role: &RoleName, name: &str) -> Option<Schemas> {
        let state = self.state.lock();
        let (group, former) = state.members.last(role)?;
        let kept = group.kept(name);
        kept.or_else(|| former?.kept(name))
    }

    /// What a role saw before its rights changed.
    pub(super) fn former(&self, role: &RoleName, name: &str) -> Option<Loaded> {
        let state = self.state.lock();
        let (_, former) = state.members.last(role)?;
        former?.loaded(name)
    }

    /// The slots that are older than the last change, the last used first, each with its name and
    /// group. Those that were not used in `warm` ticks are not among them but removed.
    pub(super) fn stale(&self, now: u64, warm: u64) -> Vec<(Box<str>, Arc<Slot>, Arc<Group>)> {
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

    /// Removes what was not used in `kept` ticks; whether anything is left.
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
        let tenant = Tenant::default();
        let before = Counted {
            telling: tenant.telling(),
            count: 3,
        };
        // While the fingerprint is read it becomes known that the database tells nothing.
        tenant.rely(Telling::Never);
        tenant.compared(fingerprint(), before, 0);
        let now = Counted {
            telling: tenant.telling(),
            count: 3,
        };
        assert!(!tenant.is_compared(now, 0));
        tenant.compared(fingerprint(), now, 0);
        assert!(tenant.is_compared(now, 0));
    }
}
