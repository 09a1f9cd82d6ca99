//! Which roles have the same rights.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use tidegate_sql::RoleName;

use super::group::Group;
use crate::load::{RoleKey, RolesChange};

/// The roles of a database that have asked, each with its group.
#[derive(Default)]
pub(super) struct Members {
    roles: HashMap<RoleName, Member>,
    groups: HashMap<Arc<str>, Weak<Group>>,
    /// Counts the changes after which any key may be another one.
    epoch: u64,
    /// A key that was asked for before this epoch does not count.
    required: u64,
    /// Counts the changes of new roles only.
    additions: u64,
    /// Roles whose requests wait until the key can be asked for.
    waiting: HashSet<RoleName>,
}

/// A role.
struct Member {
    group: Arc<Group>,
    /// The group before this one: what the role saw is the base of what it sees now.
    former: Option<Arc<Group>>,
    /// `pg_roles.oid`.
    number: u32,
    /// The epoch in which the key was asked for; `None` when it turned out to be another one.
    keyed: Option<u64>,
    used: u64,
}

/// Roles whose keys are asked for, and the state of affairs before.
pub(super) struct Asked {
    pub(super) roles: Vec<RoleName>,
    epoch: u64,
    additions: u64,
}

impl Members {
    /// The group of a role whose key counts.
    pub(super) fn group(&mut self, role: &RoleName, now: u64) -> Option<Arc<Group>> {
        let required = self.required;
        let member = self.roles.get_mut(role)?;
        member.used = now;
        member
            .keyed
            .is_some_and(|keyed| keyed >= required)
            .then(|| Arc::clone(&member.group))
    }

    /// The group that a role was last known to be in, and the one before.
    pub(super) fn last(&self, role: &RoleName) -> Option<(&Arc<Group>, Option<&Arc<Group>>)> {
        let member = self.roles.get(role)?;
        Some((&member.group, member.former.as_ref()))
    }

    /// The next question is about this role too.
    pub(super) fn wait(&mut self, role: &RoleName) {
        self.waiting.insert(role.clone());
    }

    /// `first`, those that wait, and roles whose keys are out of date and that have asked in the last
    /// `warm` ticks, `most` together.
    pub(super) fn due(
        &mut self,
        first: Option<&RoleName>,
        (now, warm): (u64, u64),
        most: usize,
    ) -> Asked {
        let waiting = std::mem::take(&mut self.waiting);
        let stale = self.roles.iter().filter(|(_, member)| {
            member.keyed.is_none_or(|keyed| keyed < self.epoch)
                && now.saturating_sub(member.used) < warm
        });
        let stale = stale.map(|(role, _)| role);
        let others = waiting
            .iter()
            .chain(stale.filter(|role| !waiting.contains(*role)))
            .filter(|role| Some(*role) != first);
        Asked {
            roles: first
                .into_iter()
                .chain(others)
                .take(most)
                .cloned()
                .collect(),
            epoch: self.epoch,
            additions: self.additions,
        }
    }

    /// Takes the keys of roles. Roles without one do not exist.
    pub(super) fn keyed(&mut self, asked: &Asked, keys: Vec<RoleKey>, now: u64) {
        // Roles were added while the keys were read, and their memberships may have changed since.
        // Without an epoch, the next request of such a role reads its key again.
        let keyed = (asked.additions == self.additions).then_some(asked.epoch);
        let mut before = Vec::with_capacity(asked.roles.len());
        for role in &asked.roles {
            before.extend(self.roles.remove_entry(role));
        }
        let mut before: HashMap<_, _> = before.into_iter().collect();
        for RoleKey { role, number, key } in keys {
            let group = self.group_of(key, &role);
            let known = before.remove(&role);
            let used = known.as_ref().map_or(now, |known| known.used);
            let former = known.and_then(|known| {
                if Arc::ptr_eq(&known.group, &group) {
                    return known.former;
                }
                group.succeed(&known.group);
                Some(known.group)
            });
            let member = Member {
                group,
                former,
                number,
                keyed,
                used,
            };
            self.roles.insert(role, member);
        }
    }

    fn group_of(&mut self, key: String, role: &RoleName) -> Arc<Group> {
        let known = self.groups.get(key.as_str()).and_then(Weak::upgrade);
        if let Some(group) = known {
            group.set_example(role);
            return group;
        }
        let key: Arc<str> = key.into();
        let group = Arc::new(Group::new(Arc::clone(&key), role.clone()));
        self.groups.insert(key, Arc::downgrade(&group));
        group
    }

    /// The key of a role turned out to be another one.
    pub(super) fn doubt(&mut self, role: &RoleName) {
        if let Some(member) = self.roles.get_mut(role) {
            member.keyed = None;
        }
    }

    /// Takes note of a change of roles.
    pub(super) fn change(&mut self, change: RolesChange) {
        match change {
            RolesChange::Same => {}
            RolesChange::Added { after } => {
                self.additions += 1;
                let young = self.roles.values_mut();
                for member in young.filter(|member| member.number > after) {
                    member.keyed = None;
                }
            }
            RolesChange::Changed => {
                self.epoch += 1;
                self.required = self.epoch;
            }
        }
    }

    /// Lets the keys that are known count, because newer ones cannot be asked for.
    pub(super) fn excuse(&mut self) {
        self.required = 0;
    }

    /// The groups that roles are in now. Not those that all roles have left: what is cached there
    /// serves only as the base of the next load, and loading it again would be wasted.
    pub(super) fn groups(&self) -> Vec<Arc<Group>> {
        let mut found = HashSet::new();
        let groups = self.roles.values().map(|member| &member.group);
        groups
            .filter(|group| found.insert(Arc::as_ptr(group)))
            .cloned()
            .collect()
    }

    /// Removes what was not used in `kept` ticks; whether anything is left.
    pub(super) fn forget_old(&mut self, now: u64, kept: u64) -> bool {
        self.roles.retain(|_, member| {
            member.former = None;
            now.saturating_sub(member.used) < kept
        });
        self.groups.retain(|_, group| {
            let group = group.upgrade();
            group.is_some_and(|group| {
                group.forget_old(now, kept);
                true
            })
        });
        !self.roles.is_empty()
    }
}
