//! The assignment of roles to groups.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use tidegate_sql::RoleName;

use super::group::RoleGroup;
use crate::load::{RoleKey, RolesChange};

/// The roles of a database that have made requests, each with its group.
#[derive(Default)]
pub(super) struct RoleGroups {
    roles: HashMap<RoleName, RoleEntry>,
    groups: HashMap<Arc<str>, Weak<RoleGroup>>,
    /// The number of changes of roles that did more than add roles. After such a change, the key of
    /// any role may be different.
    epoch: u64,
    /// A key is valid only if it was queried in this epoch or a later one.
    required: u64,
    /// The number of changes that only added roles.
    additions: u64,
    /// The roles whose requests wait for the next key query.
    waiting: HashSet<RoleName>,
}

/// A role that has made requests.
struct RoleEntry {
    group: Arc<RoleGroup>,
    /// The previous group of the role, if the role's key changed recently; otherwise `None`. The
    /// schemas of the previous group are the base for loading the schemas of the current group.
    previous: Option<Arc<RoleGroup>>,
    /// The OID of the role in `pg_roles`.
    number: u32,
    /// The epoch in which the key was queried; `None` if the key must be queried again.
    keyed: Option<u64>,
    used: u64,
}

/// A query for the keys of roles, with the values of `epoch` and `additions` before the query.
pub(super) struct KeyQuery {
    pub(super) roles: Vec<RoleName>,
    epoch: u64,
    additions: u64,
}

impl RoleGroups {
    /// The group of a role; `None` if the role's key is not valid or not known. Marks the role as
    /// used.
    pub(super) fn group(&mut self, role: &RoleName, now: u64) -> Option<Arc<RoleGroup>> {
        let required = self.required;
        let member = self.roles.get_mut(role)?;
        member.used = now;
        member
            .keyed
            .is_some_and(|keyed| keyed >= required)
            .then(|| Arc::clone(&member.group))
    }

    /// The last known group of a role, even if the role's key is not valid, and the role's previous
    /// group. `None` for an unknown role.
    pub(super) fn last(
        &self,
        role: &RoleName,
    ) -> Option<(&Arc<RoleGroup>, Option<&Arc<RoleGroup>>)> {
        let member = self.roles.get(role)?;
        Some((&member.group, member.previous.as_ref()))
    }

    /// Adds a role to the next key query.
    pub(super) fn add_waiting(&mut self, role: &RoleName) {
        self.waiting.insert(role.clone());
    }

    /// Prepares the next key query. It has at most `max` roles: `first`, then the waiting roles,
    /// then roles with a stale key that were used in the last `max_age` ticks. Empties the list of
    /// waiting roles.
    pub(super) fn next_key_query(
        &mut self,
        first: Option<&RoleName>,
        now: u64,
        max_age: u64,
        max: usize,
    ) -> KeyQuery {
        let waiting = std::mem::take(&mut self.waiting);
        let stale = self.roles.iter().filter(|(_, member)| {
            member.keyed.is_none_or(|keyed| keyed < self.epoch)
                && now.saturating_sub(member.used) < max_age
        });
        let stale = stale.map(|(role, _)| role);
        let others = waiting
            .iter()
            .chain(stale.filter(|role| !waiting.contains(*role)))
            .filter(|role| Some(*role) != first);
        KeyQuery {
            roles: first.into_iter().chain(others).take(max).cloned().collect(),
            epoch: self.epoch,
            additions: self.additions,
        }
    }

    /// Stores the keys that a query returned. A queried role for which it returned no key does not
    /// exist, and is removed.
    pub(super) fn store_keys(&mut self, query: &KeyQuery, keys: Vec<RoleKey>, now: u64) {
        // If roles were added while the keys were read, memberships may have changed too. The keys
        // then get no epoch, so that the next request of each role queries its key again.
        let keyed = (query.additions == self.additions).then_some(query.epoch);
        let mut before = Vec::with_capacity(query.roles.len());
        for role in &query.roles {
            before.extend(self.roles.remove_entry(role));
        }
        let mut before: HashMap<_, _> = before.into_iter().collect();
        for RoleKey { role, number, key } in keys {
            let group = self.group_of(key, &role);
            let known = before.remove(&role);
            let used = known.as_ref().map_or(now, |known| known.used);
            let previous = known.and_then(|known| {
                if Arc::ptr_eq(&known.group, &group) {
                    return known.previous;
                }
                group.inherit_slots(&known.group);
                Some(known.group)
            });
            let member = RoleEntry {
                group,
                previous,
                number,
                keyed,
                used,
            };
            self.roles.insert(role, member);
        }
    }

    fn group_of(&mut self, key: String, role: &RoleName) -> Arc<RoleGroup> {
        let known = self.groups.get(key.as_str()).and_then(Weak::upgrade);
        if let Some(group) = known {
            group.set_representative(role);
            return group;
        }
        let key: Arc<str> = key.into();
        let group = Arc::new(RoleGroup::new(Arc::clone(&key), role.clone()));
        self.groups.insert(key, Arc::downgrade(&group));
        group
    }

    /// Marks the key of a role as stale, so that it is queried again.
    pub(super) fn invalidate_key(&mut self, role: &RoleName) {
        if let Some(member) = self.roles.get_mut(role) {
            member.keyed = None;
        }
    }

    /// Records a change of roles.
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

    /// Makes stale keys valid until the roles change again, because keys cannot be queried at the
    /// moment. Keys without an epoch (`RoleEntry::keyed`) stay invalid.
    pub(super) fn allow_stale(&mut self) {
        self.required = 0;
    }

    /// The current groups of all roles, each once. A group that is only the previous group of some
    /// roles is left out, because it is not refreshed. It is only the base for loading the schemas
    /// of the current group.
    pub(super) fn groups(&self) -> Vec<Arc<RoleGroup>> {
        let mut found = HashSet::new();
        let groups = self.roles.values().map(|member| &member.group);
        groups
            .filter(|group| found.insert(Arc::as_ptr(group)))
            .cloned()
            .collect()
    }

    /// Removes the roles, and the slots of groups, that were not used in the last `max_idle` ticks.
    /// Also drops the previous groups of all roles. Returns whether any roles are left.
    pub(super) fn remove_unused(&mut self, now: u64, max_idle: u64) -> bool {
        self.roles.retain(|_, member| {
            member.previous = None;
            now.saturating_sub(member.used) < max_idle
        });
        self.groups.retain(|_, group| {
            let group = group.upgrade();
            group.is_some_and(|group| {
                group.remove_unused(now, max_idle);
                true
            })
        });
        !self.roles.is_empty()
    }
}
