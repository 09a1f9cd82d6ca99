//! What stands in an array that carries the values of one column for many rows.

use tidegate_sql::statement::SqlWriter;
use tidegate_values::{Type, TypeKind, array_delimiter};

use super::type_name;
use crate::row::base;

/// The elements of such an array.
pub(super) enum Elements<'t> {
    /// The values, of this type.
    Values(&'t Type),
    /// The texts of values of this type.
    Texts(&'t Type),
}

impl<'t> Elements<'t> {
    /// The elements for a column. An array of arrays would be one array of more dimensions,
    /// `unnest` makes a column of each attribute of a composite value, and elements of some types
    /// are not separated by commas. Constraints of domains and lengths are checked where the value
    /// is stored.
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
