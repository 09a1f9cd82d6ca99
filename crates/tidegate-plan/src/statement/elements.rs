//! What stands in an array that carries the values of one column for many rows.

use tidegate_sql::statement::SqlWriter;
use tidegate_sql::{Type, TypeKind};

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
    /// Those for rows that are written. An array of arrays would be one array of more dimensions.
    /// Constraints of domains and lengths are checked where the value is stored.
    pub(super) fn of(r#type: &'t Type) -> Self {
        let r#type = base(r#type);
        match r#type.kind() {
            TypeKind::Array(_) => Self::Texts(r#type),
            _ => Self::Values(r#type),
        }
    }

    /// Those for keys that are joined. `unnest` would make a column of each part of a composite
    /// value.
    pub(super) fn of_key(r#type: &'t Type) -> Self {
        match Self::of(r#type) {
            Self::Values(r#type) if matches!(r#type.kind(), TypeKind::Composite(_)) => {
                Self::Texts(r#type)
            }
            elements => elements,
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
