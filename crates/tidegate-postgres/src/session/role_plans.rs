//! Statements under row level security, prepared once more for a role that uses them often.
//!
//! PostgreSQL analyses and plans a prepared statement under row level security again whenever
//! another role runs it than the last time ("Row Security Policies"; `RevalidateCachedQuery` in
//! `plancache.c`). With 300 roles at random a read by key took 64 to 69 us of CPU before, and 41 with
//! plans by role.
//! With a statement for each role PostgreSQL keeps the plans of all of them, at 18 KB each.
//!
//! Plans that are not used again soon cost more than they save. With 10,000 roles at random, 500 on
//! a connection, a read took 251 us of PostgreSQL's CPU with plans by role and 215 without: each
//! plan is prepared for one or two uses, and more plans than the processor's caches hold are no
//! faster than planning. So a role gets a plan only while a connection runs few statements for few
//! roles, each often ([`Uses`]).

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tidegate_sql::{BoundStatement, RoleName, Statement, TypeHint};

use super::cache::{Prepared, is_same};
use crate::dictionary::shape::Shape;

/// The plans of a connection at most; the least recently used makes room.
const MOST: usize = 384;
/// After so many uses counting starts over.
const WINDOW: usize = 2048;
/// How often each pair of statement and role must have been used on average.
const OFTEN: usize = 3;

/// The statements that roles have for themselves.
#[derive(Debug, Default)]
pub(super) struct RolePlans {
    plans: HashMap<u64, RolePlan>,
    uses: Uses,
    hasher: RandomState,
    clock: u64,
}

/// Which pairs of statement and role the connection has run lately.
#[derive(Debug, Default)]
struct Uses {
    pairs: HashSet<u64>,
    count: usize,
}

impl Uses {
    /// Counts a use; tells whether a plan for the pair is likely to be used often enough: it was
    /// used before, all pairs together are used often, and there is room for the plans of all.
    fn count(&mut self, pair: u64) -> bool {
        if self.count >= WINDOW {
            *self = Self::default();
        }
        self.count += 1;
        let again = !self.pairs.insert(pair);
        let pairs = self.pairs.len();
        again && pairs <= MOST && self.count >= OFTEN * pairs
    }
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
    /// Counts a use. Gives the statement of the role, if what PostgreSQL says of the text now is what
    /// it was prepared with, or tells whether one should be prepared.
    pub(super) fn find(
        &mut self,
        bound: &BoundStatement,
        role: &RoleName,
        shape: &Arc<Shape>,
    ) -> Result<Arc<Prepared>, bool> {
        let key = self.hash(bound, role);
        let is_worth_one = self.uses.count(key);
        let Some(plan) = self.plans.get_mut(&key) else {
            return Err(is_worth_one);
        };
        if !plan.is_of(bound, role) || !plan.prepared.shape.is_described_as(shape) {
            return Err(is_worth_one);
        }
        if !Arc::ptr_eq(&plan.prepared.shape, shape) {
            let name = plan.prepared.name.clone();
            plan.prepared = Arc::new(plan.prepared.with(name, shape, role));
        }
        self.clock += 1;
        plan.used = self.clock;
        Ok(plan.prepared.clone())
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
        self.uses = Uses::default();
        self.plans
            .drain()
            .map(|(_, plan)| plan.prepared.name.clone())
    }

    fn hash(&self, bound: &BoundStatement, role: &RoleName) -> u64 {
        self.hasher
            .hash_one((bound.statement.text(), &bound.hints, role))
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST, Uses};

    /// How many plans are prepared for so many roles that run one statement at random.
    fn prepared(roles: u64, uses: u64) -> usize {
        let mut window = Uses::default();
        let mut plans = std::collections::HashSet::new();
        let mut state = 1_u64;
        for _ in 0..uses {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let role = (state >> 33) % roles;
            if window.count(role) {
                plans.insert(role);
            }
        }
        plans.len()
    }

    #[test]
    fn few_roles_get_plans_and_many_get_none() {
        assert_eq!(prepared(1, 3), 1);
        assert_eq!(prepared(300, 6_000), 300);
        assert_eq!(prepared(500, 100_000), 0, "more than {MOST}");
        assert_eq!(prepared(10_000, 100_000), 0);
    }

    #[test]
    fn a_role_gets_no_plan_for_its_first_use() {
        let mut uses = Uses::default();
        assert_eq!([1, 1, 1].map(|role| uses.count(role)), [false, false, true]);
        assert!((0..9).all(|_| uses.count(1)));
        assert_eq!([2, 2].map(|role| uses.count(role)), [false, true]);
    }
}
