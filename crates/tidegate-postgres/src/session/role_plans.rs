//! Statements under row level security, prepared once more for a role that uses them often.
//!
//! PostgreSQL analyses and plans a prepared statement under row level security again whenever
//! another role runs it than the last time ("Row Security Policies"; `RevalidateCachedQuery` in
//! `plancache.c`). With 300 roles at random a read by key took 64 to 69 us of CPU before, and 41 with
//! plans by role.
//! With a statement for each role PostgreSQL keeps the plans of all of them, at 18 KB each.
//!
//! The first use of a statement by a role only leaves a mark: among ten thousand users who rarely ask
//! twice on a connection, preparing would cost more than it saves.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tidegate_sql::{BoundStatement, RoleName, Statement, TypeHint};

use super::cache::{Prepared, is_same};
use crate::dictionary::shape::Shape;

/// The plans of a connection at most; the least recently used makes room.
const MOST: usize = 512;
/// Marks of first uses that are kept; then they start over.
const MARKS: usize = 2048;

/// The statements that roles have for themselves.
#[derive(Debug, Default)]
pub(super) struct RolePlans {
    plans: HashMap<u64, RolePlan>,
    marks: HashSet<u64>,
    hasher: RandomState,
    clock: u64,
}

#[derive(Debug)]
struct RolePlan {
    statement: Arc<Statement>,
    hints: Vec<Option<TypeHint>>,
    prepared: Arc<Prepared>,
    used: u64,
}

impl RolePlan {
    fn is_of(&self, bound: &BoundStatement, role: &RoleName) -> bool {
        self.prepared.role.as_ref() == Some(role) && is_same(&self.statement, &self.hints, bound)
    }
}

impl RolePlans {
    /// The statement of a role, if what PostgreSQL says of the text now is what it was prepared
    /// with.
    pub(super) fn find(
        &mut self,
        bound: &BoundStatement,
        role: &RoleName,
        shape: &Arc<Shape>,
    ) -> Option<Arc<Prepared>> {
        let key = self.hash(bound, role);
        let plan = self.plans.get_mut(&key)?;
        if !plan.is_of(bound, role) || !plan.prepared.shape.is_described_as(shape) {
            return None;
        }
        if !Arc::ptr_eq(&plan.prepared.shape, shape) {
            let name = plan.prepared.name.clone();
            plan.prepared = Arc::new(plan.prepared.with(name, shape, role));
        }
        self.clock += 1;
        plan.used = self.clock;
        Some(plan.prepared.clone())
    }

    /// Whether the role has used the statement before, lately.
    pub(super) fn is_frequent(&mut self, bound: &BoundStatement, role: &RoleName) -> bool {
        if self.marks.len() >= MARKS {
            self.marks.clear();
        }
        !self.marks.insert(self.hash(bound, role))
    }

    /// Keeps a statement; returns the name of the one that makes room.
    pub(super) fn keep(
        &mut self,
        bound: &BoundStatement,
        prepared: Arc<Prepared>,
    ) -> Option<String> {
        let key = self.hash(bound, prepared.role.as_ref()?);
        let evicted = if self.plans.len() < MOST || self.plans.contains_key(&key) {
            Some(key)
        } else {
            let oldest = self.plans.iter().min_by_key(|(_, plan)| plan.used);
            oldest.map(|(key, _)| *key)
        };
        let evicted = evicted.and_then(|key| self.plans.remove(&key));
        self.clock += 1;
        let plan = RolePlan {
            statement: bound.statement.clone(),
            hints: bound.hints.clone(),
            prepared,
            used: self.clock,
        };
        self.plans.insert(key, plan);
        evicted.map(|plan| plan.prepared.name.clone())
    }

    /// Forgets the statement of a role; returns its name.
    pub(super) fn remove(&mut self, bound: &BoundStatement, role: &RoleName) -> Option<String> {
        if self.plans.is_empty() {
            return None;
        }
        let key = self.hash(bound, role);
        let plan = self.plans.remove(&key)?;
        Some(plan.prepared.name.clone())
    }

    /// The same for a statement that is known by its identity.
    pub(super) fn remove_prepared(&mut self, prepared: &Arc<Prepared>) -> Option<String> {
        prepared.role.as_ref()?;
        let is_it = |plan: &RolePlan| plan.prepared.name == prepared.name;
        let key = self.plans.iter().find(|(_, plan)| is_it(plan));
        let key = key.map(|(key, _)| *key)?;
        self.plans.remove(&key);
        Some(prepared.name.clone())
    }

    /// Forgets all; returns their names.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = String> {
        self.marks.clear();
        self.plans
            .drain()
            .map(|(_, plan)| plan.prepared.name.clone())
    }

    fn hash(&self, bound: &BoundStatement, role: &RoleName) -> u64 {
        self.hasher
            .hash_one((bound.statement.text(), &bound.hints, role))
    }
}
