//! The model of one schema as one role sees it. It is immutable and shared, and does no I/O.
//!
//! Identifiers are small numbers that are valid within one [`Schema`]. Names are looked up only
//! once, when a request is parsed.

mod column;
mod key;
mod relation;
mod relationship;

use std::collections::HashMap;

pub use column::{Collation, Column, ColumnRights, Comparisons, Generated, IdentityKind};
pub use key::{Constraint, ConstraintKind, ForeignKey, Referenced, UniqueKey};
pub use relation::{Persistence, Relation, RelationKind, RelationRights};
pub use relationship::{Cardinality, Relationship, RelationshipId};

use crate::naming::Renamed;

/// One schema, restricted to the relations and columns on which a role has a privilege.
#[derive(Debug)]
pub struct Schema {
    name: Box<str>,
    relations: Vec<Relation>,
    by_name: HashMap<Box<str>, RelationId>,
    renamed: Vec<Renamed>,
    version: u64,
}

/// The identifier of a relation within a [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationId(pub(crate) u32);

/// The identifier of a column within a [`Relation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ColumnId(pub(crate) u16);

impl RelationId {
    /// The index in [`Schema::relations`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl ColumnId {
    /// The index in [`Relation::columns`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl Schema {
    /// Creates a schema. The relations must be sorted by name. The identifier of a relation is its
    /// index.
    pub fn new(name: Box<str>, relations: Vec<Relation>) -> Self {
        let by_name = relations.iter().map(|relation| relation.name.clone());
        Self {
            name,
            by_name: by_name.zip((0..).map(RelationId)).collect(),
            relations,
            renamed: Vec::new(),
            version: 0,
        }
    }

    /// Sets the relations whose GraphQL type name got a number, because another type already had
    /// the name.
    pub(crate) fn with_renamed(mut self, renamed: Vec<Renamed>) -> Self {
        self.renamed = renamed;
        self
    }

    pub(crate) fn with_version(mut self, version: u64) -> Self {
        self.version = version;
        self
    }

    /// The version of the schema: a number that is unique among the schemas loaded by this process.
    /// A schema that is loaded later has a higher number. The version is 0 for a schema that was
    /// not loaded from PostgreSQL.
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// The relations whose GraphQL type name got a number, because another type already had the
    /// name. They are logged as a warning.
    pub fn renamed(&self) -> &[Renamed] {
        &self.renamed
    }

    /// The name of the schema, as PostgreSQL stores it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The relations, sorted by name.
    pub fn relations(&self) -> impl Iterator<Item = (RelationId, &Relation)> {
        (0..).map(RelationId).zip(&self.relations)
    }

    /// The relation with this identifier.
    ///
    /// # Panics
    ///
    /// If the identifier belongs to another schema and is out of range.
    pub fn relation(&self, id: RelationId) -> &Relation {
        &self.relations[id.index()]
    }

    pub(crate) fn relation_mut(&mut self, id: RelationId) -> &mut Relation {
        &mut self.relations[id.index()]
    }

    /// Finds a relation by its name in PostgreSQL; `None` if it is not visible to the role.
    pub fn find(&self, name: &str) -> Option<RelationId> {
        self.by_name.get(name).copied()
    }
}

impl std::ops::Index<RelationId> for Schema {
    type Output = Relation;

    fn index(&self, id: RelationId) -> &Relation {
        self.relation(id)
    }
}
