//! Relations, and the privileges on them.

use std::sync::Arc;

use serde::Deserialize;

use crate::naming::AGGREGATES;

use super::{Column, ColumnId, Constraint, ForeignKey, Relationship, RelationshipId, UniqueKey};

/// A table, view or other relation.
#[derive(Clone, Debug)]
pub struct Relation {
    /// The OID of the relation, `pg_class.oid`.
    pub oid: u32,
    /// The name of the relation, as PostgreSQL stores it.
    pub name: Box<str>,
    /// The name of the GraphQL type of its rows: `PascalCase`, unique in the schema.
    pub type_name: Box<str>,
    /// The names of the GraphQL types of its aggregates, in the order of [`AGGREGATES`].
    pub aggregate_types: [Box<str>; AGGREGATES.len()],
    /// The kind of the relation.
    pub kind: RelationKind,
    /// How the relation's rows are stored.
    pub persistence: Persistence,
    /// Whether row level security applies to the role for this relation.
    pub row_security: bool,
    /// Whether all policies are known to call only functions that cannot write: built-in functions
    /// that are not volatile, and Tidegate's functions for claims.
    pub plain_policies: bool,
    /// The text of `COMMENT ON`; `None` without a comment.
    pub comment: Option<Box<str>>,
    /// The visible columns, in the order of `attnum`. Shared with other versions of the schema in
    /// which the relation has the same columns.
    pub columns: Arc<[Column]>,
    /// The primary key; `None` if there is none, or if some of its columns are not visible.
    pub primary_key: Option<UniqueKey>,
    /// The unique constraints, sorted by name.
    pub unique: Vec<UniqueKey>,
    /// The foreign keys, sorted by name.
    pub foreign_keys: Vec<ForeignKey>,
    /// The other constraints, sorted by name.
    pub other_constraints: Vec<Constraint>,
    /// The foreign keys of this relation and the foreign keys that reference this relation, with
    /// the names that requests use.
    pub relationships: Vec<Relationship>,
    /// The role's privileges. For a view, they include only the kinds of writes that PostgreSQL
    /// supports for this view.
    pub rights: RelationRights,
}

/// The kind of a relation.
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

/// How rows are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistence {
    /// The rows are in a table whose changes are written to the WAL.
    #[default]
    Permanent,
    /// The rows are in a table without WAL, so the change log does not contain changes of the
    /// table.
    Unlogged,
    /// The rows are in a temporary table of a session.
    Temporary,
}

/// The privileges on a relation. A privilege counts if the role has it on the whole relation or on
/// at least one column, and the relation supports it. For example, a view that is not updatable
/// does not support UPDATE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are four separate rights"
)]
pub struct RelationRights {
    /// Whether the role has SELECT on at least one column.
    pub select: bool,
    /// Whether the role has INSERT on at least one column.
    pub insert: bool,
    /// Whether the role has UPDATE on at least one column.
    pub update: bool,
    /// Whether the role has DELETE.
    pub delete: bool,
}

impl Relation {
    /// The columns with their identifiers, in the order of `attnum`.
    pub fn columns(&self) -> impl Iterator<Item = (ColumnId, &Column)> {
        (0..).map(ColumnId).zip(&*self.columns)
    }

    /// The column with this identifier.
    ///
    /// # Panics
    ///
    /// If the identifier belongs to another relation and is out of range.
    pub fn column(&self, id: ColumnId) -> &Column {
        &self.columns[id.index()]
    }

    /// The relationship with this identifier.
    ///
    /// # Panics
    ///
    /// If the identifier belongs to another relation and is out of range.
    pub fn relationship(&self, id: RelationshipId) -> &Relationship {
        &self.relationships[id.index()]
    }

    /// Finds a column by its field name, or else by its name in PostgreSQL; `None` if there is
    /// none.
    pub fn find_column(&self, name: &str) -> Option<ColumnId> {
        let mut columns = self.columns();
        let by_field = columns.find(|(_, column)| &*column.field == name);
        by_field
            .or_else(|| self.columns().find(|(_, column)| &*column.name == name))
            .map(|(id, _)| id)
    }

    /// Finds a relationship by its name; `None` if there is none.
    pub fn find_relationship(&self, name: &str) -> Option<RelationshipId> {
        let at = self
            .relationships
            .iter()
            .position(|relationship| &*relationship.name == name);
        at.and_then(|at| u16::try_from(at).ok()).map(RelationshipId)
    }

    /// The column of the primary key; `None` if the key is missing or has several columns.
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
