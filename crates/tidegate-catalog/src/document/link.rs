//! Adds the relationships of a schema, which are its foreign keys seen from both ends.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::part::RelationDocument;
use super::{ConstraintEntry, ConstraintEntryKind};
use crate::model::{
    Cardinality, ColumnId, ForeignKey, Referenced, Relation, RelationId, Relationship, Schema,
};
use crate::naming::{self, RelationshipEnd};

/// The largest number of relationships of a relation. Their identifiers have 16 bits.
const MAX_RELATIONSHIPS: usize = u16::MAX as usize;

/// A foreign key from the relation `source` to the relation `target` of the schema.
struct ForeignKeyLink<'a> {
    entry: &'a ConstraintEntry,
    source: RelationId,
    target: RelationId,
}

/// Adds the relationships of each relation.
///
/// A foreign key becomes a relationship only if the role may read all columns of the key. However,
/// names are chosen for every foreign key between visible relations, even if it does not become a
/// relationship. Otherwise the same name could mean different foreign keys for different roles.
pub(super) fn relationships(parts: &[Arc<RelationDocument>], schema: &mut Schema) {
    let links = links(parts, schema);
    let mut forward: HashMap<RelationId, Vec<&ForeignKeyLink<'_>>> = HashMap::new();
    let mut reverse: HashMap<RelationId, Vec<&ForeignKeyLink<'_>>> = HashMap::new();
    for link in &links {
        forward.entry(link.source).or_default().push(link);
        reverse.entry(link.target).or_default().push(link);
    }
    let ids: Vec<_> = schema.relations().map(|(id, _)| id).collect();
    for id in ids {
        let forward = forward.get(&id).map_or(&[][..], Vec::as_slice);
        let reverse = reverse.get(&id).map_or(&[][..], Vec::as_slice);
        if !forward.is_empty() || !reverse.is_empty() {
            let relationships = of_relation(schema, id, forward, reverse);
            schema.relation_mut(id).relationships = relationships;
        }
    }
}

/// All foreign keys between relations of the schema, except those with `PERIOD`. They are sorted by
/// the referencing relation and then by the name of the constraint.
fn links<'a>(parts: &'a [Arc<RelationDocument>], schema: &Schema) -> Vec<ForeignKeyLink<'a>> {
    let keys = parts.iter().flat_map(|part| {
        let constraints = part.constraints.iter();
        constraints.map(move |constraint| (part, constraint))
    });
    keys.filter_map(|(part, entry)| {
        let there = entry.references.as_ref()?;
        let key = entry.kind == ConstraintEntryKind::Foreign && !entry.period;
        (key && there.schema.is_none()).then_some(())?;
        Some(ForeignKeyLink {
            entry,
            source: schema.find(&part.name)?,
            target: schema.find(&there.relation)?,
        })
    })
    .collect()
}

fn of_relation(
    schema: &Schema,
    id: RelationId,
    forward: &[&ForeignKeyLink<'_>],
    reverse: &[&ForeignKeyLink<'_>],
) -> Vec<Relationship> {
    let relation = &schema[id];
    let fields: HashSet<_> = relation
        .columns
        .iter()
        .map(|column| &*column.field)
        .collect();
    let forward_ends = ends(schema, forward, |link| link.target);
    let reverse_ends = ends(schema, reverse, |link| link.source);
    let names = naming::name_relationships(&fields, &forward_ends, &reverse_ends);

    let forward = forward.iter().zip(names.forward).flat_map(|(link, names)| {
        let names = names.into_iter();
        names.filter_map(|name| relationship(schema, link, Cardinality::One, name))
    });
    let reverse = reverse
        .iter()
        .zip(names.reverse)
        .filter_map(|(link, name)| relationship(schema, link, Cardinality::Many, name));
    forward.chain(reverse).take(MAX_RELATIONSHIPS).collect()
}

fn ends<'a>(
    schema: &'a Schema,
    links: &[&ForeignKeyLink<'a>],
    far: impl Fn(&ForeignKeyLink<'_>) -> RelationId,
) -> Vec<RelationshipEnd<'a>> {
    let end = |link: &&ForeignKeyLink<'a>| RelationshipEnd {
        relation: &schema[far(link)].name,
        constraint: &link.entry.name,
        columns: &link.entry.columns,
    };
    links.iter().map(end).collect()
}

/// The relationship along a foreign key; `None` unless the role may read both relations and all
/// columns of the key.
fn relationship(
    schema: &Schema,
    link: &ForeignKeyLink<'_>,
    cardinality: Cardinality,
    name: Box<str>,
) -> Option<Relationship> {
    let source = &schema[link.source];
    let target = &schema[link.target];
    let keys = source.foreign_keys.iter();
    let (columns, target_columns) = keys
        .filter(|key| key.name == link.entry.name)
        .find_map(columns)?;
    let readable = |relation: &Relation, columns: &[ColumnId]| {
        let mut columns = columns.iter();
        relation.rights.select && columns.all(|id| relation.column(*id).rights.select)
    };
    if !readable(source, columns) || !readable(target, target_columns) {
        return None;
    }
    let certain = || columns.iter().all(|id| source.column(*id).not_null);
    let relationship =
        |target, columns: &[ColumnId], target_columns: &[ColumnId], certain| Relationship {
            name,
            cardinality,
            target,
            columns: columns.to_vec(),
            target_columns: target_columns.to_vec(),
            constraint: link.entry.name.clone(),
            certain,
        };
    Some(match cardinality {
        Cardinality::One => {
            let certain = !link.entry.not_valid && certain();
            relationship(link.target, columns, target_columns, certain)
        }
        Cardinality::Many => relationship(link.source, target_columns, columns, false),
    })
}

fn columns(key: &ForeignKey) -> Option<(&[ColumnId], &[ColumnId])> {
    match &key.referenced {
        Referenced::SameSchema(_, referenced) => Some((&key.columns, referenced)),
        Referenced::OtherSchema { .. } => None,
    }
}
