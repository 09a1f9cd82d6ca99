//! What is known of a database's types and statements, shared by its connections.

mod hint;
mod resolve;
pub(crate) mod shape;
mod tree;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tidegate_sql::{BoundStatement, DatabaseName, RoleName, Statement, TypeHint};
use tidegate_values::Type;
use tokio::time::Instant;

use crate::multiplex::pace::Pace;
use crate::session::cache::is_same;
use crate::suspects::Belief;
use shape::Shape;

/// How many entries each of a dictionary's maps may have before it starts over.
const LIMIT: usize = 1024;
/// How long a type is believed, by a statement that is described then and believed itself for a while.
const BELIEVED: Duration = Duration::from_secs(1);

/// What is known of one database.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    types: RwLock<HashMap<u32, (Type, Instant)>>,
    /// Names depend on the `search_path`, and so on the role.
    hints: RwLock<HashMap<(RoleName, String), (Type, Instant)>>,
    shapes: Mutex<HashMap<u64, Known>>,
    hasher: RandomState,
    /// Counts the definitions that went through this node.
    generation: AtomicU64,
    /// Counts the statements, and transactions of several, that ended here.
    statements: AtomicU64,
    /// Counts those of them that call functions by their text.
    calls: AtomicU64,
    /// What was learnt of statements before this generation is not believed.
    believed_from: AtomicU64,
    /// What reads may not mention.
    pub(crate) belief: Arc<Belief>,
}

/// A statement that has been described to a role.
#[derive(Debug)]
struct Known {
    role: RoleName,
    statement: Arc<Statement>,
    hints: Vec<Option<TypeHint>>,
    shape: Arc<Shape>,
}

impl Dictionary {
    /// Changes when what was learnt before must not be believed any more.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Changes with every statement, or transaction of several, that ends.
    pub(crate) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Acquire)
    }

    /// Changes with every one of them that calls what may be a function of the database's own.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Acquire)
    }

    /// Counts a statement, or a transaction of several, that has ended; it may have `called`.
    pub(crate) fn count(&self, called: bool) {
        self.statements.fetch_add(1, Ordering::Release);
        if called {
            self.calls.fetch_add(1, Ordering::Release);
        }
    }

    /// Forgets everything, because a statement may have changed a definition.
    pub(crate) fn forget(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.types.write().clear();
        self.hints.write().clear();
        self.shapes.lock().clear();
    }

    /// Has all statements described anew: one was out of date where it could not be described
    /// again at once, and others beside it, on any connection, may be too.
    pub(crate) fn distrust(&self) {
        let generation = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        self.believed_from.fetch_max(generation, Ordering::AcqRel);
        self.shapes.lock().clear();
    }

    /// Whether what was learnt of a statement can still be believed.
    pub(crate) fn believes(&self, shape: &Shape) -> bool {
        shape.generation() >= self.believed_from.load(Ordering::Acquire)
            && shape.is_fresh(self.generation())
    }

    /// The shape of a statement that the role has used before.
    pub(crate) fn shape(&self, bound: &BoundStatement, role: &RoleName) -> Option<Arc<Shape>> {
        let shapes = self.shapes.lock();
        let known = shapes.get(&self.key(bound, role))?;
        let same = known.role == *role && is_same(&known.statement, &known.hints, bound);
        (same && self.believes(&known.shape)).then(|| known.shape.clone())
    }

    /// How long a statement takes that the role has used before, whatever else is known of it.
    pub(crate) fn pace(&self, bound: &BoundStatement, role: &RoleName) -> Option<Arc<Pace>> {
        let shapes = self.shapes.lock();
        let known = shapes.get(&self.key(bound, role))?;
        let same = known.role == *role && is_same(&known.statement, &known.hints, bound);
        same.then(|| known.shape.pace.clone())
    }

    pub(crate) fn keep_shape(&self, bound: &BoundStatement, role: &RoleName, shape: &Arc<Shape>) {
        let known = Known {
            role: role.clone(),
            statement: bound.statement.clone(),
            hints: bound.hints.clone(),
            shape: shape.clone(),
        };
        if shape.generation() == self.generation() {
            let mut shapes = self.shapes.lock();
            make_room(&mut shapes);
            shapes.insert(self.key(bound, role), known);
        }
    }

    pub(crate) fn forget_shape(&self, bound: &BoundStatement, role: &RoleName) {
        self.shapes.lock().remove(&self.key(bound, role));
    }

    fn key(&self, bound: &BoundStatement, role: &RoleName) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        bound.statement.text().hash(&mut hasher);
        bound.hints.hash(&mut hasher);
        role.hash(&mut hasher);
        hasher.finish()
    }
}

/// Starts a full map over: what is needed again is learnt again.
fn make_room<K, V>(map: &mut HashMap<K, V>) {
    if map.len() >= LIMIT {
        map.clear();
    }
}

/// The dictionaries of all databases.
#[derive(Debug, Default)]
pub(crate) struct Dictionaries(RwLock<HashMap<DatabaseName, Arc<Dictionary>>>);

impl Dictionaries {
    /// The dictionary of a database.
    pub(crate) fn of(&self, database: &DatabaseName) -> Arc<Dictionary> {
        if let Some(dictionary) = self.0.read().get(database) {
            return dictionary.clone();
        }
        self.0.write().entry(database.clone()).or_default().clone()
    }

    /// How many statements have ended in each database.
    pub(crate) fn statements(&self) -> Vec<(DatabaseName, u64)> {
        let all = self.0.read();
        let counts = all.iter();
        counts
            .map(|(name, dictionary)| (name.clone(), dictionary.statements()))
            .collect()
    }

    /// Forgets a database that is gone.
    pub(crate) fn remove(&self, database: &DatabaseName) {
        self.0.write().remove(database);
    }
}
