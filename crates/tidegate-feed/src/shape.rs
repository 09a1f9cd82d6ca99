//! What a table is like at a place of the log.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_sql::{Column, Type, WireFormat};

use crate::pgoutput::Relation;

/// A table as the changes behind it have it. Every definition that comes through the log makes
/// another shape.
#[derive(Debug)]
pub struct Shape {
    /// Tells shapes apart.
    pub(crate) generation: u64,
    /// The table's number in `pg_class`.
    pub oid: u32,
    /// Its schema.
    pub schema: Box<str>,
    /// Its name.
    pub name: Box<str>,
    /// Its columns, in the order of a row's values.
    pub columns: Box<[ShapeColumn]>,
}

/// A column of a [`Shape`].
#[derive(Debug, PartialEq, Eq)]
pub struct ShapeColumn {
    /// Its name.
    pub name: Box<str>,
    /// Its type, resolved down to elements, attributes and base types.
    pub r#type: Type,
    /// Whether it belongs to the replica identity.
    pub key: bool,
}

impl Shape {
    /// Puts a shape together; `types` has those that are not built in.
    pub(crate) fn new(relation: Relation, types: &HashMap<u32, Type>) -> Self {
        static GENERATIONS: AtomicU64 = AtomicU64::new(1);
        let columns = relation.columns.into_iter().map(|column| ShapeColumn {
            r#type: resolve(column.r#type, types).unwrap_or(Type::UNKNOWN),
            name: column.name,
            key: column.key,
        });
        Self {
            generation: GENERATIONS.fetch_add(1, Ordering::Relaxed),
            oid: relation.oid,
            schema: relation.schema,
            name: relation.name,
            columns: columns.collect(),
        }
    }

    /// Whether rows of both look the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.schema, &self.name, &self.columns) == (&other.schema, &other.name, &other.columns)
    }

    /// The place of a column.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| &*column.name == name)
    }

    /// A column as the codec wants it.
    pub(crate) fn wire_column(&self, at: usize) -> Option<Column> {
        let column = self.columns.get(at)?;
        Some(Column {
            name: column.name.to_string(),
            r#type: column.r#type.clone(),
            format: WireFormat::Text,
            origin: None,
        })
    }
}

fn resolve(oid: u32, types: &HashMap<u32, Type>) -> Option<Type> {
    Type::from_oid(oid).or_else(|| types.get(&oid).cloned())
}

/// The types of a relation that are not built in and not known yet.
pub(crate) fn unknown_types(relation: &Relation, types: &HashMap<u32, Type>) -> Vec<u32> {
    let mut unknown: Vec<u32> = relation
        .columns
        .iter()
        .map(|column| column.r#type)
        .filter(|oid| resolve(*oid, types).is_none())
        .collect();
    unknown.sort_unstable();
    unknown.dedup();
    unknown
}
