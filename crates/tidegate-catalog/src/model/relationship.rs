//! Relationships, which are foreign keys seen from one of their two ends.

use super::{ColumnId, RelationId};

/// A relationship from a relation to another one, along a foreign key. The role may read both
/// relations and all columns of the key on both sides.
#[derive(Clone, Debug)]
pub struct Relationship {
    /// The field name in camelCase. For a foreign key of this relation, it is the name of the
    /// referenced relation or of the constraint. For a foreign key of another relation, it is the
    /// name of that relation. `By<Columns>` is appended if several foreign keys of that relation
    /// reference this relation, or if the name is taken. A number is appended to a name that is
    /// still taken.
    pub name: Box<str>,
    /// The number of rows that the relationship leads to.
    pub cardinality: Cardinality,
    /// The relation to which the relationship leads.
    pub target: RelationId,
    /// The columns of this relation that are compared, in key order.
    pub columns: Vec<ColumnId>,
    /// The columns of the target that must be equal to `columns`, in the same order.
    pub target_columns: Vec<ColumnId>,
    /// The name of the foreign key's constraint.
    pub constraint: Box<str>,
    /// Whether the key guarantees a related row, because every referencing column is NOT NULL and
    /// the constraint is valid. Row level security may hide the row from the role.
    pub certain: bool,
}

/// The number of rows that a relationship leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// At most one row, because the foreign key belongs to this relation.
    One,
    /// Any number of rows, because the foreign key belongs to the target.
    Many,
}

/// The identifier of a relationship within a [`super::Relation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelationshipId(pub(crate) u16);

impl RelationshipId {
    /// The index in [`super::Relation::relationships`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
