//! The model of one schema as one role sees it: immutable, shared, without I/O.
//!
//! Identifiers are small numbers that are valid inside one [`Schema`] value; names are found once,
//! where a request is read, and never again behind that.

mod column;
mod key;
mod relation;
mod relationship;

use std::collections::HashMap;

pub use column::{Collation, Column, ColumnRights, Comparisons, Generated, Identity};
pub use key::{Constraint, ConstraintKind, ForeignKey, Key, Referenced};
pub use relation::{Persistence, Relation, RelationKind, RelationRights};
pub use relationship::{Cardinality, Relationship, RelationshipId};

use crate::naming::Renamed;

/// One schema, restricted to what a role may use: relations on which it has a right, and in them
/// the columns on which it has one.
#[derive(Debug)]
pub struct Schema {
    name: Box<str>,
    relations: Vec<Relation>,
    by_name: HashMap<Box<str>, RelationId>,
    by_oid: HashMap<u32, RelationId>,
    renamed: Vec<Renamed>,
    version: u64,
}

/// A relation of a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationId(pub(crate) u32);

/// A column of a [`Relation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(pub(crate) u16);

impl RelationId {
    /// The place in [`Schema::relations`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ColumnId {
    /// The place in [`Relation::columns`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Schema {
    /// Puts a schema together from relations that are ordered by name and whose identifiers
    /// agree with that order.
    pub fn new(name: Box<str>, relations: Vec<Relation>) -> Self {
        let ids = || (0..).map(RelationId);
        let by_name = relations.iter().map(|relation| relation.name.clone());
        let by_oid = relations.iter().map(|relation| relation.oid);
        Self {
            name,
            by_name: by_name.zip(ids()).collect(),
            by_oid: by_oid.zip(ids()).collect(),
            relations,
            renamed: Vec::new(),
            version: 0,
        }
    }

    /// Keeps which types could not have the names of their relations.
    pub(crate) fn with_renamed(mut self, renamed: Vec<Renamed>) -> Self {
        self.renamed = renamed;
        self
    }

    /// Keeps the version.
    pub(crate) fn with_version(mut self, version: u64) -> Self {
        self.version = version;
        self
    }

    /// A number that no other schema of this process has, once it was loaded; it grows from load to
    /// load. Of a schema that was built by hand it is 0.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The relations whose types could not have the names that theirs give: somebody should know.
    pub fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }

    /// The schema's name, as PostgreSQL spells it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The relations, ordered by name.
    pub fn relations(&self) -> impl Iterator<Item = (RelationId, &Relation)> {
        (0..).map(RelationId).zip(&self.relations)
    }

    /// The relation of an identifier that this schema gave.
    ///
    /// # Panics
    ///
    /// When the identifier is of another schema and out of range here.
    pub fn relation(&self, id: RelationId) -> &Relation {
        &self.relations[id.index()]
    }

    pub(crate) fn relation_mut(&mut self, id: RelationId) -> &mut Relation {
        &mut self.relations[id.index()]
    }

    /// Finds a relation by the name that PostgreSQL has for it.
    pub fn find(&self, name: &str) -> Option<RelationId> {
        self.by_name.get(name).copied()
    }

    /// Finds a relation by its number in `pg_class`.
    pub fn find_oid(&self, oid: u32) -> Option<RelationId> {
        self.by_oid.get(&oid).copied()
    }
}

impl std::ops::Index<RelationId> for Schema {
    type Output = Relation;

    fn index(&self, id: RelationId) -> &Relation {
        self.relation(id)
    }
}
