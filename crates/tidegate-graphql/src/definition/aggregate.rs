//! The object types of aggregates.

use std::borrow::Cow;

use tidegate_catalog::model::{ColumnId, Relation};
use tidegate_plan::operation::AggregateFunction;
use tidegate_sql::{Type, TypeKind as SqlKind};

use super::table::column_type;
use super::{FieldDefinition, TypeDefinition, TypeKind, TypeReference};
use crate::kind::{Kind, Named};

/// The functions over columns, with their field names.
pub(crate) const AGGREGATE_FUNCTIONS: [(&str, AggregateFunction); 4] = [
    ("sum", AggregateFunction::Sum),
    ("avg", AggregateFunction::Avg),
    ("min", AggregateFunction::Min),
    ("max", AggregateFunction::Max),
];

/// The name of the type of a group. The catalog keeps these names free.
pub(crate) fn aggregate_type(relation: &Relation) -> String {
    format!("{}Aggregate", relation.type_name)
}

/// The name of the type of a function's object, by its place in [`AGGREGATE_FUNCTIONS`].
pub(crate) fn function_type(relation: &Relation, function: usize) -> String {
    const SUFFIXES: [&str; 4] = ["Sum", "Avg", "Min", "Max"];
    format!("{}Aggregate{}", relation.type_name, SUFFIXES[function])
}

/// The fields of a group that show a column: its own field name, with `_` behind it where that
/// is the name of a function. Values that have parts make no groups.
pub(crate) fn group_columns(relation: &Relation) -> impl Iterator<Item = (Cow<'_, str>, ColumnId)> {
    let taken = |name: &str| {
        let function = matches!(name, "count" | "sum" | "avg" | "min" | "max");
        function || relation.columns.iter().any(|column| &*column.field == name)
    };
    let readable = relation.columns().filter(|(id, column)| {
        let scalar = matches!(Kind::of_column(relation, *id).named, Named::Scalar(_));
        scalar && column.rights.select
    });
    readable.map(move |(id, column)| {
        if !matches!(&*column.field, "count" | "sum" | "avg" | "min" | "max") {
            return (Cow::Borrowed(&*column.field), id);
        }
        let mut name = format!("{}_", column.field);
        while taken(&name) {
            name.push('_');
        }
        (Cow::Owned(name), id)
    })
}

/// The type of a function over a column, if the column takes it and the role may read it.
pub(crate) fn aggregated(
    relation: &Relation,
    id: ColumnId,
    function: AggregateFunction,
) -> Option<TypeReference<'static>> {
    let column = relation.column(id);
    if !column.rights.select {
        return None;
    }
    let r#type = base(&column.r#type);
    let number = match *r#type {
        Type::FLOAT4 | Type::FLOAT8 => Some("Float"),
        Type::INT2 | Type::INT4 | Type::INT8 | Type::NUMERIC | Type::INTERVAL => Some("String"),
        Type::MONEY if function == AggregateFunction::Sum => Some("String"),
        _ => None,
    };
    match function {
        AggregateFunction::Sum | AggregateFunction::Avg => number.map(TypeReference::nullable),
        AggregateFunction::Min | AggregateFunction::Max => {
            let shown = matches!(Kind::of_column(relation, id).named, Named::Scalar(_));
            // The function of all enums takes none of their domains.
            let is_enum = matches!(column.r#type.kind(), SqlKind::Enum(_));
            let ordered = shown && (is_enum || column.has_least || is_ordered_list(r#type));
            ordered.then(|| TypeReference {
                not_null: false,
                ..column_type(relation, id)
            })
        }
    }
}

fn base(r#type: &Type) -> &Type {
    match r#type.kind() {
        SqlKind::Domain(inner) => base(inner),
        _ => r#type,
    }
}

/// Whether it is a list of values that have an order, for which PostgreSQL has `min` and `max`.
fn is_ordered_list(r#type: &Type) -> bool {
    match r#type.kind() {
        SqlKind::Array(_) if matches!(*r#type, Type::INT2_VECTOR | Type::OID_VECTOR) => false,
        SqlKind::Array(element) => tidegate_filter::has_order(element),
        _ => false,
    }
}

/// Defines the types of a relation's aggregates.
pub(super) fn define<'s>(relation: &'s Relation, types: &mut Vec<TypeDefinition<'s>>) {
    let mut fields = vec![FieldDefinition {
        name: "count".into(),
        description: Some("How many rows.".into()),
        arguments: &[],
        r#type: TypeReference::required("Int"),
    }];
    for (at, (function_name, function)) in AGGREGATE_FUNCTIONS.iter().enumerate() {
        let members = members(relation, *function);
        if members.is_empty() {
            continue;
        }
        let name = function_type(relation, at);
        fields.push(FieldDefinition {
            name: (*function_name).into(),
            description: None,
            arguments: &[],
            r#type: TypeReference {
                name: name.clone().into(),
                ..TypeReference::nullable("")
            },
        });
        types.push(TypeDefinition {
            name: name.into(),
            description: None,
            kind: TypeKind::Object(members),
        });
    }
    fields.extend(
        group_columns(relation).map(|(name, column)| FieldDefinition {
            name,
            description: Some("The value by which `groupBy` has made the group.".into()),
            arguments: &[],
            r#type: TypeReference {
                not_null: false,
                ..column_type(relation, column)
            },
        }),
    );
    types.push(TypeDefinition {
        name: aggregate_type(relation).into(),
        description: Some(format!("Counts and sums over the rows of {}.", relation.name).into()),
        kind: TypeKind::Object(fields),
    });
}

fn members(relation: &Relation, function: AggregateFunction) -> Vec<FieldDefinition<'_>> {
    let columns = relation.columns();
    columns
        .filter_map(|(id, column)| {
            Some(FieldDefinition {
                name: (&*column.field).into(),
                description: None,
                arguments: &[],
                r#type: aggregated(relation, id, function)?,
            })
        })
        .collect()
}
