//! Key columns without a cast to `text`, for the joins of child levels.

use tidegate_catalog::Schema;
use tidegate_catalog::model::Column;
use tidegate_sql::statement::SqlWriter;

use super::column;
use crate::row::{Expression, KeyKind, Program};

/// Appends the key columns of child levels without a cast, if the program selects them only as
/// text. The child levels join the rows by these columns.
pub(super) fn raw_keys(schema: &Schema, program: &Program, sql: &mut SqlWriter) {
    for child in &program.children {
        for expression in &program.expressions[child.key.clone()] {
            if let Some((table, known)) = as_text(schema, program, expression) {
                sql.syntax(", ");
                column(table, &known.name, sql);
            }
        }
    }
}

/// The index of the table in the program, and the column, if `expression` is a key column that the
/// program selects as text. `None` for an integer column, and for an expression that is not a
/// column.
pub(super) fn as_text<'s>(
    schema: &'s Schema,
    program: &Program,
    expression: &Expression,
) -> Option<(usize, &'s Column)> {
    let Expression::Column { table, column, .. } = *expression else {
        return None;
    };
    let column = schema.relation(program.tables[table]).column(column);
    (KeyKind::of(&column.r#type) == KeyKind::Text).then_some((table, column))
}
