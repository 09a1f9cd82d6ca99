//! Writes the names of relations, columns, types and operators.

use tidegate_catalog::model::{Column, RelationKind};
use tidegate_catalog::{RelationId, Schema};
use tidegate_sql::statement::SqlWriter;
use tidegate_values::{Type, operator_schema};

use crate::row::Cast;

/// Appends a relation with its alias: `"schema"."relation" t0`.
pub(crate) fn relation(schema: &Schema, relation: RelationId, table: usize, sql: &mut SqlWriter) {
    target(schema, relation, sql);
    sql.syntax(" ").numbered("t", table);
}

/// Appends the relation that a foreign key references, with its alias. `ONLY` excludes the rows of
/// tables that inherit from the relation. A foreign key does not reference these rows, but such a
/// row may have the same key as a referenced row.
pub(crate) fn referenced(schema: &Schema, relation: RelationId, table: usize, sql: &mut SqlWriter) {
    if schema.relation(relation).kind == RelationKind::Table {
        sql.syntax("only ");
    }
    self::relation(schema, relation, table, sql);
}

/// Appends a relation: `"schema"."relation"`.
pub(super) fn target(schema: &Schema, relation: RelationId, sql: &mut SqlWriter) {
    sql.identifier(schema.name())
        .syntax(".")
        .identifier(&schema.relation(relation).name);
}

/// Appends a column: `t0."column"`.
pub(crate) fn column(table: usize, name: &str, sql: &mut SqlWriter) {
    sql.numbered("t", table).syntax(".").identifier(name);
}

/// Appends a cast such as `::pg_catalog.text`; nothing for [`Cast::None`].
pub(crate) fn cast(to: Cast, sql: &mut SqlWriter) {
    match to {
        Cast::None => {}
        Cast::Text => {
            sql.syntax("::pg_catalog.text");
        }
        Cast::TextArray => {
            sql.syntax("::pg_catalog.text[]");
        }
    }
}

/// Appends the `=` operator for the two columns of a foreign key. For a type of an extension, the
/// operator is in the schema of the type.
pub(crate) fn joined_by(there: &Column, here: &Column, sql: &mut SqlWriter) {
    sql.syntax(" operator(");
    match [there, here]
        .map(|column| operator_schema(&column.r#type))
        .into_iter()
        .find(|schema| *schema != "pg_catalog")
    {
        None => sql.syntax("pg_catalog"),
        Some(schema) => sql.identifier(schema),
    };
    sql.syntax(".=) ");
}

/// Appends the qualified name of a type. An array type has the name that `pg_type` has for it, such
/// as `_int4`.
pub(crate) fn type_name(r#type: &Type, sql: &mut SqlWriter) {
    match r#type.schema() {
        "pg_catalog" => sql.syntax("pg_catalog"),
        schema => sql.identifier(schema),
    };
    sql.syntax(".").identifier(r#type.name());
}
