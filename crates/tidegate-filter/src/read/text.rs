//! Booleans where a text is wanted. PostgreSQL would take their names for texts.

use tidegate_sql::json::JsonKind;
use tidegate_sql::{Type, TypeKind};

use super::path::Path;
use crate::error::{Error, Result};
use crate::family::{Family, base, written};
use crate::json::Json;
use crate::operator::Operator;

/// Whether a value for a column of texts, or of arrays of them, holds a boolean instead of one.
/// False for other columns.
pub fn has_boolean_for_text(r#type: &Type, value: &Json<'_>) -> bool {
    if Family::of(innermost(r#type)) != Family::Text {
        return false;
    }
    let is_list = matches!(base(r#type).kind(), TypeKind::Array(_));
    // An array for a text, and no array for an array of them, is wrong in another way.
    is_list == (value.kind() == JsonKind::Array) && has_boolean(value)
}

/// Checks the value of an operator.
pub(super) fn check(
    r#type: &Type,
    operator: Operator,
    value: &Json<'_>,
    path: &Path<'_>,
) -> Result<()> {
    let refuse = |value: &Json<'_>, path: &Path<'_>| {
        if !has_boolean_for_text(r#type, value) {
            return Ok(());
        }
        Err(Error::WrongKind {
            place: path.to_string(),
            found: JsonKind::Bool,
            expected: format!("a string ({})", written(r#type)),
        })
    };
    if !matches!(operator, Operator::In | Operator::NotIn) {
        return refuse(value, path);
    }
    let mut elements = value.elements(path)?.into_iter().enumerate();
    elements.try_for_each(|(at, element)| refuse(&element, &Path::Element(path, at)))
}

/// Whether it is a boolean, or an array, whatever its dimensions, with one.
fn has_boolean(value: &Json<'_>) -> bool {
    match value.kind() {
        JsonKind::Bool => true,
        JsonKind::Array => {
            let elements = value.elements(&"").unwrap_or_default();
            elements.iter().any(|element| has_boolean(element))
        }
        _ => false,
    }
}

fn innermost(r#type: &Type) -> &Type {
    match r#type.kind() {
        TypeKind::Domain(inner) | TypeKind::Array(inner) => innermost(inner),
        _ => r#type,
    }
}
