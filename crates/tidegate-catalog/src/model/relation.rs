//! Relations.

use std::sync::Arc;

use serde::Deserialize;

use crate::naming::AGGREGATES;

use super::{Column, ColumnId, Constraint, ForeignKey, Relationship, RelationshipId, UniqueKey};

/// A table, view or other relation.
#[derive(Clone, Debug)]
pub struct Relation {
    /// `pg_class.oid`.
    pub oid: u32,
    /// The name, as PostgreSQL stores it.
    pub name: Box<str>,
    /// The name of its GraphQL type: `PascalCase`, unique in the schema.
    pub type_name: Box<str>,
    /// The names of the GraphQL types of its aggregates, in the order of [`AGGREGATES`].
    pub aggregate_types: [Box<str>; AGGREGATES.len()],
    /// What it is.
    pub kind: RelationKind,
    /// Where its rows are stored.
    pub persistence: Persistence,
    /// Whether row level security applies to the role.
    pub row_security: bool,
    /// Whether all policies are known to call only built-in functions that cannot write.
    pub plain_policies: bool,
    /// `COMMENT ON`.
    pub comment: Option<Box<str>>,
    /// The visible columns, by `attnum`. Versions of a schema with the same columns share them.
    pub columns: Arc<[Column]>,
    /// The primary key, if all its columns are visible.
    pub primary_key: Option<UniqueKey>,
    /// The unique constraints, by name.
    pub unique: Vec<UniqueKey>,
    /// The foreign keys, by name.
    pub foreign_keys: Vec<ForeignKey>,
    /// The other constraints, by name.
    pub other_constraints: Vec<Constraint>,
    /// The foreign keys from both ends, with the names that requests use.
    pub relationships: Vec<Relationship>,
    /// The role's privileges. For a view, only those that PostgreSQL supports for updates of it.
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

/// Where rows are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Persistence {
    /// In a table with WAL.
    #[default]
    Permanent,
    /// In a table without WAL, so that the change log has no changes of it.
    Unlogged,
    /// In a temporary table of a session.
    Temporary,
}

/// Privileges on a relation: whether the role has them on the whole relation or at least one
/// column, and the relation supports them (a view that is not updatable has no UPDATE).
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

    /// The column of an identifier of this relation.
    ///
    /// # Panics
    ///
    /// If the identifier belongs to another relation and is out of range.
    pub fn column(&self, id: ColumnId) -> &Column {
        &self.columns[id.index()]
    }

    /// The relationship of an identifier of this relation.
    ///
    /// # Panics
    ///
    /// If the identifier belongs to another relation and is out of range.
    pub fn relationship(&self, id: RelationshipId) -> &Relationship {
        &self.relationships[id.index()]
    }

    /// Finds a column by its field name or by its name in PostgreSQL.
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

    /// The column of the primary key, if it has exactly one.
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
