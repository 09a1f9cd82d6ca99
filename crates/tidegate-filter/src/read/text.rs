//! Numbers and booleans where a text is wanted. PostgreSQL would take their digits and names for
//! texts.

use tidegate_catalog::model::Column;
use tidegate_values::json::JsonKind;
use tidegate_values::{Type, TypeKind};

use super::path::Path;
use crate::error::{Error, Result};
use crate::family::{Family, base, written};
use crate::json::Json;
use crate::operator::Operator;

/// What a value for a column of texts, or of arrays of them, holds instead of one: a boolean, or a
/// number, which is right where the column is part of the primary key (`is_key`) and so an ID.
/// `None` for other columns and where there is nothing of the kind.
pub fn no_text(column: &Column, is_key: bool, value: &Json<'_>) -> Option<JsonKind> {
    let r#type = &column.r#type;
    if !is_text(innermost(r#type)) {
        return None;
    }
    let is_list = matches!(base(r#type).kind(), TypeKind::Array(_));
    // An array for a text, and no array for an array of them, is wrong in another way.
    (is_list == (value.kind() == JsonKind::Array))
        .then(|| odd(value, is_key))
        .flatten()
}

/// Checks the value of an operator.
pub(super) fn check(
    (column, is_key): (&Column, bool),
    operator: Operator,
    value: &Json<'_>,
    path: &Path<'_>,
) -> Result<()> {
    let refuse = |value: &Json<'_>, path: &Path<'_>| {
        let Some(found) = no_text(column, is_key, value) else {
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

/// The first boolean or number of an array, whatever its dimensions, or the value itself.
fn odd(value: &Json<'_>, is_key: bool) -> Option<JsonKind> {
    match value.kind() {
        JsonKind::Number if is_key => None,
        kind @ (JsonKind::Number | JsonKind::Bool) => Some(kind),
        JsonKind::Array => {
            let elements = value.elements(&"").unwrap_or_default();
            elements.iter().find_map(|element| odd(element, is_key))
        }
        _ => None,
    }
}

/// Whether a number is no way to write the type's values: texts, and types whose text may look
/// like a number and is none.
fn is_text(r#type: &Type) -> bool {
    let looks_so = matches!(
        *r#type,
        Type::BIT | Type::VARBIT | Type::TS_VECTOR | Type::TSQUERY
    );
    looks_so || Family::of(r#type) == Family::Text
}

fn innermost(r#type: &Type) -> &Type {
    match r#type.kind() {
        TypeKind::Domain(inner) | TypeKind::Array(inner) => innermost(inner),
        _ => r#type,
    }
}
