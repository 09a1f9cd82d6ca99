//! Statements of aggregates.

use tidegate_catalog::{RelationId, Schema};
use tidegate_sql::BoundStatement;
use tidegate_sql::statement::{Kind, SqlWriter};
use tidegate_values::{Type, operator_schema};

use super::{column, condition, expressions, relation};
use crate::operation::{Aggregate, AggregateFunction};
use crate::row::Program;

/// The statement of an aggregate. It returns at most `fetched` groups.
pub(crate) fn aggregate(
    schema: &Schema,
    from: RelationId,
    wanted: &Aggregate,
    program: &Program,
    fetched: u64,
) -> BoundStatement {
    let mut sql = SqlWriter::new();
    sql.syntax("select");
    expressions(schema, program, " ", &mut sql);
    sql.syntax(" from ");
    relation(schema, from, 0, &mut sql);
    condition(schema, from, &wanted.filter, " where ", &mut sql);
    let mut separator = " group by ";
    for id in &wanted.group_by {
        sql.syntax(separator);
        separator = ", ";
        column(0, &schema.relation(from).column(*id).name, &mut sql);
    }
    if wanted.group_by.is_empty() {
        // Without grouping columns, all rows are one group, even if there are no rows. `having`
        // makes PostgreSQL return this group even if no aggregate function is selected.
        sql.syntax(" having true");
    } else {
        let fetched = usize::try_from(fetched).unwrap_or(usize::MAX);
        sql.syntax(" limit ").numbered("", fetched);
    }
    sql.finish(Kind::Read)
}

/// Appends the start of the call of an aggregate function, up to and including the opening
/// parenthesis. For a type of an extension, the function is taken from the schema of the type. For
/// such a type, `pg_catalog` has no function, or only one that casts the values: `pg_catalog.min`
/// compares values of `citext` as `text`, with regard to case.
pub(super) fn call(function: AggregateFunction, r#type: &Type, sql: &mut SqlWriter) {
    match operator_schema(r#type) {
        "pg_catalog" => sql.syntax("pg_catalog"),
        schema => sql.identifier(schema),
    };
    sql.syntax(match function {
        AggregateFunction::Sum => ".sum(",
        AggregateFunction::Avg => ".avg(",
        AggregateFunction::Min => ".min(",
        AggregateFunction::Max => ".max(",
    });
}
