//! The metadata cache: types and statement descriptions of a database, shared by its connections,
//! and how long each is valid.

mod latency;
mod type_cache;
mod type_loader;

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use tidegate_sql::{BoundStatement, DatabaseName, RoleName, Statement, TypeHint};
use tidegate_values::codec::wire_format;
use tidegate_values::{Column, Type, WireFormat};
use tidegate_wire::body::FieldDescription;
use tokio::time::Instant;

use crate::purity::PurityCache;

pub(crate) use latency::LatencyEstimate;
pub(crate) use type_cache::LONGEST_TYPE_NAME;
pub(crate) use type_loader::{TREE_13, TREE_14, TypeRow, build};

/// The maximum number of entries of each map. A full map is cleared.
const LIMIT: usize = 1024;
/// How long a cached type is valid. A statement description that uses the type is valid for longer;
/// see [`DESCRIPTION_VALID_FOR`].
const VALID_FOR: Duration = Duration::from_secs(1);
/// How long a description may be used if its types may change without a report from PostgreSQL.
/// There are three cases: a type is not built in, a type hint names the type of a parameter, or
/// PostgreSQL inferred the type of a parameter from tables and functions.
const DESCRIPTION_VALID_FOR: Duration = Duration::from_secs(4);

/// The cached data of one database.
#[derive(Debug, Default)]
pub(crate) struct MetadataCache {
    types: RwLock<HashMap<u32, (Type, Instant)>>,
    /// The types of type hints, by role and by the name in the hint. The type that a name refers to
    /// depends on the `search_path`, and therefore on the role.
    hints: RwLock<HashMap<(RoleName, String), (Type, Instant)>>,
    descriptions: Mutex<HashMap<u64, DescribedStatement>>,
    hasher: RandomState,
    /// Increases when cached data becomes invalid.
    generation: AtomicU64,
    /// Counts the statements, pipelines and transactions that ran in this database on this node; a
    /// pipeline or transaction counts once. A pipeline that was rolled back and a transaction
    /// without COMMIT do not count. While it is unknown whether the database reports DDL, the
    /// catalog cache treats every increase of this counter as a possible change of definitions.
    statements: AtomicU64,
    /// Like `statements`, but counts only those with a statement for which [`Statement::calls`] is
    /// true.
    calls: AtomicU64,
    /// Descriptions that were read in an earlier generation than this are invalid.
    valid_from: AtomicU64,
    /// Decides which statements may have side effects that their text does not show.
    pub(crate) purity: Arc<PurityCache>,
}

/// A statement description with the role that it was read for.
#[derive(Debug)]
struct DescribedStatement {
    role: RoleName,
    key: StatementKey,
    description: Arc<StatementDescription>,
}

impl MetadataCache {
    /// A number that increases when cached data becomes invalid.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// How many statements, pipelines and transactions have run. The field `statements` says which
    /// of them do not count.
    pub(crate) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Acquire)
    }

    /// Like [`Self::statements`], but counts only those with a statement for which
    /// [`Statement::calls`] is true.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Acquire)
    }

    /// Counts a statement, a pipeline or a transaction that has ended. `called` says whether
    /// [`Statement::calls`] is true for the statement, or for any of its statements.
    pub(crate) fn count(&self, called: bool) {
        self.statements.fetch_add(1, Ordering::Release);
        if called {
            self.calls.fetch_add(1, Ordering::Release);
        }
    }

    /// Clears the cache, because a statement may have changed a definition.
    pub(crate) fn forget(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.types.write().clear();
        self.hints.write().clear();
        self.descriptions.lock().clear();
    }

    /// Invalidates all statement descriptions. Call this function if a description was stale inside
    /// a transaction, where it could not be read again. Other descriptions may be stale too.
    pub(crate) fn invalidate_descriptions(&self) {
        let generation = self.generation.fetch_add(1, Ordering::AcqRel) + 1;
        self.valid_from.fetch_max(generation, Ordering::AcqRel);
        self.descriptions.lock().clear();
    }

    pub(crate) fn is_valid(&self, description: &StatementDescription) -> bool {
        description.generation() >= self.valid_from.load(Ordering::Acquire)
            && description.is_fresh(self.generation())
    }

    /// The valid cached description of a statement for a role; `None` if there is none.
    pub(crate) fn description(
        &self,
        bound: &BoundStatement,
        role: &RoleName,
    ) -> Option<Arc<StatementDescription>> {
        let found = self.find(bound, role);
        found.filter(|description| self.is_valid(description))
    }

    /// The latency of a statement that the role has used before. It is returned even if the
    /// description is stale.
    pub(crate) fn latency(
        &self,
        bound: &BoundStatement,
        role: &RoleName,
    ) -> Option<Arc<LatencyEstimate>> {
        Some(self.find(bound, role)?.latency.clone())
    }

    fn find(&self, bound: &BoundStatement, role: &RoleName) -> Option<Arc<StatementDescription>> {
        let descriptions = self.descriptions.lock();
        let known = descriptions.get(&self.key(bound, role))?;
        (known.role == *role && known.key.matches(bound)).then(|| known.description.clone())
    }

    pub(crate) fn keep_description(
        &self,
        bound: &BoundStatement,
        role: &RoleName,
        description: &Arc<StatementDescription>,
    ) {
        let known = DescribedStatement {
            role: role.clone(),
            key: StatementKey::of(bound),
            description: description.clone(),
        };
        if description.generation() == self.generation() {
            let mut descriptions = self.descriptions.lock();
            make_room(&mut descriptions);
            descriptions.insert(self.key(bound, role), known);
        }
    }

    pub(crate) fn forget_description(&self, bound: &BoundStatement, role: &RoleName) {
        self.descriptions.lock().remove(&self.key(bound, role));
    }

    fn key(&self, bound: &BoundStatement, role: &RoleName) -> u64 {
        self.hasher
            .hash_one((bound.statement.text(), &bound.hints, role))
    }
}

