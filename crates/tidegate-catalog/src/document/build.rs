//! Builds the model from the relations of a document.

use std::sync::Arc;

use super::link;
use super::part::RelationDocument;
use super::{ConstraintEntry, ConstraintEntryKind, Document, TypeTree};
use crate::error::{Error, Result};
use crate::model::{
    ColumnId, Constraint, ConstraintKind, ForeignKey, Referenced, Relation, Schema, UniqueKey,
};
use crate::naming;

/// The schema that a whole document describes.
pub(super) fn document(document: Document) -> Result<Schema> {
    let mut types = TypeTree::new(&document.types);
    let parts = document.relations.into_iter();
    let parts = parts.map(|entry| RelationDocument::new(entry, &mut types).map(Arc::new));
    let mut parts = parts.collect::<Result<Vec<_>>>()?;
    parts.sort_by(|one, other| one.name.cmp(&other.name));
    schema(document.name, &parts)
}

/// Builds a schema from relations that are sorted by name. Assigns the names that requests use, and
/// adds the constraints and relationships.
///
/// # Errors
///
/// [`Error::Malformed`] if a foreign key lacks `references`, or has unequal numbers of referencing
/// and referenced columns.
pub(crate) fn schema(name: Box<str>, parts: &[Arc<RelationDocument>]) -> Result<Schema> {
    let (type_names, renamed) = naming::type_names(parts.iter().map(|part| &*part.name));
    let relations = parts.iter().zip(type_names);
    let relations = relations.map(|(part, type_names)| part.relation(type_names));
    let mut schema = Schema::new(name, relations.collect()).with_renamed(renamed);
    for part in parts {
        keys(part, &mut schema)?;
    }
    link::relationships(parts, &mut schema);
    Ok(schema)
}

/// Adds the constraints that the document of a relation lists.
fn keys(part: &RelationDocument, schema: &mut Schema) -> Result<()> {
    let Some(id) = schema.find(&part.name) else {
        return Ok(());
    };
    for constraint in &part.constraints {
        let columns = column_ids(&schema[id], &constraint.columns).unwrap_or_default();
        let all = columns.len() == constraint.columns.len();
        let key = UniqueKey {
            name: constraint.name.clone(),
            columns,
        };
        match constraint.kind {
            ConstraintEntryKind::Primary if all => schema.relation_mut(id).primary_key = Some(key),
            ConstraintEntryKind::Unique if all => schema.relation_mut(id).unique.push(key),
            ConstraintEntryKind::Foreign if all && !constraint.period => {
                let key = ForeignKey {
                    name: key.name,
                    columns: key.columns,
                    referenced: referenced(constraint, schema)?,
                };
                schema.relation_mut(id).foreign_keys.push(key);
            }
            _ => {
                let other = other(constraint, schema)?;
                schema.relation_mut(id).other_constraints.push(other);
            }
        }
    }
    Ok(())
}

fn other(entry: &ConstraintEntry, schema: &Schema) -> Result<Constraint> {
    Ok(Constraint {
        name: entry.name.clone(),
        columns: entry.columns.clone(),
        kind: match entry.kind {
            ConstraintEntryKind::Primary => ConstraintKind::Primary,
            ConstraintEntryKind::Unique => ConstraintKind::Unique,
            ConstraintEntryKind::Check => ConstraintKind::Check,
            ConstraintEntryKind::Exclude => ConstraintKind::Exclude,
            ConstraintEntryKind::Foreign => ConstraintKind::Foreign(referenced(entry, schema)?),
        },
    })
}

fn referenced(entry: &ConstraintEntry, schema: &Schema) -> Result<Referenced> {
    let missing = || Error::Malformed(format!("the key `{}` lacks `references`", entry.name));
    let there = entry.references.as_ref().ok_or_else(missing)?;
    if there.columns.len() != entry.columns.len() {
        let problem = format!("the key `{}` has unequal numbers of columns", entry.name);
        return Err(Error::Malformed(problem));
    }
    let here = there.schema.is_none().then(|| schema.find(&there.relation));
    if let Some(id) = here.flatten()
        && let Some(columns) = column_ids(&schema[id], &there.columns)
    {
        return Ok(Referenced::SameSchema(id, columns));
    }
    Ok(Referenced::OtherSchema {
        schema: there.schema.clone().unwrap_or_else(|| schema.name().into()),
        relation: there.relation.clone(),
        columns: there.columns.clone(),
    })
}

/// The columns with these names; `None` if the relation lacks one of them.
fn column_ids(relation: &Relation, names: &[Box<str>]) -> Option<Vec<ColumnId>> {
    let find = |name: &str| {
        let mut columns = relation.columns();
        columns.find(|(_, column)| &*column.name == name)
    };
    let ids = names.iter().map(|name| find(name).map(|(id, _)| id));
    ids.collect()
}
