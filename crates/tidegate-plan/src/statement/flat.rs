//! A short root list with the lists below its rows, in one statement.

use tidegate_catalog::{RelationId, Schema};
use tidegate_sql::BoundStatement;
use tidegate_sql::statement::{Kind, SqlWriter};

use super::{Children, Page, column, expressions, list, page};
use crate::operation::List;
use crate::row::{Expression, Program};

/// What is read of the rows above.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Above<'p, 'a> {
    pub(crate) relation: RelationId,
    pub(crate) list: &'p List,
    pub(crate) page: &'p Page,
    pub(crate) program: &'p Program<'a>,
}

/// The statement: each row above stands in front of those below it, so that its values come once.
/// The first column is true there and NULL below; then come the columns of both.
pub(crate) fn flat(above: &Above<'_, '_>, below: &Children<'_, '_>, each: &Page) -> BoundStatement {
    let mut sql = SqlWriter::new();
    let width = above.program.expressions.len();
    sql.syntax("select c.* from (");
    above.rows(below.schema, &mut sql);
    sql.syntax(") p(");
    for at in 0..width {
        sql.numbered("c", at).syntax(", ");
    }
    for at in 0..below.here.len() {
        sql.syntax(if at > 0 { ", " } else { "" }).numbered("k", at);
    }
    sql.syntax(") cross join lateral (select true");
    for at in 0..width {
        sql.numbered(", p.c", at);
    }
    nulls(below.program.expressions.len(), &mut sql);
    sql.syntax(" union all (");
    below.limited(each, Some(width), &mut sql);
    sql.syntax(")) c");
    sql.finish(Kind::Read)
}

/// Appends columns without values.
pub(super) fn nulls(count: usize, sql: &mut SqlWriter) {
    for _ in 0..count {
        sql.syntax(", null");
    }
}

impl Above<'_, '_> {
    /// Appends the rows above, with what the rows below them are found by at the end.
    fn rows(&self, schema: &Schema, sql: &mut SqlWriter) {
        let select = |sql: &mut SqlWriter| {
            sql.syntax("select");
            expressions(schema, self.program, " ", sql);
            for expression in self.program.key() {
                if let Expression::Column {
                    table, column: id, ..
                } = *expression
                {
                    let relation = schema.relation(self.program.tables[table]);
                    sql.syntax(", ");
                    column(table, &relation.column(id).name, sql);
                }
            }
            list::source(schema, self.relation, self.list, self.program, sql);
        };
        let order = |sql: &mut SqlWriter| {
            let relation = schema.relation(self.relation);
            page::order(relation, &self.list.order, self.page.given, sql);
        };
        page::write(self.page, sql, select, order);
    }
}
