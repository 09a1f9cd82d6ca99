//! The statement of a list that a root field reads.

use tidegate_catalog::{RelationId, Schema};
use tidegate_sql::statement::SqlWriter;

use super::raw_keys::raw_keys;
use super::{Page, condition, expressions, joins, page, relation};
use crate::operation::List;
use crate::row::Program;

/// Appends the select of a list that a root field reads.
pub(super) fn list(
    schema: &Schema,
    from: RelationId,
    (wanted, page): (&List, &Page),
    program: &Program,
    sql: &mut SqlWriter,
) {
    let select = |sql: &mut SqlWriter| {
        sql.syntax("select");
        expressions(schema, program, " ", sql);
        raw_keys(schema, program, sql);
        sql.syntax(" from ");
        relation(schema, from, 0, sql);
        joins(schema, program, sql);
        condition(schema, from, &wanted.filter, " where ", sql);
    };
    let order = |sql: &mut SqlWriter| {
        page::order(schema.relation(from), &wanted.order, page.given, sql);
    };
    page::write(page, sql, select, order);
}
