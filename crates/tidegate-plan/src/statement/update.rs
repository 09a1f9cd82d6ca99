//! Statements of updates and deletes.

use tidegate_catalog::{Relation, RelationId, Schema};
use tidegate_sql::statement::{Kind, SqlWriter};
use tidegate_sql::{BoundStatement, DatabaseError};

use super::name::target;
use super::overflow::Overflow;
use super::{condition, returning};
use crate::operation::{Delete, Update};
use crate::row::Program;

pub(crate) fn update(
    schema: &Schema,
    relation: RelationId,
    wanted: &Update<'_>,
    program: &Program,
) -> BoundStatement {
    let mut sql = SqlWriter::new();
    sql.syntax("update ");
    target(schema, relation, &mut sql);
    sql.syntax(" t0");
    let mut separator = " set ";
    for (id, value) in &wanted.values {
        let column = schema.relation(relation).column(*id);
        sql.syntax(separator);
        separator = ", ";
        sql.identifier(&column.name)
            .syntax(" = ")
            .placed(value.parameter(), ["data.", &column.field].concat());
    }
    condition(schema, relation, &wanted.filter, " where ", &mut sql);
    returning(schema, program, &mut sql);
    sql.finish(Kind::Write)
}

/// If PostgreSQL's error reports that a value exceeds a limit, the path of the first new value
/// that exceeds it; otherwise `None`.
pub(crate) fn locate_new(
    relation: &Relation,
    wanted: &Update<'_>,
    rejection: &DatabaseError,
) -> Option<String> {
    let overflow = Overflow::of(rejection)?;
    let mut values = wanted.values.iter();
    let (column, _) = values.find(|(id, value)| overflow.is_in(relation.column(*id), value))?;
    Some(["data.", &relation.column(*column).field].concat())
}

pub(crate) fn delete(
    schema: &Schema,
    relation: RelationId,
    wanted: &Delete,
    program: &Program,
) -> BoundStatement {
    let mut sql = SqlWriter::new();
    sql.syntax("delete from ");
    target(schema, relation, &mut sql);
    sql.syntax(" t0");
    condition(schema, relation, &wanted.filter, " where ", &mut sql);
    returning(schema, program, &mut sql);
    sql.finish(Kind::Write)
}
