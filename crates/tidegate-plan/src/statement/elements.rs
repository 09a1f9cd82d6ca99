//! Arrays that carry the values of one column for many rows.

use tidegate_sql::statement::SqlWriter;
use tidegate_values::{Type, TypeKind, array_delimiter, base_type};

use super::type_name;

/// The form of the elements in the array that carries the values of a column.
pub(super) enum ArrayElements<'t> {
    /// The elements are values of this type.
    Values(&'t Type),
    /// The elements are the texts of values of this type.
    Texts(&'t Type),
}

impl<'t> ArrayElements<'t> {
    /// The form of the elements for a column of a type. Three kinds of values are passed as text:
    ///
    /// - Arrays, because an array of arrays would be one array with more dimensions.
    /// - Composite values, because `unnest` would turn each attribute into a column.
    /// - Values of types that do not separate the elements of an array by commas.
    ///
    /// For a domain, the elements have its base type. PostgreSQL checks domain constraints and
    /// lengths when the value is stored.
    pub(super) fn of(r#type: &'t Type) -> Self {
        let r#type = base_type(r#type);
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