/// The parameters and columns of a statement.
#[derive(Debug)]
pub(crate) struct StatementDescription {
    pub(crate) parameters: Vec<Type>,
    pub(crate) columns: Vec<Column>,
    /// The format codes of the columns.
    pub(crate) formats: Vec<i16>,
    /// The columns as PostgreSQL described them.
    pub(crate) fields: Vec<FieldDescription>,
    /// The estimated latency of the statement, over all connections.
    pub(crate) latency: Arc<LatencyEstimate>,
    /// The generation of the metadata cache when the description was read.
    generation: u64,
    /// When the description expires. `None` if it has no parameters and only built-in types.
    expires: Option<Instant>,
}

impl StatementDescription {
    /// `parameters` is the number of parameters. `types` holds the types of the parameters,
    /// followed by those of the fields.
    pub(crate) fn new(
        parameters: usize,
        fields: Vec<FieldDescription>,
        mut types: Vec<Type>,
        generation: u64,
    ) -> Self {
        let expires = parameters > 0 || types.iter().any(may_change);
        let expires = expires.then(|| Instant::now() + DESCRIPTION_VALID_FOR);
        let columns: Vec<_> = fields
            .iter()
            .zip(types.drain(parameters.min(types.len())..))
            .map(|(field, r#type)| Column {
                name: field.name.clone(),
                format: wire_format(&r#type),
                r#type,
                origin: (field.table != 0).then_some((field.table, field.attribute)),
            })
            .collect();
        let formats = columns
            .iter()
            .map(|column| format_code(column.format))
            .collect();
        Self {
            parameters: types,
            columns,
            formats,
            fields,
            latency: Arc::default(),
            generation,
            expires,
        }
    }

    /// Whether the description is still valid in this generation of the cache.
    #[inline]
    pub(crate) fn is_fresh(&self, generation: u64) -> bool {
        match self.expires {
            // A description without an expiry has no parameters, and its columns have built-in
            // types. PostgreSQL refuses to run a prepared statement whose columns have changed, so
            // this description is never used when it is stale. Parameters need an expiry: after a
            // change of an inferred parameter type, PostgreSQL replans the statement with the old
            // type.
            None => true,
            Some(until) => self.generation == generation && Instant::now() < until,
        }
    }

    /// Whether both descriptions have the same parameters and columns.
    pub(crate) fn is_described_as(&self, other: &Self) -> bool {
        let numbers = |description: &Self| {
            description
                .parameters
                .iter()
                .map(Type::oid)
                .collect::<Vec<_>>()
        };
        std::ptr::eq(self, other)
            || (self.fields == other.fields && numbers(self) == numbers(other))
    }

    /// The generation of the metadata cache when the description was read.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }
}

fn format_code(format: WireFormat) -> i16 {
    match format {
        WireFormat::Text => 0,
        WireFormat::Binary => 1,
    }
}

/// Whether the type can be altered, or replaced by another of the same name.
fn may_change(r#type: &Type) -> bool {
    Type::from_oid(r#type.oid()).is_none()
}

/// The identity of a statement in the caches: its text and type hints.
#[derive(Clone, Debug)]
pub(crate) struct StatementKey {
    pub(crate) statement: Arc<Statement>,
    pub(crate) hints: Vec<Option<TypeHint>>,
}

impl StatementKey {
    pub(crate) fn of(bound: &BoundStatement) -> Self {
        Self {
            statement: bound.statement.clone(),
            hints: bound.hints.clone(),
        }
    }

    pub(crate) fn matches(&self, bound: &BoundStatement) -> bool {
        let same_text = Arc::ptr_eq(&self.statement, &bound.statement)
            || self.statement.text() == bound.statement.text();
        same_text && self.hints == bound.hints
    }
}

/// Clears the map if it is full. Entries that are still needed are read again.
fn make_room<K, V>(map: &mut HashMap<K, V>) {
    if map.len() >= LIMIT {
        map.clear();
    }
}

#[derive(Debug, Default)]
pub(crate) struct MetadataCaches(RwLock<HashMap<DatabaseName, Arc<MetadataCache>>>);

impl MetadataCaches {
    pub(crate) fn of(&self, database: &DatabaseName) -> Arc<MetadataCache> {
        if let Some(metadata) = self.0.read().get(database) {
            return metadata.clone();
        }
        self.0.write().entry(database.clone()).or_default().clone()
    }

    /// The number that [`MetadataCache::statements`] returns, for each database.
    pub(crate) fn statements(&self) -> Vec<(DatabaseName, u64)> {
        let all = self.0.read();
        let counts = all.iter();
        counts
            .map(|(name, metadata)| (name.clone(), metadata.statements()))
            .collect()
    }

    /// Removes the cache of a database that was dropped.
    pub(crate) fn remove(&self, database: &DatabaseName) {
        self.0.write().remove(database);
    }
}
