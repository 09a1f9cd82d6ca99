//! The object types of aggregates.

use std::collections::HashSet;

use tidegate_catalog::model::{Column, ColumnId, Relation};
use tidegate_plan::operation::AggregateFunction;
use tidegate_sql::{Type, TypeKind as SqlKind};

use super::table::column_type;
use super::{FieldDefinition, TypeDefinition, TypeKind, TypeReference, free_name};

/// The functions over columns, with their field names.
pub(crate) const AGGREGATE_FUNCTIONS: [(&str, AggregateFunction); 4] = [
    ("sum", AggregateFunction::Sum),
    ("avg", AggregateFunction::Avg),
    ("min", AggregateFunction::Min),
    ("max", AggregateFunction::Max),
];

/// The names that belong to the aggregates of a relation.
#[derive(Debug)]
pub(crate) struct AggregateNames {
    /// The type of a group.
    pub group: Box<str>,
    /// The types of the functions' objects, in the order of [`AGGREGATE_FUNCTIONS`]; `None` where
    /// no column takes the function.
    pub functions: [Option<Box<str>>; 4],
    /// The fields of a group that show a column.
    pub columns: Vec<(Box<str>, ColumnId)>,
}

impl AggregateNames {
    /// Chooses names for the aggregates of a relation: its type's name with `Aggregate` and the
    /// function behind it, or the first free one with a number.
    pub(super) fn choose(relation: &Relation, taken: &mut HashSet<String>) -> Self {
        let base = format!("{}Aggregate", relation.type_name);
        let functions = AGGREGATE_FUNCTIONS.map(|(name, function)| {
            let any = relation.columns.iter().any(|column| aggregated(column, function).is_some());
            let mut letters = name.chars();
            let first = letters.next().unwrap_or_default().to_ascii_uppercase();
            any.then(|| free_name(format!("{base}{first}{}", letters.as_str()), taken).into())
        });
        let mut fields = ["count", "sum", "avg", "min", "max"].map(String::from).into();
        let columns = relation.columns().filter(|(_, column)| column.rights.select);
        let columns = columns
            .map(|(id, column)| (free_name(column.field.to_string(), &mut fields).into(), id))
            .collect();
        Self {
            group: free_name(base, taken).into(),
            functions,
            columns,
        }
    }
}

/// The type of a function over a column, if the column takes it and the role may read it.
pub(crate) fn aggregated(
    column: &Column,
    function: AggregateFunction,
) -> Option<TypeReference<'static>> {
    if !column.rights.select {
        return None;
    }
    let r#type = base(&column.r#type);
    let number = match *r#type {
        Type::FLOAT4 | Type::FLOAT8 => Some("Float"),
        Type::INT2 | Type::INT4 | Type::INT8 | Type::NUMERIC => Some("String"),
        _ => None,
    };
    let name = match function {
        AggregateFunction::Sum | AggregateFunction::Avg => number,
        AggregateFunction::Min | AggregateFunction::Max => {
            ordered(r#type).then(|| crate::kind::Kind::of_type(r#type).name())
        }
    };
    name.map(TypeReference::nullable)
}

fn base(r#type: &Type) -> &Type {
    match r#type.kind() {
        SqlKind::Domain(inner) => base(inner),
        _ => r#type,
    }
}

/// Whether PostgreSQL has `min` and `max` for the type (PostgreSQL, "Aggregate Functions").
fn ordered(r#type: &Type) -> bool {
    const ORDERED: [Type; 14] = [
        Type::INT2,
        Type::INT4,
        Type::INT8,
        Type::FLOAT4,
        Type::FLOAT8,
        Type::NUMERIC,
        Type::TEXT,
        Type::VARCHAR,
        Type::BPCHAR,
        Type::DATE,
        Type::TIME,
        Type::TIMETZ,
        Type::TIMESTAMP,
        Type::TIMESTAMPTZ,
    ];
    ORDERED.contains(r#type) || matches!(r#type.kind(), SqlKind::Enum(_))
}

/// Defines the types of a relation's aggregates.
pub(super) fn define<'s>(
    relation: &'s Relation,
    names: &AggregateNames,
    types: &mut Vec<TypeDefinition<'s>>,
) {
    let mut fields = vec![FieldDefinition {
        name: "count".into(),
        description: Some("How many rows.".into()),
        arguments: &[],
        r#type: TypeReference::required("Int"),
    }];
    for ((function_name, function), name) in AGGREGATE_FUNCTIONS.iter().zip(&names.functions) {
        let Some(name) = name else { continue };
        fields.push(FieldDefinition {
            name: (*function_name).into(),
            description: None,
            arguments: &[],
            r#type: TypeReference {
                name: name.to_string().into(),
                ..TypeReference::nullable("")
            },
        });
        types.push(TypeDefinition {
            name: name.to_string().into(),
            description: None,
            kind: TypeKind::Object(members(relation, *function)),
        });
    }
    for (name, column) in &names.columns {
        fields.push(FieldDefinition {
            name: name.to_string().into(),
            description: Some("The value by which `groupBy` has made the group.".into()),
            arguments: &[],
            r#type: TypeReference {
                not_null: false,
                ..column_type(relation, *column)
            },
        });
    }
    types.push(TypeDefinition {
        name: names.group.to_string().into(),
        description: Some(format!("Counts and sums over the rows of {}.", relation.name).into()),
        kind: TypeKind::Object(fields),
    });
}

fn members(relation: &Relation, function: AggregateFunction) -> Vec<FieldDefinition<'_>> {
    let columns = relation.columns.iter();
    columns
        .filter_map(|column| {
            Some(FieldDefinition {
                name: (&*column.field).into(),
                description: None,
                arguments: &[],
                r#type: aggregated(column, function)?,
            })
        })
        .collect()
}
