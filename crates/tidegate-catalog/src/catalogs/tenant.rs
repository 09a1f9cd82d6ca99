//! What is known of one database.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::lock::Mutex as Turn;
use parking_lot::Mutex;
use tidegate_sql::RoleName;

use super::slot::Slot;
use super::{Telling, WATCHED};

/// The slots of one role: of each schema that it asked for by name, and under the empty name, which
/// PostgreSQL has not, of all.
type Slots = HashMap<Box<str>, Arc<Slot>>;

/// One database.
#[derive(Default)]
pub(super) struct Tenant {
    state: Mutex<State>,
    /// Who compares.
    pub(super) comparing: Turn<()>,
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
    fingerprint: Option<String>,
    /// Counts the changes that were noticed.
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
    roles: HashMap<RoleName, Slots>,
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

    /// Takes a fingerprint that was read after `definitions` were counted; whether it is another than
    /// before.
    pub(super) fn compared(&self, fingerprint: String, definitions: Counted, now: u64) -> bool {
        let mut state = self.state.lock();
        let known = state.fingerprint.replace(fingerprint);
        let changed = known != state.fingerprint;
        state.epoch += u64::from(changed);
        let unattended = now.saturating_sub(state.compared) >= WATCHED;
        if state.definitions != Some(definitions) || unattended {
            state.required = state.epoch;
        }
        state.definitions = Some(definitions);
        state.compared = now;
        state.comparisons += 1;
        changed && known.is_some()
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

    pub(super) fn slot(&self, role: &RoleName, name: &str) -> Arc<Slot> {
        let mut state = self.state.lock();
        let known = state.roles.get(role).and_then(|slots| slots.get(name));
        if let Some(slot) = known {
            return Arc::clone(slot);
        }
        let slots = state.roles.entry(role.clone()).or_default();
        Arc::clone(slots.entry(name.into()).or_default())
    }

    /// Whether anything was loaded there, however old it is.
    pub(super) fn has(&self, role: &RoleName, name: &str) -> bool {
        let state = self.state.lock();
        let slot = state.roles.get(role).and_then(|slots| slots.get(name));
        slot.is_some_and(|slot| slot.kept().is_some())
    }

    /// Removes a slot in which there turned out to be nothing.
    pub(super) fn remove(&self, role: &RoleName, name: &str, slot: &Arc<Slot>) {
        let mut state = self.state.lock();
        if let Some(slots) = state.roles.get_mut(role)
            && slots
                .get(name)
                .is_some_and(|known| Arc::ptr_eq(known, slot))
        {
            slots.remove(name);
        }
    }

    /// The slots that are older than the last change, the last used first. Those that nobody used in
    /// `warm` ticks are not among them but removed.
    pub(super) fn stale(&self, now: u64, warm: u64) -> Vec<(RoleName, Box<str>, Arc<Slot>)> {
        let mut state = self.state.lock();
        let epoch = state.epoch;
        let mut found = Vec::new();
        for (role, slots) in &mut state.roles {
            slots.retain(|_, slot| !slot.is_older_than(epoch) || slot.age(now) < warm);
            let old = slots.iter().filter(|(_, slot)| slot.is_older_than(epoch));
            found.extend(old.map(|(name, slot)| (role.clone(), name.clone(), Arc::clone(slot))));
        }
        found.sort_by_key(|(_, _, slot)| slot.age(now));
        found
    }

    /// Removes what nobody used in `kept` ticks; whether anything is left.
    pub(super) fn forget_old(&self, now: u64, kept: u64) -> bool {
        let mut state = self.state.lock();
        state.roles.retain(|_, slots| {
            slots.retain(|_, slot| slot.age(now) < kept);
            !slots.is_empty()
        });
        !state.roles.is_empty() || self.age(now) < kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_was_counted_otherwise_says_nothing() {
        let tenant = Tenant::default();
        let before = Counted {
            telling: tenant.telling(),
            count: 3,
        };
        // While the fingerprint is read it becomes known that the database tells nothing.
        tenant.rely(Telling::Never);
        tenant.compared("a fingerprint".to_owned(), before, 0);
        let now = Counted {
            telling: tenant.telling(),
            count: 3,
        };
        assert!(!tenant.is_compared(now, 0));
        tenant.compared("a fingerprint".to_owned(), now, 0);
        assert!(tenant.is_compared(now, 0));
    }
}
