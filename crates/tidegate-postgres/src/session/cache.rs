//! The prepared statements of a connection.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use tidegate_sql::statement::{Kind, Purity};
use tidegate_sql::{BoundStatement, RoleName, Statement, TypeHint};

use super::role_plans::RolePlans;
use super::task::Task;
use crate::dictionary::shape::Shape;
use crate::suspects::Verdict;

/// A statement that PostgreSQL has parsed and described.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Its name in the session; empty for one that is used once.
    pub(crate) name: String,
    /// What PostgreSQL said of it.
    pub(crate) shape: Arc<Shape>,
    /// Whether it mentions a suspect.
    pub(crate) verdict: Arc<Verdict>,
    /// Whether it mentions a relation under row level security.
    restricted: Arc<Verdict>,
    /// The only role that uses it, if it is one of [`RolePlans`].
    pub(crate) role: Option<RoleName>,
}

impl Prepared {
    /// A statement that all roles of a connection use.
    pub(crate) fn new(name: String, shape: Arc<Shape>) -> Self {
        Self {
            name,
            shape,
            verdict: Arc::default(),
            restricted: Arc::default(),
            role: None,
        }
    }

    /// The same statement under another name and with another shape.
    pub(super) fn with(&self, name: String, shape: &Arc<Shape>, role: &RoleName) -> Self {
        Self {
            name,
            shape: shape.clone(),
            verdict: self.verdict.clone(),
            restricted: self.restricted.clone(),
            role: Some(role.clone()),
        }
    }
}

/// Prepared statements by text and hints; the least recently used makes room.
#[derive(Debug)]
pub(crate) struct StatementCache {
    entries: HashMap<u64, Entry>,
    role_plans: RolePlans,
    hasher: RandomState,
    capacity: usize,
    /// Counts uses and names.
    clock: u64,
    /// Names that PostgreSQL still holds and nobody needs.
    dropped: Vec<String>,
    /// The names of our own commands by their text, once they are prepared.
    own: HashMap<&'static str, String>,
    /// Those of them that the last pipeline prepares.
    preparing: Vec<&'static str>,
    /// The names that it closes in front of them.
    closing: Vec<String>,
}

