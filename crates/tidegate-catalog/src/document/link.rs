//! Foreign keys seen from both ends.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::part::Part;
use super::{ConstraintEntry, ConstraintEntryKind};
use crate::model::{
    Cardinality, ColumnId, ForeignKey, Referenced, Relation, RelationId, Relationship, Schema,
};
use crate::naming::{self, End};

/// As many relationships as identifiers can tell apart.
const MOST: usize = u16::MAX as usize;

/// A foreign key between two relations of the schema.
struct Link<'a> {
    entry: &'a ConstraintEntry,
    source: RelationId,
    target: RelationId,
}

/// Gives each relation its relationships.
///
/// Names are given to all foreign keys between visible relations, also to those over columns that
/// the role may not read and that therefore make no relationship: so a name does not mean one key
/// to one role and another to the next.
pub(super) fn relationships(parts: &[Arc<Part>], schema: &mut Schema) {
    let links = links(parts, schema);
    let mut forward: HashMap<RelationId, Vec<&Link<'_>>> = HashMap::new();
    let mut reverse: HashMap<RelationId, Vec<&Link<'_>>> = HashMap::new();
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

/// All of them, by the referencing relation's name and then the constraint's.
fn links<'a>(parts: &'a [Arc<Part>], schema: &Schema) -> Vec<Link<'a>> {
    let keys = parts.iter().flat_map(|part| {
        let constraints = part.constraints.iter();
        constraints.map(move |constraint| (part, constraint))
    });
    keys.filter_map(|(part, entry)| {
        let there = entry.references.as_ref()?;
        let key = entry.kind == ConstraintEntryKind::Foreign && !entry.period;
        (key && there.schema.is_none()).then_some(())?;
        Some(Link {
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
    forward: &[&Link<'_>],
    reverse: &[&Link<'_>],
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
    forward.chain(reverse).take(MOST).collect()
}

fn ends<'a>(
    schema: &'a Schema,
    links: &[&Link<'a>],
    far: impl Fn(&Link<'_>) -> RelationId,
) -> Vec<End<'a>> {
    let end = |link: &&Link<'a>| End {
        relation: &schema[far(link)].name,
        constraint: &link.entry.name,
        columns: &link.entry.columns,
    };
    links.iter().map(end).collect()
}

/// The relationship along a key, when the role may read both relations and all columns of the key.
fn relationship(
    schema: &Schema,
    link: &Link<'_>,
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
        Referenced::Here(_, referenced) => Some((&key.columns, referenced)),
        Referenced::Elsewhere { .. } => None,
    }
}
