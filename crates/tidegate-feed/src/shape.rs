//! What a table is like at a place of the log.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tidegate_sql::{Column, Type, TypeKind, WireFormat};

use crate::pgoutput::{Relation, Tuple, Value};
use crate::predicate::base;

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
    /// The columns of its primary key, which the log does not tell.
    primary: OnceLock<Arc<[Box<str>]>>,
}

/// A column of a [`Shape`].
#[derive(Debug, PartialEq, Eq)]
pub struct ShapeColumn {
    /// Its name.
    pub name: Box<str>,
    /// Its type, resolved down to elements, attributes and base types.
    pub r#type: Type,
    /// The number of its type as it is declared, which may be a domain's.
    pub(crate) declared: u32,
    /// Whether it belongs to the replica identity.
    pub key: bool,
}

impl Shape {
    /// Puts a shape together; `types` has those that are not built in.
    pub(crate) fn new(relation: Relation, types: &HashMap<u32, Type>) -> Self {
        let columns = relation.columns.into_iter().map(|column| ShapeColumn {
            r#type: resolve(column.r#type, types).unwrap_or(Type::UNKNOWN),
            declared: column.r#type,
            name: column.name,
            key: column.key,
        });
        Self {
            generation: next_generation(),
            oid: relation.oid,
            schema: relation.schema,
            name: relation.name,
            columns: columns.collect(),
            primary: OnceLock::new(),
        }
    }

    /// Whether rows of both look the same.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.schema, &self.name, &self.columns, self.primary())
            == (&other.schema, &other.name, &other.columns, other.primary())
    }

    /// The columns of its primary key, where that is known.
    pub(crate) fn primary(&self) -> Option<&Arc<[Box<str>]>> {
        self.primary.get()
    }

    /// Takes the columns of its primary key.
    pub(crate) fn learn_primary(&self, columns: Arc<[Box<str>]>) {
        // It is described once.
        let _ = self.primary.set(columns);
    }

    /// The same with types as they are known today.
    pub(crate) fn retyped(&self, types: &HashMap<u32, Type>) -> Self {
        let columns = self.columns.iter().map(|column| ShapeColumn {
            name: column.name.clone(),
            r#type: types
                .get(&column.declared)
                .unwrap_or(&column.r#type)
                .clone(),
            declared: column.declared,
            key: column.key,
        });
        Self {
            generation: next_generation(),
            oid: self.oid,
            schema: self.schema.clone(),
            name: self.name.clone(),
            columns: columns.collect(),
            primary: self.primary.clone(),
        }
    }

    /// The labels in a row that the enums of its columns do not have, with the numbers of those.
    pub(crate) fn strange_labels(&self, row: &Tuple) -> Vec<(u32, Box<[u8]>)> {
        let mut strange = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            let r#type = base(&column.r#type);
            let TypeKind::Enum(labels) = r#type.kind() else {
                continue;
            };
            if let Value::Text(raw) = row.value(at)
                && !labels.iter().any(|label| label.as_bytes() == raw)
            {
                strange.push((r#type.oid(), raw.into()));
            }
        }
        strange
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

fn next_generation() -> u64 {
    static GENERATIONS: AtomicU64 = AtomicU64::new(1);
    GENERATIONS.fetch_add(1, Ordering::Relaxed)
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
