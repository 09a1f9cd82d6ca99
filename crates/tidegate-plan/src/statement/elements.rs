//! Arrays that carry the values of one column for many rows.

use tidegate_sql::statement::SqlWriter;
use tidegate_values::{Type, TypeKind, array_delimiter};

use super::type_name;
use crate::row::base;

/// The elements of such an array.
pub(super) enum ArrayElements<'t> {
    /// The values, of this type.
    Values(&'t Type),
    /// The text forms of values of this type.
    Texts(&'t Type),
}

impl<'t> ArrayElements<'t> {
    /// The elements for a column. Text forms are needed because an array of arrays would be one
    /// array with more dimensions, because `unnest` turns each attribute of a composite value into
    /// a column, and because some types do not separate array elements by commas. Domain
    /// constraints and lengths are checked when the value is stored.
    pub(super) fn of(r#type: &'t Type) -> Self {
        let r#type = base(r#type);
        match r#type.kind() {
            TypeKind::Array(_) | TypeKind::Composite(_) => Self::Texts(r#type),
            _ if array_delimiter(r#type) != b',' => Self::Texts(r#type),
            _ => Self::Values(r#type),
        }
    }

    /// Appends the type of the array.
    pub(super) fn write(&self, sql: &mut SqlWriter) {
        match self {
            Self::Values(r#type) => type_name(r#type, sql),
            Self::Texts(_) => {
                sql.syntax("pg_catalog.text");
            }
        }
        sql.syntax("[]");
    }
}
