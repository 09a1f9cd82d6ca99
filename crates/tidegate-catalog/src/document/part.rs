//! One relation of a document, before it is linked with the others of its schema.

use std::sync::Arc;

use super::type_tree::TypeTree;
use super::{ColumnEntry, ConstraintEntry, RelationEntry, Rights, TypeEntry};
use crate::error::{Error, Result};
use crate::model::{Column, ColumnRights, Persistence, Relation, RelationKind, RelationRights};
use crate::naming::{self, TypeNames};

/// The content of a relation's document with resolved types. It refers to other relations only by
/// name, so a change of another relation does not make it stale. [`super::build::schema`] adds the
/// keys and relationships.
#[derive(Debug)]
pub(crate) struct RelationDocument {
    pub(super) oid: u32,
    pub(super) name: Box<str>,
    kind: RelationKind,
    persistence: Persistence,
    row_security: bool,
    plain_policies: bool,
    comment: Option<Box<str>>,
    rights: RelationRights,
    columns: Arc<[Column]>,
    /// The constraints, sorted by name.
    pub(super) constraints: Vec<ConstraintEntry>,
}

/// The types that a document lists.
pub(crate) struct Types(Vec<TypeEntry>);

impl Types {
    /// Parses a JSON array of types.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the text is not a JSON array of types.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let entries = serde_json::from_str(text);
        entries
            .map(Self)
            .map_err(|error| Error::Malformed(error.to_string()))
    }

    /// The types as a [`TypeTree`], which resolves them.
    pub(crate) fn tree(&self) -> TypeTree<'_> {
        TypeTree::new(&self.0)
    }
}

impl RelationDocument {
    /// Parses the document of one relation.
    ///
    /// # Errors
    ///
    /// [`Error::Malformed`] if the text is not the document of a relation, or names an unknown
    /// type.
    pub(crate) fn parse(document: &str, types: &mut TypeTree<'_>) -> Result<Self> {
        let entry: RelationEntry =
            serde_json::from_str(document).map_err(|error| Error::Malformed(error.to_string()))?;
        Self::new(entry, types)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn new(mut entry: RelationEntry, types: &mut TypeTree<'_>) -> Result<Self> {
        let by_name = |one: &ConstraintEntry, other: &ConstraintEntry| one.name.cmp(&other.name);
        entry.constraints.sort_by(by_name);
        let columns = columns(&entry, types)?;
        let any = |right: fn(&ColumnRights) -> bool| columns.iter().any(|c| right(&c.rights));
        let rights = RelationRights {
            select: entry.rights.select || any(|rights| rights.select),
            insert: entry.rights.insert || any(|rights| rights.insert),
            update: entry.rights.update || any(|rights| rights.update),
            delete: entry.rights.delete,
        };
        Ok(Self {
            oid: entry.oid,
            name: entry.name,
            kind: entry.kind,
            persistence: entry.persistence,
            row_security: entry.row_security,
            plain_policies: entry.plain_policies,
            comment: entry.comment,
            rights,
            columns: columns.into(),
            constraints: entry.constraints,
        })
    }

    /// The relation without its keys and relationships. It shares the columns with this document.
    pub(super) fn relation(&self, type_names: TypeNames) -> Relation {
        Relation {
            oid: self.oid,
            name: self.name.clone(),
            type_name: type_names.rows,
            aggregate_types: type_names.aggregates,
            kind: self.kind,
            persistence: self.persistence,
            row_security: self.row_security,
            plain_policies: self.plain_policies,
            comment: self.comment.clone(),
            rights: self.rights,
            columns: Arc::clone(&self.columns),
            primary_key: None,
            unique: Vec::new(),
            foreign_keys: Vec::new(),
            other_constraints: Vec::new(),
            relationships: Vec::new(),
        }
    }
}

fn columns(entry: &RelationEntry, types: &mut TypeTree<'_>) -> Result<Vec<Column>> {
    let names: Vec<_> = entry
        .columns
        .iter()
        .map(|column| column.name.clone())
        .collect();
    let mut columns: Vec<Column> = Vec::with_capacity(names.len());
    for (column, field) in entry.columns.iter().zip(naming::fields(&names)) {
        let next = columns.last().map_or(1, |last| last.number + 1);
        let rights = column.rights.unwrap_or(entry.rights);
        columns.push(self::column(
            (column, field),
            next,
            rights,
            entry.kind,
            types,
        )?);
    }
    Ok(columns)
}

fn column(
    (entry, field): (&ColumnEntry, Box<str>),
    next: i16,
    rights: Rights,
    kind: RelationKind,
    types: &mut TypeTree<'_>,
) -> Result<Column> {
    // NOT NULL of a domain holds for stored values only. In a view, an outer join may return NULL.
    // PostgreSQL does not check the rows of a foreign table.
    let stored = matches!(kind, RelationKind::Table | RelationKind::Partitioned);
    let sure = stored && types.is_domain(&entry.r#type, |domain| domain.not_null);
    let not_null = entry.not_null || sure;
    let has_default = entry.has_default
        || entry.generated.is_some()
        || entry.identity.is_some()
        || types.is_domain(&entry.r#type, |domain| domain.has_default);
    let r#type = types.resolve(&entry.r#type)?;
    Ok(Column {
        name: entry.name.clone(),
        field,
        number: entry.number.unwrap_or(next),
        comparisons: types.comparisons(&r#type),
        r#type,
        modifier: entry.modifier.or_else(|| types.modifier(&entry.r#type)),
        has_min_max: types.has_min_max(&entry.r#type),
        not_null,
        has_default,
        generated: entry.generated,
        identity: entry.identity,
        collation: entry.collation,
        comment: entry.comment.clone(),
        rights: ColumnRights {
            select: rights.select,
            insert: rights.insert,
            update: rights.update,
        },
    })
}
