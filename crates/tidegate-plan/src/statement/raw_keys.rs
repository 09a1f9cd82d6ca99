//! Key columns without a cast to `text`, for the joins of child levels.

use tidegate_catalog::Schema;
use tidegate_catalog::model::Column;
use tidegate_sql::statement::SqlWriter;

use super::column;
use crate::row::{Expression, KeyKind, Program};

/// Appends the key columns for the joins of child levels, if the program selects these columns only
/// as text.
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

/// The column of a key that the program selects as text, and the index of its table in the program.
/// `None` if the key is an integer column or not a column.
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