#[derive(Debug)]
struct Entry {
    statement: Arc<Statement>,
    hints: Vec<Option<TypeHint>>,
    prepared: Arc<Prepared>,
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
            own: HashMap::new(),
            preparing: Vec::new(),
            closing: Vec::new(),
        }
    }

    /// What is known of a read or write: prepared here, or described to the role before, which is a
    /// guess here. Nothing is guessed unless `may_guess`.
    pub(crate) fn known(
        &mut self,
        task: &Task<'_>,
        may_guess: bool,
    ) -> Option<(Arc<Prepared>, bool)> {
        if task.is_kept()
            && let Some(prepared) = self.find(task.bound)
        {
            if task.dictionary.believes(&prepared.shape) {
                return Some(self.for_role(task, prepared, may_guess));
            }
            let key = self.key(task.bound);
            self.remove(key);
        }
        let shape = task.dictionary.shape(task.bound, &task.login.role)?;
        if !may_guess || !is_guessable(task, &shape) {
            return None;
        }
        let name = if task.is_kept() {
            self.name()
        } else {
            String::new()
        };
        Some((Arc::new(Prepared::new(name, shape)), true))
    }

    /// The prepared statement for the same text and hints.
    fn find(&mut self, bound: &BoundStatement) -> Option<Arc<Prepared>> {
        let key = self.key(bound);
        self.clock += 1;
        let entry = self.entries.get_mut(&key)?;
        if !is_same(&entry.statement, &entry.hints, bound) {
            return None;
        }
        entry.used = self.clock;
        Some(entry.prepared.clone())
    }

    /// The statement that the caller's role has for itself, if it has one or is worth one.
    fn for_role(
        &mut self,
        task: &Task<'_>,
        prepared: Arc<Prepared>,
        may_guess: bool,
    ) -> (Arc<Prepared>, bool) {
        let Some(switch) = task.switch else {
            return (prepared, false);
        };
        let belief = &task.dictionary.belief;
        if !belief.is_restricted(&task.bound.statement, &prepared.restricted) {
            return (prepared, false);
        }
        let found = self
            .role_plans
            .find(task.bound, switch.role, &prepared.shape);
        match found {
            Ok(own) => return (own, false),
            Err(true) if may_guess && is_guessable(task, &prepared.shape) => {}
            Err(_) => return (prepared, false),
        }
        let own = prepared.with(self.name(), &prepared.shape, switch.role);
        (Arc::new(own), true)
    }

    /// A name that nobody can guess who has not looked into the session.
    pub(crate) fn name(&mut self) -> String {
        self.clock += 1;
        format!("tidegate {:016x}", self.hasher.hash_one(self.clock))
    }

    /// The name of a command of our own, and whether it is still to be prepared.
    pub(crate) fn own(&mut self, text: &'static str) -> (String, bool) {
        if let Some(name) = self.own.get(text) {
            return (name.clone(), false);
        }
        let name = self.name();
        self.own.insert(text, name.clone());
        self.preparing.push(text);
        (name, true)
    }

    /// What was queued before stays queued.
    pub(crate) fn begin_pipeline(&mut self) {
        self.preparing.clear();
        self.closing.clear();
    }

    /// The last pipeline prepares and closes nothing of ours, because it is not sent.
    pub(crate) fn withdraw_pipeline(&mut self) {
        for text in self.preparing.drain(..) {
            self.own.remove(text);
        }
        self.dropped.append(&mut self.closing);
    }

    /// The name of a command of our own that is prepared.
    pub(crate) fn prepared_own(&self, text: &str) -> Option<&str> {
        self.own.get(text).map(String::as_str)
    }

    /// Forgets our own commands: one of them may not be prepared. The others are closed.
    pub(crate) fn forget_own(&mut self) {
        self.dropped.extend(self.own.drain().map(|(_, name)| name));
    }

    /// Keeps a prepared statement.
    pub(crate) fn keep(&mut self, bound: &BoundStatement, prepared: Arc<Prepared>) {
        if prepared.role.is_some() {
            let replaced = self.role_plans.keep(bound, prepared);
            self.dropped.extend(replaced);
            return;
        }
        if self.entries.len() >= self.capacity {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            if let Some(key) = oldest.map(|(key, _)| *key) {
                self.remove(key);
            }
        }
        let key = self.key(bound);
        self.remove(key);
        let (statement, hints) = (bound.statement.clone(), bound.hints.clone());
        self.entries.insert(
            key,
            Entry {
                statement,
                hints,
                prepared,
                used: self.clock,
            },
        );
    }

    /// Forgets a statement of the task's that does not fit any more.
    pub(crate) fn forget(&mut self, task: &Task<'_>) {
        let key = self.key(task.bound);
        self.remove(key);
        let own = self.role_plans.remove(task.bound, task.role());
        self.dropped.extend(own);
    }

    /// Forgets a statement that turned out not to fit any more.
    pub(crate) fn forget_prepared(&mut self, prepared: &Arc<Prepared>) {
        let is_it = |(_, entry): &(&u64, &Entry)| Arc::ptr_eq(&entry.prepared, prepared);
        if let Some(key) = self.entries.iter().find(is_it).map(|(key, _)| *key) {
            self.remove(key);
        }
        self.dropped
            .extend(self.role_plans.remove_prepared(prepared));
    }

    /// Has a name closed that was not kept.
    pub(crate) fn discard(&mut self, name: &str) {
        if !name.is_empty() {
            self.dropped.push(name.to_owned());
        }
    }

    /// Gives all up, because definitions have changed in this transaction.
    pub(crate) fn retire(&mut self) {
        let names = self
            .entries
            .drain()
            .map(|(_, entry)| entry.prepared.name.clone());
        self.dropped.extend(names);
        self.dropped.extend(self.role_plans.drain());
    }

    /// Moves everything out and leaves an empty cache of the same capacity.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Self::new(self.capacity);
        std::mem::replace(self, empty)
    }

    /// Forgets all, because PostgreSQL does.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.role_plans = RolePlans::default();
        self.dropped.clear();
        self.own.clear();
    }

    /// The names to be closed.
    pub(crate) fn take_dropped(&mut self) -> Vec<String> {
        std::mem::take(&mut self.dropped)
    }

    /// The names to be closed in front of a command of our own.
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
        let mut hasher = self.hasher.build_hasher();
        bound.statement.text().hash(&mut hasher);
        bound.hints.hash(&mut hasher);
        hasher.finish()
    }
}

/// Whether a statement may be sent with a description that PostgreSQL has not confirmed on this
/// connection: one that can be run again, and shows nothing before it is confirmed.
fn is_guessable(task: &Task<'_>, shape: &Shape) -> bool {
    match task.bound.statement.kind() {
        Kind::Read => task.bound.purity() == Purity::Stateless,
        Kind::Write => shape.columns.is_empty(),
        Kind::Procedural | Kind::Other => false,
    }
}

/// Whether a statement kept under a hash is the one that is looked for.
pub(crate) fn is_same(
    statement: &Arc<Statement>,
    hints: &[Option<TypeHint>],
    bound: &BoundStatement,
) -> bool {
    let same =
        Arc::ptr_eq(statement, &bound.statement) || statement.text() == bound.statement.text();
    same && hints == bound.hints
}
