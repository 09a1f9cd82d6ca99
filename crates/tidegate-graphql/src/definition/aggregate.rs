//! Defines the object types of aggregates.

use std::borrow::Cow;

use tidegate_catalog::model::{Column, ColumnId, Relation};
use tidegate_plan::operation::AggregateFunction;
use tidegate_values::{Type, TypeKind as SqlKind, base_type};

use super::table::column_type;
use super::{FieldDefinition, FieldIter, TypeReference, describe_column};
use crate::field_type::{FieldType, Named};

/// The aggregate functions with their field names.
pub(crate) const AGGREGATE_FUNCTIONS: [(&str, AggregateFunction); 4] = [
    ("sum", AggregateFunction::Sum),
    ("avg", AggregateFunction::Avg),
    ("min", AggregateFunction::Min),
    ("max", AggregateFunction::Max),
];

/// The name of the GraphQL type of a group of rows.
pub(crate) fn aggregate_type(relation: &Relation) -> &str {
    &relation.aggregate_types[0]
}

/// The name of the object type for the values of an aggregate function. `function` is the
/// function's index in [`AGGREGATE_FUNCTIONS`].
pub(crate) fn function_type(relation: &Relation, function: usize) -> &str {
    &relation.aggregate_types[1 + function]
}

/// The columns for which the type of groups has a field, each with the name of that field. The name
/// is that of the column's own field. If this is also the name of `count` or of an aggregate
/// function, `_` is appended until the name is unused. Geometric columns are left out, because rows
/// cannot be grouped by them. Other columns that `groupBy` rejects, such as those of type `json`,
/// have a field.
pub(crate) fn group_columns(relation: &Relation) -> impl Iterator<Item = (Cow<'_, str>, ColumnId)> {
    let taken = |name: &str| {
        let function = matches!(name, "count" | "sum" | "avg" | "min" | "max");
        function || relation.columns.iter().any(|column| &*column.field == name)
    };
    let readable = relation.columns().filter(|(id, column)| {
        let scalar = matches!(FieldType::of_column(relation, *id).named, Named::Scalar(_));
        let grouped = scalar || tidegate_filter::is_groupable(column);
        grouped && column.rights.select
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

/// The result type of a function over a column. `None` if the function does not accept the column
/// or the role may not read it.
pub(crate) fn aggregated(
    relation: &Relation,
    id: ColumnId,
    function: AggregateFunction,
) -> Option<TypeReference<'static>> {
    let column = relation.column(id);
    if !column.rights.select {
        return None;
    }
    let r#type = base_type(&column.r#type);
    let number = match *r#type {
        Type::FLOAT4 | Type::FLOAT8 => Some("Float"),
        Type::INT2 | Type::INT4 | Type::INT8 | Type::NUMERIC => Some("String"),
        Type::INTERVAL => Some("JSON"),
        Type::MONEY if function == AggregateFunction::Sum => Some("String"),
        _ => None,
    };
    match function {
        AggregateFunction::Sum | AggregateFunction::Avg => number.map(TypeReference::nullable),
        AggregateFunction::Min | AggregateFunction::Max => {
            let shown = matches!(FieldType::of_column(relation, id).named, Named::Scalar(_));
            // The base type is not used here, because `min(anyenum)` and `max(anyenum)` do not
            // accept a domain over an enum.
            let is_enum = matches!(column.r#type.kind(), SqlKind::Enum(_));
            let ordered = shown && (is_enum || column.has_min_max || is_ordered_list(column));
            ordered.then(|| TypeReference {
                not_null: false,
                ..column_type(relation, id)
            })
        }
    }
}

/// Whether the column is an array of ordered values. PostgreSQL has `min` and `max` for such
/// arrays.
fn is_ordered_list(column: &Column) -> bool {
    let r#type = base_type(&column.r#type);
    let is_list = matches!(r#type.kind(), SqlKind::Array(_));
    let is_vector = matches!(*r#type, Type::INT2_VECTOR | Type::OID_VECTOR);
    is_list && !is_vector && tidegate_filter::is_sortable(column)
}

/// The fields of the object type for groups of a relation's rows.
pub(super) fn group_fields(relation: &Relation) -> FieldIter<'_> {
    let count = FieldDefinition {
        name: "count".into(),
        description: Some("How many rows.".into()),
        arguments: &[],
        r#type: TypeReference::required("Int"),
    };
    let functions = (0..AGGREGATE_FUNCTIONS.len()).filter(|at| takes_any(relation, *at));
    let functions = functions.map(|at| FieldDefinition {
        name: AGGREGATE_FUNCTIONS[at].0.into(),
        description: None,
        arguments: &[],
        r#type: TypeReference {
            name: function_type(relation, at).into(),
            ..TypeReference::nullable("")
        },
    });
    let columns = group_columns(relation).map(|(name, column)| FieldDefinition {
        name,
        description: describe_column(
            Some("The value by which `groupBy` has made the group."),
            relation.column(column),
        ),
        arguments: &[],
        r#type: TypeReference {
            not_null: false,
            ..column_type(relation, column)
        },
    });
    Box::new(std::iter::once(count).chain(functions).chain(columns))
}

pub(super) fn describe_group(relation: &Relation) -> String {
    format!("Counts and sums over the rows of {}.", relation.name)
}

/// Whether a function accepts at least one column of the relation. A function that accepts no
/// column has no GraphQL type. `function` is its index in [`AGGREGATE_FUNCTIONS`].
pub(super) fn takes_any(relation: &Relation, function: usize) -> bool {
    function_fields(relation, function).next().is_some()
}

/// The fields of the object type for the values of an aggregate function. `function` is its index
/// in [`AGGREGATE_FUNCTIONS`].
pub(super) fn function_fields(relation: &Relation, function: usize) -> FieldIter<'_> {
    let (_, function) = AGGREGATE_FUNCTIONS[function];
    Box::new(relation.columns().filter_map(move |(id, column)| {
        Some(FieldDefinition {
            name: (&*column.field).into(),
            description: describe_column(None, column),
            arguments: &[],
            r#type: aggregated(relation, id, function)?,
        })
    }))
}
