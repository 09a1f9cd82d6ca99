//! Rejects numbers and booleans where text is expected, because PostgreSQL would accept their JSON
//! as text.

use tidegate_catalog::model::Column;
use tidegate_values::json::JsonKind;
use tidegate_values::{Type, TypeKind, base_type};

use super::path::Path;
use crate::error::{Error, Result};
use crate::json::Json;
use crate::operator::Operator;
use crate::type_class::{TypeClass, written};

/// The kind of the first boolean or number in a value for a column of text or of an array of text;
/// `None` if there is none, and for other columns. If the column belongs to the primary key
/// (`is_key`), a number is an `ID` and is accepted.
pub fn non_text_kind(column: &Column, is_key: bool, value: &Json<'_>) -> Option<JsonKind> {
    let r#type = &column.r#type;
    if !is_text(innermost(r#type)) {
        return None;
    }
    let is_list = matches!(base_type(r#type).kind(), TypeKind::Array(_));
    // An array for a column of text, or a scalar for an array, is rejected by other checks.
    (is_list == (value.kind() == JsonKind::Array))
        .then(|| first_non_text(value, is_key))
        .flatten()
}

/// Checks that the value of an operator has text where text is expected.
pub(super) fn check(
    column: &Column,
    is_key: bool,
    operator: Operator,
    value: &Json<'_>,
    path: &Path<'_>,
) -> Result<()> {
    let refuse = |value: &Json<'_>, path: &Path<'_>| {
        let Some(found) = non_text_kind(column, is_key, value) else {
            return Ok(());
        };
        Err(Error::WrongKind {
            place: path.to_string(),
            found,
            expected: format!("a string ({})", written(&column.r#type)),
        })
    };
    if !matches!(operator, Operator::In | Operator::NotIn) {
        return refuse(value, path);
    }
    let mut elements = value.elements(path)?.into_iter().enumerate();
    elements.try_for_each(|(at, element)| refuse(&element, &Path::Element(path, at)))
}

/// The kind of the first boolean or number in the value, which may be an array of any dimensions;
/// `None` if there is none.
fn first_non_text(value: &Json<'_>, is_key: bool) -> Option<JsonKind> {
    match value.kind() {
        JsonKind::Number if is_key => None,
        kind @ (JsonKind::Number | JsonKind::Bool) => Some(kind),
        JsonKind::Array => {
            let elements = value.elements(&"").unwrap_or_default();
            elements
                .iter()
                .find_map(|element| first_non_text(element, is_key))
        }
        _ => None,
    }
}

/// Whether numbers are rejected for the type: text types, and types whose text may look like a
/// number.
fn is_text(r#type: &Type) -> bool {
    let looks_so = matches!(
        *r#type,
        Type::BIT | Type::VARBIT | Type::TS_VECTOR | Type::TSQUERY
    );
    looks_so || TypeClass::of(r#type) == TypeClass::Text
}

fn innermost(r#type: &Type) -> &Type {
    match r#type.kind() {
        TypeKind::Domain(inner) | TypeKind::Array(inner) => innermost(inner),
        _ => r#type,
    }
}
