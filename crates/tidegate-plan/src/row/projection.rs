//! How the values of a column are selected, and the form in which they are written (`docs/API.md`,
//! GraphQL).

use tidegate_catalog::{ColumnId, Relation};
use tidegate_values::{Type, TypeKind, base_type, is_spatial};

use crate::PathSegment;

/// The reason for a field error: JSON cannot represent NaN and the infinities.
pub(super) const NO_NUMBER: &str = "the number is NaN or infinite, which GraphQL cannot show";

/// A part of a column's value that GraphQL cannot represent: the path of the part within the value,
/// and the reason.
pub(super) type Inner = (Vec<PathSegment>, &'static str);

/// The cast that a statement applies to a column, so that the values have a form that GraphQL can
/// represent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// The column is selected without a cast.
    None,
    /// The column is cast to `text`, because its values have no GraphQL form.
    Text,
    /// The column is cast to `text[]`, because the elements of its arrays have no GraphQL form.
    TextArray,
}

pub(crate) fn cast(relation: &Relation, column: ColumnId) -> Cast {
    let r#type = base_type(&relation.column(column).r#type);
    if relation.is_key(column) {
        return identifier(r#type);
    }
    value(r#type)
}

/// The cast of a primary key column. The column is an `ID` in GraphQL, so its values must be
/// strings.
fn identifier(r#type: &Type) -> Cast {
    let plain = match r#type.kind() {
        TypeKind::Simple => {
            let object = matches!(*r#type, Type::JSON | Type::JSONB | Type::INTERVAL);
            !object && !has_parts(r#type) && !is_spatial(r#type) && has_form(r#type)
        }
        TypeKind::Enum(_) => true,
        _ => false,
    };
    if plain { Cast::None } else { Cast::Text }
}

/// The cast of a column that is not an `ID`.
fn value(r#type: &Type) -> Cast {
    if is_single(r#type) {
        return Cast::None;
    }
    match r#type.kind() {
        TypeKind::Array(_) if matches!(*r#type, Type::INT2_VECTOR | Type::OID_VECTOR) => Cast::Text,
        TypeKind::Array(element) if is_single(base_type(element)) => Cast::None,
        TypeKind::Array(_) => Cast::TextArray,
        _ => Cast::Text,
    }
}

/// Whether the values of the type are not arrays, and can be written without a cast to `text`.
fn is_single(r#type: &Type) -> bool {
    match r#type.kind() {
        TypeKind::Simple => has_form(r#type),
        TypeKind::Enum(_) | TypeKind::Composite(_) | TypeKind::Multirange(_) => true,
        TypeKind::Range(_) => is_object_range(r#type),
        _ => false,
    }
}

/// Whether the values of a simple type have a GraphQL form.
fn has_form(r#type: &Type) -> bool {
    !matches!(r#type.name(), "unknown" | "record")
}

/// Whether the type is geometric. Its values are objects or lists of objects.
pub(crate) fn has_parts(r#type: &Type) -> bool {
    matches!(
        *r#type,
        Type::POINT
            | Type::LINE
            | Type::LSEG
            | Type::BOX
            | Type::PATH
            | Type::POLYGON
            | Type::CIRCLE
    )
}

fn is_object_range(r#type: &Type) -> bool {
    matches!(
        *r#type,
        Type::INT4_RANGE
            | Type::INT8_RANGE
            | Type::NUM_RANGE
            | Type::TS_RANGE
            | Type::TSTZ_RANGE
            | Type::DATE_RANGE
    )
}
