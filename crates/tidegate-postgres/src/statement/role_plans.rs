//! Prepared statements that only one role uses, for statements under row level security.
//!
//! PostgreSQL analyses and plans a statement under row level security again whenever the role
//! differs from that of the previous run ("Row Security Policies"; `RevalidateCachedQuery` in
//! `plancache.c`). A statement for each role avoids this, but PostgreSQL then keeps a plan of 18 KB
//! for each role. Plans that are not reused soon cost more than they save.
//!
//! Measured: PostgreSQL's CPU time for a read by key, with the roles in random order.
//!
//! | roles | one shared statement | a statement for each role |
//! | --- | --- | --- |
//! | 300 | 64 to 69 µs | 41 µs |
//! | 10,000, 500 on each connection | 215 µs | 251 µs |
//!
//! In the second case each plan was used only once or twice. In addition, the plans did not
//! fit into the processor's caches, and using such a plan is no faster than planning again.
//! Therefore a role gets a plan only while the connection runs few different pairs of statement and
//! role, and runs each of them often ([`Uses`]).

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tidegate_sql::{BoundStatement, RoleName, TypeHint};

use super::task::PreparedStatement;
use crate::metadata::{StatementDescription, StatementKey};

/// The maximum number of plans of a connection. Beyond it, the least recently used plan is removed.
const MAX_PLANS: usize = 384;
/// The number of uses after which counting starts over.
const WINDOW: usize = 2048;
/// Plans are made while pairs of statement and role are used at least this often on average.
const MIN_AVERAGE_USES: usize = 3;

/// The prepared statements that only one role uses.
#[derive(Debug, Default)]
pub(super) struct RolePlans {
    plans: HashMap<u64, RolePlan>,
    uses: Uses,
    hasher: RandomState,
    clock: u64,
}

/// The pairs of statement and role that the connection ran recently.
#[derive(Debug, Default)]
struct Uses {
    pairs: HashSet<u64>,
    count: usize,
}

impl Uses {
    /// Counts a use of a pair of statement and role. `pair` is the hash of the pair. Returns
    /// whether a plan for the pair is worth its cost. It is worth it if the pair was used before,
    /// pairs are used often on average, and the connection can hold plans for all pairs.
    fn count(&mut self, pair: u64) -> bool {
        if self.count >= WINDOW {
            *self = Self::default();
        }
        self.count += 1;
        // With more pairs than plans no plan is made until counting starts over. The set does not
        // grow further: with thousands of roles it would take 36 KB on each connection.
        if self.pairs.len() > MAX_PLANS {
            return false;
        }
        let again = !self.pairs.insert(pair);
        again && self.count >= MIN_AVERAGE_USES * self.pairs.len()
    }
}

#[derive(Debug)]
struct RolePlan {
    key: StatementKey,
    prepared: Arc<PreparedStatement>,
    used: u64,
}

impl RolePlan {
    fn matches(&self, bound: &BoundStatement, role: &RoleName) -> bool {
        self.prepared.role.as_ref() == Some(role) && self.key.matches(bound)
    }
}

impl RolePlans {
    /// Counts a use of the statement by the role. Returns the statement prepared for the role if it
    /// has the same parameters and columns as `description`. Otherwise returns an error, which is
    /// `true` if a statement should be prepared for the role.
    pub(super) fn find(
        &mut self,
        bound: &BoundStatement,
        role: &RoleName,
        description: &Arc<StatementDescription>,
    ) -> Result<Arc<PreparedStatement>, bool> {
        let key = self.hash(bound, role);
        let is_worth_a_plan = self.uses.count(key);
        let Some(plan) = self.plans.get_mut(&key) else {
            return Err(is_worth_a_plan);
        };
        if !plan.matches(bound, role) || !plan.prepared.description.is_described_as(description) {
            return Err(is_worth_a_plan);
        }
        if !Arc::ptr_eq(&plan.prepared.description, description) {
            let name = plan.prepared.name.clone();
            plan.prepared = Arc::new(plan.prepared.with(name, description, role));
        }
        self.clock += 1;
        plan.used = self.clock;
        Ok(plan.prepared.clone())
    }

    /// Adds a statement. Returns the name of the statement that it replaces or evicts, if any.
    pub(super) fn keep(
        &mut self,
        key: StatementKey,
        prepared: Arc<PreparedStatement>,
    ) -> Option<String> {
        let hash = self.hash_of(key.statement.text(), &key.hints, prepared.role.as_ref()?);
        let evicted = if self.plans.len() < MAX_PLANS || self.plans.contains_key(&hash) {
            Some(hash)
        } else {
            let oldest = self.plans.iter().min_by_key(|(_, plan)| plan.used);
            oldest.map(|(key, _)| *key)
        };
        let evicted = evicted.and_then(|key| self.plans.remove(&key));
        self.clock += 1;
        let plan = RolePlan {
            key,
            prepared,
            used: self.clock,
        };
        self.plans.insert(hash, plan);
        evicted.map(|plan| plan.prepared.name.clone())
    }

    /// Removes the statement prepared for a role, and returns its name; `None` if there is none.
    pub(super) fn remove(&mut self, bound: &BoundStatement, role: &RoleName) -> Option<String> {
        if self.plans.is_empty() {
            return None;
        }
        let key = self.hash(bound, role);
        let plan = self.plans.remove(&key)?;
        Some(plan.prepared.name.clone())
    }

    /// Removes exactly this prepared statement, and returns its name. Returns `None` if it belongs
    /// to no role or is not cached.
    pub(super) fn remove_prepared(&mut self, prepared: &Arc<PreparedStatement>) -> Option<String> {
        prepared.role.as_ref()?;
        let is_same = |plan: &RolePlan| plan.prepared.name == prepared.name;
        let key = self.plans.iter().find(|(_, plan)| is_same(plan));
        let key = key.map(|(key, _)| *key)?;
        self.plans.remove(&key);
        Some(prepared.name.clone())
    }

    /// Removes all statements, and returns their names.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = String> {
        self.uses = Uses::default();
        self.plans
            .drain()
            .map(|(_, plan)| plan.prepared.name.clone())
    }

    fn hash(&self, bound: &BoundStatement, role: &RoleName) -> u64 {
        self.hash_of(bound.statement.text(), &bound.hints, role)
    }

    fn hash_of(&self, text: &str, hints: &[Option<TypeHint>], role: &RoleName) -> u64 {
        self.hasher.hash_one((text, hints, role))
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_PLANS, Uses};

    /// Simulates `uses` of one statement by random roles; returns how many plans are prepared.
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
        assert_eq!(prepared(500, 100_000), 0, "more than {MAX_PLANS}");
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
