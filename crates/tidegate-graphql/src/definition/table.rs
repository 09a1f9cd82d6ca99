//! Defines the object type of a relation's rows.

use tidegate_catalog::model::{Cardinality, ColumnId, Relation, Relationship, Schema};

use super::{
    ArgumentDefinition, FieldDefinition, FieldIter, TypeReference, describe_column,
    with_placeholder,
};
use crate::field_type::FieldType;

/// The arguments that every list of rows has, and additional arguments.
macro_rules! list_arguments {
    ($($more:expr),*) => {
        &[
            ArgumentDefinition {
                name: "where",
                r#type: TypeReference::nullable("JSON"),
                description: "Which rows: columns with values or operators, `and`, `or`, `not`, and relationships with a condition of their own.",
            },
            ArgumentDefinition {
                name: "orderBy",
                r#type: TypeReference::nullable("JSON"),
                description: "`{column: \"asc\"}`, `\"desc\"`, `\"asc_nulls_first\"` … or a list of such; without it the primary key orders a page.",
            },
            ArgumentDefinition {
                name: "limit",
                r#type: TypeReference::nullable("Int"),
                description: "At most so many rows.",
            },
            ArgumentDefinition {
                name: "offset",
                r#type: TypeReference::nullable("Int"),
                description: "So many rows are left out first.",
            },
            $($more),*
        ]
    };
}

/// The arguments of a list of rows.
pub(super) static LIST: &[ArgumentDefinition] = list_arguments!();
/// The arguments of a list of rows, for a relation whose primary key has one column.
pub(super) static LIST_BY_KEY: &[ArgumentDefinition] = list_arguments!(ArgumentDefinition {
    name: "id",
    r#type: TypeReference::nullable("ID"),
    description: "Only the row with this primary key.",
});

/// The fields of the type of a relation's rows.
pub(super) fn fields<'s>(schema: &'s Schema, relation: &'s Relation) -> FieldIter<'s> {
    let columns = relation
        .columns()
        .filter(|(_, column)| column.rights.select)
        .map(|(id, _)| column(relation, id));
    let relationships = relation
        .relationships
        .iter()
        .map(|relationship| related(schema, relationship));
    with_placeholder(columns.chain(relationships))
}

fn column(relation: &Relation, id: ColumnId) -> FieldDefinition<'_> {
    let column = relation.column(id);
    FieldDefinition {
        name: (&*column.field).into(),
        description: describe_column(column.comment.as_deref(), column),
        arguments: &[],
        r#type: column_type(relation, id),
    }
}

pub(super) fn column_type(relation: &Relation, id: ColumnId) -> TypeReference<'static> {
    let kind = FieldType::of_column(relation, id);
    let mut r#type = if kind.list {
        TypeReference::list(kind.name())
    } else {
        TypeReference::nullable(kind.name())
    };
    r#type.not_null = relation.column(id).not_null && !FieldType::may_be_json_null(relation, id);
    r#type
}

fn related<'s>(schema: &'s Schema, relationship: &'s Relationship) -> FieldDefinition<'s> {
    let target = &*schema.relation(relationship.target).type_name;
    let (arguments, r#type, description) = match relationship.cardinality {
        Cardinality::One => (
            &[] as &[_],
            TypeReference::nullable(target),
            format!(
                "The row that the key {} refers to.",
                relationship.constraint
            ),
        ),
        Cardinality::Many => (
            LIST,
            TypeReference::list(target),
            format!(
                "The rows that refer to this one by the key {}.",
                relationship.constraint
            ),
        ),
    };
    FieldDefinition {
        name: (&*relationship.name).into(),
        description: Some(description.into()),
        arguments,
        r#type,
    }
}
