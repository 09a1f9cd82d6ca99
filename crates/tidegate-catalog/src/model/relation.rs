//! Relations.

use std::sync::Arc;

use serde::Deserialize;

use crate::naming::AGGREGATES;

use super::{Column, ColumnId, Constraint, ForeignKey, Key, Relationship, RelationshipId};

/// A table, a view or another relation with rows.
#[derive(Clone, Debug)]
pub struct Relation {
    /// `pg_class.oid`.
    pub oid: u32,
    /// The name, as PostgreSQL spells it.
    pub name: Box<str>,
    /// The name of its GraphQL type: `PascalCase`, unique in the schema.
    pub type_name: Box<str>,
    /// The names of the GraphQL types of its aggregates, in the order of [`AGGREGATES`].
    pub aggregate_types: [Box<str>; AGGREGATES.len()],
    /// What it is.
    pub kind: RelationKind,
    /// Where its rows are kept.
    pub persistence: Persistence,
    /// Whether row level security is on and applies to the role.
    pub row_security: bool,
    /// Whether it is known of all its policies that they call nothing but built-in functions that
    /// cannot write.
    pub plain_policies: bool,
    /// `COMMENT ON`.
    pub comment: Option<Box<str>>,
    /// The visible columns, by `attnum`; versions of a schema in which they are the same share them.
    pub columns: Arc<[Column]>,
    /// The primary key, when all its columns are visible.
    pub primary_key: Option<Key>,
    /// The unique constraints, by name.
    pub unique: Vec<Key>,
    /// The foreign keys, by name.
    pub foreign_keys: Vec<ForeignKey>,
    /// The constraints that are none of the keys above, by name.
    pub other_constraints: Vec<Constraint>,
    /// The foreign keys seen from both ends, each with the name that a request calls it by.
    pub relationships: Vec<Relationship>,
    /// What the role may do with it; for a view only what PostgreSQL lets an update of it do.
    pub rights: RelationRights,
}

/// What a relation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RelationKind {
    /// An ordinary table.
    Table,
    /// The root of a partitioned table; its partitions are hidden.
    Partitioned,
    /// A foreign table.
    Foreign,
    /// A view.
    View,
    /// A materialised view.
    MaterializedView,
}

/// Where the rows are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistence {
    /// In the log, like all that lasts.
    #[default]
    Permanent,
    /// Outside the log, so that no change of it can be followed.
    Unlogged,
    /// In the session.
    Temporary,
}

/// Rights on a relation: whether the role has the right on all of it or on at least one column,
/// and the relation lets it be used (a view that cannot be updated gives no UPDATE).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are four separate rights"
)]
pub struct RelationRights {
    /// SELECT on at least one column.
    pub select: bool,
    /// INSERT on at least one column.
    pub insert: bool,
    /// UPDATE on at least one column.
    pub update: bool,
    /// DELETE.
    pub delete: bool,
}

impl Relation {
    /// The columns with their identifiers, by `attnum`.
    pub fn columns(&self) -> impl Iterator<Item = (ColumnId, &Column)> {
        (0..).map(ColumnId).zip(&*self.columns)
    }

    /// The column of an identifier that belongs to this relation.
    ///
    /// # Panics
    ///
    /// When the identifier is of another relation and out of range here.
    pub fn column(&self, id: ColumnId) -> &Column {
        &self.columns[id.index()]
    }

    /// The relationship of an identifier that belongs to this relation.
    ///
    /// # Panics
    ///
    /// When the identifier is of another relation and out of range here.
    pub fn relationship(&self, id: RelationshipId) -> &Relationship {
        &self.relationships[id.index()]
    }

    /// Finds a column by the name that a request uses: its field name, or the name that PostgreSQL
    /// has for it.
    pub fn find_column(&self, name: &str) -> Option<ColumnId> {
        let mut columns = self.columns();
        let by_field = columns.find(|(_, column)| &*column.field == name);
        by_field
            .or_else(|| self.columns().find(|(_, column)| &*column.name == name))
            .map(|(id, _)| id)
    }

    /// Finds a relationship by its name.
    pub fn find_relationship(&self, name: &str) -> Option<RelationshipId> {
        let at = self
            .relationships
            .iter()
            .position(|relationship| &*relationship.name == name);
        at.and_then(|at| u16::try_from(at).ok()).map(RelationshipId)
    }

    /// The only column of the primary key, when it has exactly one.
    pub fn single_key(&self) -> Option<ColumnId> {
        match self.primary_key.as_ref()?.columns[..] {
            [column] => Some(column),
            _ => None,
        }
    }

    /// Whether the column belongs to the primary key.
    pub fn is_key(&self, column: ColumnId) -> bool {
        let key = self.primary_key.as_ref();
        key.is_some_and(|key| key.columns.contains(&column))
    }
}
