//! The prepared statements of a connection.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use tidegate_sql::statement::{Kind, Purity};
use tidegate_sql::{BoundStatement, TypeHint};

use super::role_plans::RolePlans;
use super::task::CallerSwitch;
use super::task::PreparedStatement;
use super::task::StatementTask;
use crate::metadata::{StatementDescription, StatementKey};

/// The prepared statements, by text and type hints. A full cache evicts the least recently used
/// statement.
#[derive(Debug)]
pub(crate) struct StatementCache {
    entries: HashMap<u64, CachedStatement>,
    role_plans: RolePlans,
    hasher: RandomState,
    capacity: usize,
    /// A counter that increases with each use of a statement and each new name. It orders the uses,
    /// and it makes the names unique.
    clock: u64,
    /// The names of statements that were removed from the cache and for which no Close has been
    /// queued yet.
    dropped: Vec<String>,
    /// The names of prepared internal commands, by their text.
    internal: HashMap<&'static str, String>,
    /// The internal commands that the current pipeline prepares.
    preparing: Vec<&'static str>,
    /// The names of removed statements that the current pipeline closes. It closes them before it
    /// prepares internal commands.
    closing: Vec<String>,
}

#[derive(Debug)]
struct CachedStatement {
    key: StatementKey,
    prepared: Arc<PreparedStatement>,
    used: u64,
}

