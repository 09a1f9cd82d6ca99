//! The evaluators of row level security. There is one for each table in use and each set of callers
//! that the policies of the table do not tell apart.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tidegate_sql::{DatabaseName, Executor, Login, RoleName, RoleUse};
use tokio::sync::Semaphore;

use crate::access::privileges::Privileges;
use crate::access::rls::RlsEvaluator;
use crate::access::rls_policy::CallerPart;

/// The maximum number of evaluators of one role and table that wait for PostgreSQL at the same
/// time. The number is high enough for the executor to use multiplexed connections. On these it
/// sends waiting statements in one write.
const JUDGED_TOGETHER: usize = 8;

/// Creates the evaluators. Subscriptions share an evaluator, so that each row image is evaluated
/// once for all callers that the policies treat alike.
pub(crate) struct RlsEvaluators {
    executor: Arc<dyn Executor>,
    in_use: Mutex<InUse>,
}

#[derive(Default)]
struct InUse {
    evaluators: HashMap<EvaluatorKey, Weak<RlsEvaluator>>,
    /// The permits of each role and table, which limit how many evaluators wait for PostgreSQL.
    permits: HashMap<DatabaseRoleTable, Weak<Semaphore>>,
    /// Unused evaluators are removed when there are this many evaluators.
    limit: usize,
}

/// A role of a database, and a table.
type DatabaseRoleTable = (DatabaseName, RoleName, u32);

/// The key of a shared evaluator: callers with equal keys share an evaluator.
#[derive(PartialEq, Eq, Hash)]
struct EvaluatorKey {
    role: DatabaseRoleTable,
    caller: CallerKey,
}

#[derive(PartialEq, Eq, Hash)]
enum CallerKey {
    /// Any member of the group, because the policies do not depend on the caller.
    AnyMember,
    /// Any member of the group with these claims.
    Claims(Box<str>),
    /// A single user or member, because the policies may depend on anything.
    One(RoleUse),
}

impl EvaluatorKey {
    fn new(login: &Login, relation: u32, privileges: &Privileges) -> Self {
        let policy = privileges.policy.as_ref();
        let part = policy.map_or(CallerPart::Identity, |policy| policy.caller);
        let caller = match (&login.role_use, part) {
            (RoleUse::Member(_), CallerPart::Nothing) => CallerKey::AnyMember,
            (RoleUse::Member(member), CallerPart::Claims) => {
                CallerKey::Claims(member.claims().into())
            }
            (role_use, _) => CallerKey::One(role_use.clone()),
        };
        let role = (login.database.clone(), login.role.clone(), relation);
        Self { role, caller }
    }

    fn common(&self) -> CallerPart {
        match self.caller {
            CallerKey::AnyMember => CallerPart::Nothing,
            CallerKey::Claims(_) => CallerPart::Claims,
            CallerKey::One(_) => CallerPart::Identity,
        }
    }
}

impl InUse {
    fn permits(&mut self, role: &DatabaseRoleTable) -> Arc<Semaphore> {
        if let Some(permits) = self.permits.get(role).and_then(Weak::upgrade) {
            return permits;
        }
        let permits = Arc::new(Semaphore::new(JUDGED_TOGETHER));
        self.permits.insert(role.clone(), Arc::downgrade(&permits));
        permits
    }

    /// Removes evaluators that are no longer used, when the number of evaluators has doubled since
    /// the last removal. So the average cost of adding a subscription does not grow with the number
    /// of members.
    fn remove_unused(&mut self) {
        if self.evaluators.len() >= self.limit {
            self.evaluators
                .retain(|_, evaluator| evaluator.strong_count() > 0);
            self.permits.retain(|_, permits| permits.strong_count() > 0);
            self.limit = 2 * self.evaluators.len() + 16;
        }
    }
}

impl RlsEvaluators {
    pub(crate) fn new(executor: Arc<dyn Executor>) -> Self {
        Self {
            executor,
            in_use: Mutex::default(),
        }
    }

    /// The evaluator of a caller and a table, updated with the policies of `privileges`. An
    /// existing evaluator cannot be updated while it is busy. In that case a new evaluator is
    /// returned, which later subscriptions share. The earlier subscriptions keep the old one.
    pub(crate) fn get(
        &self,
        login: &Login,
        relation: u32,
        privileges: &Privileges,
    ) -> Arc<RlsEvaluator> {
        let mut in_use = self.in_use.lock();
        in_use.remove_unused();
        let key = EvaluatorKey::new(login, relation, privileges);
        let known = in_use.evaluators.get(&key).and_then(Weak::upgrade);
        if let Some(evaluator) = known.filter(|evaluator| evaluator.try_update(privileges)) {
            return evaluator;
        }
        let (executor, permits) = (self.executor.clone(), in_use.permits(&key.role));
        let caller = (login.clone(), key.common());
        let evaluator = RlsEvaluator::new(executor, caller, privileges, permits);
        let evaluator = Arc::new(evaluator);
        in_use.evaluators.insert(key, Arc::downgrade(&evaluator));
        evaluator
    }
}
