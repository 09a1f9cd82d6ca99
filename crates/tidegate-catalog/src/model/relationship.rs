//! Foreign keys seen from both ends.

use super::{ColumnId, RelationId};

/// A way from a row of one relation to rows of another, along a foreign key. Both relations can
/// be read by the role, and so can all columns of the key on both sides.
#[derive(Clone, Debug)]
pub struct Relationship {
    /// The field name: for a foreign key of this relation camelCase of the referenced relation, and
    /// again camelCase of the constraint; for one of another relation camelCase of that, with
    /// `By<Columns>` where there are several.
    pub name: Box<str>,
    /// Whether it leads to at most one row.
    pub cardinality: Cardinality,
    /// The relation that it leads to.
    pub target: RelationId,
    /// The columns of this relation, in key order.
    pub columns: Vec<ColumnId>,
    /// The columns of the target that equal them, in the same order.
    pub target_columns: Vec<ColumnId>,
    /// The foreign key's constraint.
    pub constraint: Box<str>,
    /// Whether the row on the other side is certain to exist as far as the key says: every
    /// referencing column is NOT NULL. (Row level security may still hide it.)
    pub certain: bool,
}

/// To how many rows a relationship leads.
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
    /// The place in [`super::Relation::relationships`].
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
