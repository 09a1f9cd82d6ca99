//! Relationships: foreign keys from both ends.

use super::{ColumnId, RelationId};

/// A relationship from a relation to another one, along a foreign key. The role may read both
/// relations and all columns of the key on both sides.
#[derive(Clone, Debug)]
pub struct Relationship {
    /// The field name. For a foreign key of this relation it is the referenced relation in
    /// camelCase, or else the constraint in camelCase. For one of another relation it is that
    /// relation in camelCase, with `By<Columns>` if there are several.
    pub name: Box<str>,
    /// Whether it leads to at most one row.
    pub cardinality: Cardinality,
    /// The related relation.
    pub target: RelationId,
    /// The columns of this relation, in key order.
    pub columns: Vec<ColumnId>,
    /// The columns of the target that are equal to them, in the same order.
    pub target_columns: Vec<ColumnId>,
    /// The foreign key's constraint.
    pub constraint: Box<str>,
    /// Whether the key guarantees a related row: every referencing column is NOT NULL. Row level
    /// security may still hide it.
    pub certain: bool,
}

/// How many rows a relationship leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// At most one: along a foreign key of this relation.
    One,
    /// Any number: along a foreign key of the target.
    Many,
}

/// A relationship of a [`super::Relation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationshipId(pub(crate) u16);

impl RelationshipId {
    /// The index in [`super::Relation::relationships`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
