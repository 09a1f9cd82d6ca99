//! The prepared statements of a connection.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;

use tidegate_sql::statement::{Kind, Trust};
use tidegate_sql::{BoundStatement, Statement, TypeHint};

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
}

/// Prepared statements by text and hints; the least recently used makes room.
#[derive(Debug)]
pub(crate) struct StatementCache {
    entries: HashMap<u64, Entry>,
    hasher: RandomState,
    capacity: usize,
    /// Counts uses and names.
    clock: u64,
    /// Names that PostgreSQL still holds and nobody needs.
    dropped: Vec<String>,
    /// The name of the reset's own statement, once it is prepared.
    check: Option<String>,
    /// The name of the switch to a caller's role, once it is prepared.
    pub(super) switch: Option<String>,
    /// The names of our own commands, once they are prepared.
    own: HashMap<&'static str, String>,
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
        let (entries, dropped) = (HashMap::new(), Vec::new());
        Self {
            entries,
            hasher: RandomState::new(),
            capacity: capacity.max(1),
            clock: 0,
            dropped,
            check: None,
            switch: None,
            own: HashMap::new(),
        }
    }

    /// The prepared statement for the same text and hints.
    pub(crate) fn find(&mut self, bound: &BoundStatement) -> Option<Arc<Prepared>> {
        let key = self.key(bound);
        self.clock += 1;
        let entry = self.entries.get_mut(&key)?;
        if !is_same(&entry.statement, &entry.hints, bound) {
            return None;
        }
        entry.used = self.clock;
        Some(entry.prepared.clone())
    }

    /// What is known of a read or write: prepared here, or described to the role before, which is
    /// a guess here.
    pub(crate) fn known(&mut self, task: &Task<'_>) -> Option<(Arc<Prepared>, bool)> {
        if task.is_kept()
            && let Some(prepared) = self.find(task.bound)
        {
            if task.dictionary.believes(&prepared.shape) {
                return Some((prepared, false));
            }
            self.forget(task.bound);
        }
        let shape = task.dictionary.shape(task.bound, &task.login.role)?;
        // On a guess runs what can be run again, and what shows nothing.
        let harmless = match task.bound.statement.kind() {
            Kind::Read => task.bound.trust() == Trust::Stateless,
            Kind::Write => shape.columns.is_empty(),
            Kind::Procedural | Kind::Other => false,
        };
        if !harmless {
            return None;
        }
        let name = if task.is_kept() {
            self.name()
        } else {
            String::new()
        };
        let verdict = Arc::default();
        let prepared = Prepared {
            name,
            shape,
            verdict,
        };
        Some((Arc::new(prepared), true))
    }

    /// A name that nobody can guess who has not looked into the session.
    pub(crate) fn name(&mut self) -> String {
        self.clock += 1;
        format!("tidegate {:016x}", self.hasher.hash_one(self.clock))
    }

    /// The name of the reset's own statement, and whether it is still to be prepared.
    pub(crate) fn check(&mut self) -> (String, bool) {
        if let Some(name) = &self.check {
            return (name.clone(), false);
        }
        let name = self.name();
        self.check = Some(name.clone());
        (name, true)
    }

    /// The name of a command of our own, and whether it is still to be prepared.
    pub(crate) fn own(&mut self, text: &'static str) -> (String, bool) {
        if let Some(name) = self.own.get(text) {
            return (name.clone(), false);
        }
        let name = self.name();
        self.own.insert(text, name.clone());
        (name, true)
    }

    /// Forgets our own commands, one of which PostgreSQL does not know.
    pub(crate) fn forget_own(&mut self) {
        self.own.clear();
    }

    /// Keeps a prepared statement.
    pub(crate) fn keep(&mut self, bound: &BoundStatement, prepared: Arc<Prepared>) {
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

    /// Forgets a statement that does not fit any more.
    pub(crate) fn forget(&mut self, bound: &BoundStatement) {
        let key = self.key(bound);
        self.remove(key);
    }

    /// Forgets a statement that turned out not to fit any more.
    pub(crate) fn forget_prepared(&mut self, prepared: &Arc<Prepared>) {
        let is_it = |(_, entry): &(&u64, &Entry)| Arc::ptr_eq(&entry.prepared, prepared);
        if let Some(key) = self.entries.iter().find(is_it).map(|(key, _)| *key) {
            self.remove(key);
        }
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
    }

    /// Forgets all, because PostgreSQL does.
    /// Moves everything out and leaves an empty cache of the same capacity.
    pub(crate) fn take(&mut self) -> Self {
        let empty = Self::new(self.capacity);
        std::mem::replace(self, empty)
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.dropped.clear();
        self.own.clear();
        self.check = None;
        self.switch = None;
    }

    /// The names to be closed.
    pub(crate) fn take_dropped(&mut self) -> Vec<String> {
        std::mem::take(&mut self.dropped)
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
