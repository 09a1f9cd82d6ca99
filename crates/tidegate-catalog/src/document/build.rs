//! From a document to the model.

use super::link;
use super::type_tree::TypeTree;
use super::{ColumnEntry, ConstraintEntry, ConstraintEntryKind, Document, RelationEntry, Rights};
use crate::error::{Error, Result};
use crate::model::{
    Column, ColumnId, ColumnRights, Constraint, ConstraintKind, ForeignKey, Key, Referenced,
    Relation, RelationKind, RelationRights, Schema,
};
use crate::naming::{self, TypeNames};

pub(super) fn schema(mut document: Document) -> Result<Schema> {
    let by_name = |one: &RelationEntry, other: &RelationEntry| one.name.cmp(&other.name);
    document.relations.sort_by(by_name);
    for entry in &mut document.relations {
        entry
            .constraints
            .sort_by(|one, other| one.name.cmp(&other.name));
    }
    let mut types = TypeTree::new(&document.types);
    let names = document.relations.iter().map(|entry| &*entry.name);
    let (type_names, renamed) = naming::type_names(names);
    let entries = document.relations.iter().zip(type_names);
    let relations = entries
        .map(|(entry, type_names)| relation(entry, type_names, &mut types))
        .collect::<Result<Vec<_>>>()?;
    let mut schema = Schema::new(document.name.clone(), relations).with_renamed(renamed);
    for entry in &document.relations {
        keys(entry, &document.name, &mut schema)?;
    }
    link::relationships(&document.relations, &mut schema);
    Ok(schema)
}

/// The relation without its constraints.
fn relation(
    entry: &RelationEntry,
    type_names: TypeNames,
    types: &mut TypeTree<'_>,
) -> Result<Relation> {
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
    let any = |right: fn(&ColumnRights) -> bool| columns.iter().any(|c| right(&c.rights));
    Ok(Relation {
        oid: entry.oid,
        name: entry.name.clone(),
        type_name: type_names.rows,
        aggregate_types: type_names.aggregates,
        kind: entry.kind,
        persistence: entry.persistence,
        row_security: entry.row_security,
        plain_policies: entry.plain_policies,
        comment: entry.comment.clone(),
        rights: RelationRights {
            select: entry.rights.select || any(|rights| rights.select),
            insert: entry.rights.insert || any(|rights| rights.insert),
            update: entry.rights.update || any(|rights| rights.update),
            delete: entry.rights.delete,
        },
        columns,
        primary_key: None,
        unique: Vec::new(),
        foreign_keys: Vec::new(),
        other_constraints: Vec::new(),
        relationships: Vec::new(),
    })
}

fn column(
    (entry, field): (&ColumnEntry, Box<str>),
    next: i16,
    rights: Rights,
    kind: RelationKind,
    types: &mut TypeTree<'_>,
) -> Result<Column> {
    // A domain speaks of the values that are stored. In a view a row that would hold the value may
    // be missing, and nobody has checked what a foreign server gives.
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
        has_least: types.has_least(&entry.r#type),
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

/// Gives the relation its constraints.
fn keys(entry: &RelationEntry, schema_name: &str, schema: &mut Schema) -> Result<()> {
    let Some(id) = schema.find(&entry.name) else {
        return Ok(());
    };
    for constraint in &entry.constraints {
        let columns = column_ids(&schema[id], &constraint.columns).unwrap_or_default();
        let all = columns.len() == constraint.columns.len();
        let key = Key {
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
                    referenced: referenced(constraint, schema_name, schema)?,
                };
                schema.relation_mut(id).foreign_keys.push(key);
            }
            _ => {
                let other = other(constraint, schema_name, schema)?;
                schema.relation_mut(id).other_constraints.push(other);
            }
        }
    }
    Ok(())
}

fn other(entry: &ConstraintEntry, schema_name: &str, schema: &Schema) -> Result<Constraint> {
    Ok(Constraint {
        name: entry.name.clone(),
        columns: entry.columns.clone(),
        kind: match entry.kind {
            ConstraintEntryKind::Primary => ConstraintKind::Primary,
            ConstraintEntryKind::Unique => ConstraintKind::Unique,
            ConstraintEntryKind::Check => ConstraintKind::Check,
            ConstraintEntryKind::Exclude => ConstraintKind::Exclude,
            ConstraintEntryKind::Foreign => {
                ConstraintKind::Foreign(referenced(entry, schema_name, schema)?)
            }
        },
    })
}

fn referenced(entry: &ConstraintEntry, schema_name: &str, schema: &Schema) -> Result<Referenced> {
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
        return Ok(Referenced::Here(id, columns));
    }
    Ok(Referenced::Elsewhere {
        schema: there.schema.clone().unwrap_or_else(|| schema_name.into()),
        relation: there.relation.clone(),
        columns: there.columns.clone(),
    })
}

/// The columns of these names, when the relation shows all of them.
fn column_ids(relation: &Relation, names: &[Box<str>]) -> Option<Vec<ColumnId>> {
    let find = |name: &str| {
        let mut columns = relation.columns();
        columns.find(|(_, column)| &*column.name == name)
    };
    let ids = names.iter().map(|name| find(name).map(|(id, _)| id));
    ids.collect()
}
