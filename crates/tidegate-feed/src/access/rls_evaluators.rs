//! The evaluators of row level security, one for each role and table in use.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tidegate_sql::{Executor, Login};

use crate::access::privileges::Privileges;
use crate::access::rls::RlsEvaluator;

/// Creates one evaluator for each role and table. Subscriptions share the evaluator, so that each
/// row image is evaluated once for a role.
pub(crate) struct RlsEvaluators {
    executor: Arc<dyn Executor>,
    in_use: Mutex<InUse>,
}

#[derive(Default)]
struct InUse {
    evaluators: HashMap<(Login, u32), Weak<RlsEvaluator>>,
    /// How many evaluators there may be until those that are not used any more are removed.
    limit: usize,
}

impl InUse {
    /// Removes evaluators that are not used any more, when their number has doubled: so each
    /// subscription costs the same, whatever the number of members.
    fn remove_unused(&mut self) {
        if self.evaluators.len() >= self.limit {
            self.evaluators
                .retain(|_, evaluator| evaluator.strong_count() > 0);
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

    /// The evaluator of a role and a table, updated with the policies of `privileges`. An existing
    /// evaluator that is busy cannot be updated now. In that case existing subscriptions keep this
    /// evaluator, and new subscriptions share a new one.
    pub(crate) fn get(
        &self,
        login: &Login,
        relation: u32,
        privileges: &Privileges,
    ) -> Arc<RlsEvaluator> {
        let mut in_use = self.in_use.lock();
        in_use.remove_unused();
        let key = (login.clone(), relation);
        let known = in_use.evaluators.get(&key).and_then(Weak::upgrade);
        if let Some(evaluator) = known.filter(|evaluator| evaluator.try_update(privileges)) {
            return evaluator;
        }
        let evaluator = RlsEvaluator::new(self.executor.clone(), login.clone(), privileges);
        let evaluator = Arc::new(evaluator);
        in_use.evaluators.insert(key, Arc::downgrade(&evaluator));
        evaluator
    }
}
