//! The schema of a table at a position of the change log.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use tidegate_values::{Column, Type, TypeKind, WireFormat, base_type, has_attributes};

use crate::decode::pgoutput::{ColumnValue, Relation, Tuple};

/// The schema of a table, as the change log has described the table. It applies to the changes
/// after this description. Each further description of the table leads to a new schema.
#[derive(Debug)]
pub struct RelationSchema {
    /// A number that no other schema in this process has.
    pub(crate) generation: u64,
    /// The OID of the table.
    pub oid: u32,
    /// The name of the schema to which the table belongs.
    pub schema_name: Box<str>,
    /// The name of the table.
    pub name: Box<str>,
    /// The columns, in the order of a row's values.
    pub columns: Box<[SchemaColumn]>,
    /// The names of the columns of the primary key. They are not in the change log, and are set
    /// when they have been read from the catalog.
    primary_key: OnceLock<Arc<[Box<str>]>>,
}

/// A column of a [`RelationSchema`].
#[derive(Debug, PartialEq, Eq)]
pub struct SchemaColumn {
    /// The name of the column.
    pub name: Box<str>,
    /// The type of the column, with the types of its elements or attributes. For a domain, it is
    /// the base type.
    pub r#type: Type,
    /// The OID of the declared type, which may be a domain.
    pub(crate) declared_type: u32,
    /// Whether the column belongs to the replica identity.
    pub in_replica_identity: bool,
}

impl RelationSchema {
    /// Creates a schema. `types` contains the types that are not built in.
    pub(crate) fn new(relation: Relation, types: &HashMap<u32, Type>) -> Self {
        let columns = relation.columns.into_iter().map(|column| SchemaColumn {
            r#type: resolve(column.r#type, types).unwrap_or(Type::UNKNOWN),
            declared_type: column.r#type,
            name: column.name,
            in_replica_identity: column.in_replica_identity,
        });
        Self {
            generation: next_generation(),
            oid: relation.oid,
            schema_name: relation.schema,
            name: relation.name,
            columns: columns.collect(),
            primary_key: OnceLock::new(),
        }
    }

    /// Whether rows are encoded and filtered in the same way under both schemas.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        (
            &self.schema_name,
            &self.name,
            &self.columns,
            self.primary_key(),
        ) == (
            &other.schema_name,
            &other.name,
            &other.columns,
            other.primary_key(),
        )
    }

    /// The names of the columns of the primary key; `None` if they are unknown.
    pub(crate) fn primary_key(&self) -> Option<&Arc<[Box<str>]>> {
        self.primary_key.get()
    }

    pub(crate) fn set_primary_key(&self, columns: Arc<[Box<str>]>) {
        // `set` fails if the key is already set. The key of a schema is read only once, so the
        // result is ignored.
        let _ = self.primary_key.set(columns);
    }

    /// The same schema with the current types, under a new generation.
    pub(crate) fn with_types(&self, types: &HashMap<u32, Type>) -> Self {
        let columns = self.columns.iter().map(|column| SchemaColumn {
            name: column.name.clone(),
            r#type: types
                .get(&column.declared_type)
                .unwrap_or(&column.r#type)
                .clone(),
            declared_type: column.declared_type,
            in_replica_identity: column.in_replica_identity,
        });
        Self {
            generation: next_generation(),
            oid: self.oid,
            schema_name: self.schema_name.clone(),
            name: self.name.clone(),
            columns: columns.collect(),
            primary_key: self.primary_key.clone(),
        }
    }

    /// Whether the attributes of a composite type in the schema differ from those in `types`.
    pub(crate) fn has_changed_attributes(&self, types: &HashMap<u32, Type>) -> bool {
        let is_changed = |column: &SchemaColumn| {
            let current = types.get(&column.declared_type);
            has_attributes(&column.r#type)
                && current.is_some_and(|current| *current != column.r#type)
        };
        self.columns.iter().any(is_changed)
    }

    /// The labels in a row's enum values that the enums of the schema do not contain. Each label
    /// comes with the OID of its enum.
    pub(crate) fn unknown_labels(&self, row: &Tuple) -> Vec<(u32, Box<[u8]>)> {
        let mut unknown = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            let r#type = base_type(&column.r#type);
            let TypeKind::Enum(labels) = r#type.kind() else {
                continue;
            };
            if let ColumnValue::Text(raw) = row.value(at)
                && !labels.iter().any(|label| label.as_bytes() == raw)
            {
                unknown.push((r#type.oid(), raw.into()));
            }
        }
        unknown
    }

    /// The index of the column with this name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| &*column.name == name)
    }

    /// The column at an index, in the form that `tidegate_values` uses.
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

/// The OIDs of the column types of a relation, without duplicates. Built-in types and the types in
/// `types` are left out.
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

/// The labels of a type; `None` if the type is neither an enum nor a domain over an enum.
pub(crate) fn enum_labels(r#type: &Type) -> Option<Arc<[String]>> {
    match base_type(r#type).kind() {
        TypeKind::Enum(labels) => Some(labels.as_slice().into()),
        _ => None,
    }
}