impl StatementCache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: HashMap::new(),
            role_plans: RolePlans::default(),
            hasher: RandomState::new(),
            capacity: capacity.max(1),
            clock: 0,
            dropped: Vec::new(),
            internal: HashMap::new(),
            preparing: Vec::new(),
            closing: Vec::new(),
        }
    }

    /// The prepared statement of a task, and whether it is unconfirmed. An unconfirmed statement
    /// has a cached description, but this connection has not prepared it yet. Unconfirmed
    /// statements are returned only if `allow_unconfirmed` is set. Returns `None` if PostgreSQL has
    /// to describe the statement first.
    pub(crate) fn known(
        &mut self,
        task: &StatementTask<'_>,
        allow_unconfirmed: bool,
    ) -> Option<(Arc<PreparedStatement>, bool)> {
        if task.is_kept()
            && let Some(prepared) = self.find(task.bound)
        {
            if task.metadata.is_valid(&prepared.description) {
                return Some(self.for_role(task, prepared, allow_unconfirmed));
            }
            let key = self.key(task.bound);
            self.remove(key);
        }
        let description = task.metadata.description(task.bound, &task.login.role)?;
        if !allow_unconfirmed || !may_run_unconfirmed(task, &description) {
            return None;
        }
        let name = if task.is_kept() {
            self.name()
        } else {
            String::new()
        };
        Some((Arc::new(PreparedStatement::new(name, description)), true))
    }

    /// The prepared statement with this text and these hints.
    fn find(&mut self, bound: &BoundStatement) -> Option<Arc<PreparedStatement>> {
        let key = self.key(bound);
        self.clock += 1;
        let entry = self.entries.get_mut(&key)?;
        if !entry.key.matches(bound) {
            return None;
        }
        entry.used = self.clock;
        Some(entry.prepared.clone())
    }

    /// Chooses between `prepared`, which all roles share, and a statement that is prepared for the
    /// task's role alone. Returns the chosen statement, and whether it is unconfirmed.
    ///
    /// Only statements under row level security are prepared for one role. If the role already has
    /// its own statement, that statement is chosen. If the role has none but uses the statement
    /// often, one is created. A created statement is unconfirmed, so it is created only if
    /// `allow_unconfirmed` is set and the statement may run unconfirmed. In all other cases
    /// `prepared` is chosen.
    fn for_role(
        &mut self,
        task: &StatementTask<'_>,
        prepared: Arc<PreparedStatement>,
        allow_unconfirmed: bool,
    ) -> (Arc<PreparedStatement>, bool) {
        // All members of a group run statements as the same role, so they share one plan.
        let Some(CallerSwitch::Role { role, .. }) = task.switch else {
            return (prepared, false);
        };
        let purity = &task.metadata.purity;
        if !purity.is_restricted(&task.bound.statement, &prepared.restricted) {
            return (prepared, false);
        }
        let found = self
            .role_plans
            .find(task.bound, role, &prepared.description);
        match found {
            Ok(plan) => return (plan, false),
            Err(true) if allow_unconfirmed && may_run_unconfirmed(task, &prepared.description) => {}
            Err(_) => return (prepared, false),
        }
        let plan = prepared.with(self.name(), &prepared.description, role);
        (Arc::new(plan), true)
    }

    /// A new, unpredictable name for a prepared statement.
    pub(crate) fn name(&mut self) -> String {
        self.clock += 1;
        format!("tidegate {:016x}", self.hasher.hash_one(self.clock))
    }

    /// The name of the prepared statement for an internal command, and whether it still has to be
    /// prepared. From now on the command counts as prepared.
    pub(crate) fn internal_name(&mut self, text: &'static str) -> (String, bool) {
        if let Some(name) = self.internal.get(text) {
            return (name.clone(), false);
        }
        let name = self.name();
        self.internal.insert(text, name.clone());
        self.preparing.push(text);
        (name, true)
    }

    /// Starts a pipeline. The previous pipeline can no longer be withdrawn.
    pub(crate) fn begin_pipeline(&mut self) {
        self.preparing.clear();
        self.closing.clear();
    }

    /// Undoes what the current pipeline changed in this cache, because the pipeline is not sent.
    /// The internal commands that it would have prepared count as not prepared. The statements
    /// that it would have closed are left for a later pipeline to close.
    pub(crate) fn withdraw_pipeline(&mut self) {
        for text in self.preparing.drain(..) {
            self.internal.remove(text);
        }
        self.dropped.append(&mut self.closing);
    }

    /// The name of the prepared statement for an internal command; `None` if it is not prepared.
    pub(crate) fn prepared_internal(&self, text: &str) -> Option<&str> {
        self.internal.get(text).map(String::as_str)
    }

    /// Forgets all internal commands, because it is unknown which of them are prepared. Their
    /// prepared statements are closed later.
    pub(crate) fn forget_internal(&mut self) {
        self.dropped
            .extend(self.internal.drain().map(|(_, name)| name));
    }

    /// Adds a prepared statement. If it belongs to one role, it is added to the plans of roles.
    pub(crate) fn keep(&mut self, key: StatementKey, prepared: Arc<PreparedStatement>) {
        if prepared.role.is_some() {
            let replaced = self.role_plans.keep(key, prepared);
            self.dropped.extend(replaced);
            return;
        }
        if self.entries.len() >= self.capacity {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            if let Some(key) = oldest.map(|(key, _)| *key) {
                self.remove(key);
            }
        }
        let hash = self.hash(key.statement.text(), &key.hints);
        self.remove(hash);
        let used = self.clock;
        let entry = CachedStatement {
            key,
            prepared,
            used,
        };
        self.entries.insert(hash, entry);
    }

    /// Removes a stale statement, and the statement prepared for the task's role alone.
    pub(crate) fn forget(&mut self, task: &StatementTask<'_>) {
        let key = self.key(task.bound);
        self.remove(key);
        let plan = self.role_plans.remove(task.bound, task.role());
        self.dropped.extend(plan);
    }

    /// Removes exactly this prepared statement, which is stale.
    pub(crate) fn forget_prepared(&mut self, prepared: &Arc<PreparedStatement>) {
        let is_same =
            |(_, entry): &(&u64, &CachedStatement)| Arc::ptr_eq(&entry.prepared, prepared);
        if let Some(key) = self.entries.iter().find(is_same).map(|(key, _)| *key) {
            self.remove(key);
        }
        self.dropped
            .extend(self.role_plans.remove_prepared(prepared));
    }

    /// Lets a later pipeline close a prepared statement that was not added to the cache.
    pub(crate) fn discard(&mut self, name: &str) {
        if !name.is_empty() {
            self.dropped.push(name.to_owned());
        }
    }

    /// Removes all statements except internal commands, because definitions have changed in this
    /// transaction.
    pub(crate) fn retire(&mut self) {
        let names = self
            .entries
            .drain()
            .map(|(_, entry)| entry.prepared.name.clone());
        self.dropped.extend(names);
        self.dropped.extend(self.role_plans.drain());
    }

    /// Moves the content into a new cache. This cache stays empty, with the same capacity.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Self::new(self.capacity);
        std::mem::replace(self, empty)
    }

    /// Clears the cache, because a reset drops all prepared statements of the session.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.role_plans = RolePlans::default();
        self.dropped.clear();
        self.internal.clear();
    }

    /// Takes the names of statements that were removed from the cache. The calling function must
    /// queue a Close for each name.
    pub(crate) fn take_dropped(&mut self) -> Vec<String> {
        std::mem::take(&mut self.dropped)
    }

    /// Takes the names of statements that were removed from the cache. The calling function must
    /// queue a Close for each name before the Parse of an internal command.
    /// [`Self::withdraw_pipeline`] undoes this call.
    pub(crate) fn close_dropped(&mut self) -> &[String] {
        let known = self.closing.len();
        self.closing.append(&mut self.dropped);
        &self.closing[known..]
    }

    fn remove(&mut self, key: u64) {
        if let Some(entry) = self.entries.remove(&key) {
            self.dropped.push(entry.prepared.name.clone());
        }
    }

    fn key(&self, bound: &BoundStatement) -> u64 {
        self.hash(bound.statement.text(), &bound.hints)
    }

    fn hash(&self, text: &str, hints: &[Option<TypeHint>]) -> u64 {
        self.hasher.hash_one((text, hints))
    }
}

/// Whether a statement may be sent with an unconfirmed description, which may be wrong. It must be
/// a read that may run again, or a write that returns no rows.
fn may_run_unconfirmed(task: &StatementTask<'_>, description: &StatementDescription) -> bool {
    match task.bound.statement.kind() {
        Kind::Read => task.bound.purity() == Purity::Stateless,
        Kind::Write => description.columns.is_empty(),
        Kind::Procedural | Kind::Other => false,
    }
}
