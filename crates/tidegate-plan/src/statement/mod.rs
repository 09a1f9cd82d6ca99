//! Writes the SQL of operations. Every name is quoted and qualified. Every value is a parameter,
//! except for some limits ([`Page::has_parameters`], [`Limit::Shared`]). Therefore operations of
//! equal structure have few different SQL texts.

mod aggregate;
mod elements;
mod insert;
mod layout;
mod name;
mod nested;
mod overflow;
mod page;
mod parents;
mod raw_keys;
mod update;

use tidegate_catalog::{RelationId, Schema};
use tidegate_filter::{Alias, Filter};
use tidegate_sql::statement::SqlWriter;

use crate::row::{Expression, Program};

pub(crate) use aggregate::aggregate;
pub(crate) use insert::{InsertGroup, groups, insert, locate, require_given, require_text};
pub(crate) use layout::Layout;
use name::{cast, column, joined_by, referenced, relation, type_name};
pub(crate) use nested::{Limit, NestedLevel, has_equal_bytes, nested};
pub(crate) use page::{Page, is_single, number};
pub(crate) use parents::{ParentLevel, Parents};
pub(crate) use update::{delete, locate_new, update};

/// Appends the columns that a program reads, in their order. `separator` comes before the first
/// one.
fn expressions(
    schema: &Schema,
    program: &Program,
    mut separator: &'static str,
    sql: &mut SqlWriter,
) {
    for at in 0..program.expressions.len() {
        sql.syntax(separator);
        separator = ", ";
        expression(schema, program, at, sql);
    }
}

/// Appends the column with the index `at` in [`Program::expressions`].
fn expression(schema: &Schema, program: &Program, at: usize, sql: &mut SqlWriter) {
    match program.expressions[at] {
        Expression::Column {
            table,
            column,
            cast: to,
        } => {
            let relation = schema.relation(program.tables[table]);
            name::column(table, &relation.column(column).name, sql);
            cast(to, sql);
        }
        Expression::Count => {
            sql.syntax("pg_catalog.count(*)");
        }
        Expression::Function {
            function,
            column,
            cast: to,
        } => {
            let column = schema.relation(program.tables[0]).column(column);
            aggregate::call(function, &column.r#type, sql);
            name::column(0, &column.name, sql);
            sql.syntax(")");
            cast(to, sql);
        }
    }
}

/// Appends the joins of a program.
fn joins(schema: &Schema, program: &Program, sql: &mut SqlWriter) {
    for join in &program.joins {
        let target = program.tables[join.to];
        sql.syntax(" left join ");
        referenced(schema, target, join.to, sql);
        sql.syntax(" on ");
        let (from, to) = (
            schema.relation(program.tables[join.from]),
            schema.relation(target),
        );
        let relationship = from.relationship(join.relationship);
        let columns = relationship.columns.iter();
        for (at, (here, there)) in columns.zip(&relationship.target_columns).enumerate() {
            if at > 0 {
                sql.syntax(" and ");
            }
            let (here, there) = (from.column(*here), to.column(*there));
            column(join.to, &there.name, sql);
            joined_by(there, here, sql);
            column(join.from, &here.name, sql);
        }
    }
}

/// Appends `word`, such as ` where `, and a condition on `t0`, unless the condition is empty.
fn condition(
    schema: &Schema,
    relation: RelationId,
    filter: &Filter,
    word: &'static str,
    sql: &mut SqlWriter,
) {
    if !filter.is_empty() {
        sql.syntax(word);
        filter.write(sql, schema, relation, Alias("t", 0));
    }
}

/// Appends the `returning` clause. A write whose program reads no column returns a constant for
/// each row, so that the rows are counted.
fn returning(schema: &Schema, program: &Program, sql: &mut SqlWriter) {
    sql.syntax(" returning ");
    if program.expressions.is_empty() {
        sql.syntax("1");
    }
    expressions(schema, program, "", sql);
}
