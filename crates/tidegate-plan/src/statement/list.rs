//! The rows of a root list.

use tidegate_catalog::{RelationId, Schema};
use tidegate_sql::BoundStatement;
use tidegate_sql::statement::{Kind, SqlWriter};

use super::{Page, condition, expressions, joins, page, relation};
use crate::operation::List;
use crate::row::Program;

/// The statement of a root list.
pub(crate) fn list(
    schema: &Schema,
    from: RelationId,
    wanted: &List,
    page: &Page,
    program: &Program<'_>,
) -> BoundStatement {
    let mut sql = SqlWriter::new();
    let select = |sql: &mut SqlWriter| {
        sql.syntax("select");
        expressions(schema, program, " ", sql);
        source(schema, from, wanted, program, sql);
    };
    let order = |sql: &mut SqlWriter| {
        page::order(schema.relation(from), &wanted.order, page.given, sql);
    };
    page::write(page, &mut sql, select, order);
    sql.finish(Kind::Read)
}

/// Appends where the rows come from.
pub(super) fn source(
    schema: &Schema,
    from: RelationId,
    wanted: &List,
    program: &Program<'_>,
    sql: &mut SqlWriter,
) {
    sql.syntax(" from ");
    relation(schema, from, 0, sql);
    joins(schema, program, sql);
    condition(schema, from, &wanted.filter, " where ", sql);
}
