//! How the values of a column are asked for, and which form they take (`docs/API.md`, GraphQL).

use tidegate_catalog::{ColumnId, Relation};
use tidegate_values::{Type, TypeKind, is_spatial};

use crate::Segment;

/// NaN and the infinities have no number in JSON.
pub(super) const NO_NUMBER: &str = "the number is NaN or infinite, which GraphQL cannot show";

/// What could not be shown: where inside the value, and why.
pub(super) type Inner = (Vec<Segment>, &'static str);

/// What a column is cast to, so that its values come in a form that GraphQL shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// Nothing.
    None,
    /// `text`: PostgreSQL's own text of values that GraphQL has no form for.
    Text,
    /// `text[]`: the same for each element.
    TextArray,
}

/// The cast of a column's values.
pub(crate) fn cast(relation: &Relation, column: ColumnId) -> Cast {
    let r#type = base(&relation.column(column).r#type);
    if relation.is_key(column) {
        return identifier(r#type);
    }
    value(r#type)
}

/// A type below its domains.
pub(crate) fn base(r#type: &Type) -> &Type {
    match r#type.kind() {
        TypeKind::Domain(inner) => base(inner),
        _ => r#type,
    }
}

/// A primary key's column is an `ID`: one string, whatever it is made of.
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

/// The cast of values that are no identifiers.
fn value(r#type: &Type) -> Cast {
    if is_single(r#type) {
        return Cast::None;
    }
    match r#type.kind() {
        TypeKind::Array(_) if matches!(*r#type, Type::INT2_VECTOR | Type::OID_VECTOR) => Cast::Text,
        TypeKind::Array(element) if is_single(base(element)) => Cast::None,
        TypeKind::Array(_) => Cast::TextArray,
        _ => Cast::Text,
    }
}

/// Whether one value has a form of its own.
fn is_single(r#type: &Type) -> bool {
    match r#type.kind() {
        TypeKind::Simple => has_form(r#type),
        TypeKind::Enum(_) | TypeKind::Composite(_) | TypeKind::Multirange(_) => true,
        TypeKind::Range(_) => is_object_range(r#type),
        _ => false,
    }
}

/// Whether the values of a simple type have a form of their own.
fn has_form(r#type: &Type) -> bool {
    !matches!(r#type.name(), "unknown" | "record")
}

/// The geometric types: objects and lists of them.
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
