//! The operands of comparisons in SQL.

use std::borrow::Cow;

use tidegate_values::{Parameter, Type, base_type};

use crate::json::{Json, write_string};
use crate::operator::Operator;
use crate::parse::{contained_element_type, is_range_text};
use crate::type_class::{TypeClass, is_citext};

/// The operand in the form that SQL needs, and the operand's type.
pub(super) fn operand<'t>(
    r#type: &'t Type,
    operator: Operator,
    json: &Json<'_>,
) -> (Parameter, &'t Type) {
    let family = TypeClass::of(r#type);
    let text = |prefix: &str, suffix: &str| {
        let text = json.string(&"").unwrap_or_default();
        Parameter::Text(format!("{prefix}{}{suffix}", literal(&text)).into())
    };
    match operator {
        Operator::StartsWith => (text("", "%"), pattern_type(r#type)),
        Operator::EndsWith => (text("%", ""), pattern_type(r#type)),
        Operator::Contains if family == TypeClass::Text => (text("%", "%"), pattern_type(r#type)),
        Operator::Like | Operator::ILike | Operator::Regex | Operator::IRegex => {
            (json.parameter(), pattern_type(r#type))
        }
        Operator::Overlaps if family == TypeClass::Jsonb => (json.parameter(), &Type::TEXT_ARRAY),
        _ => match contained_element_type(r#type, operator, json) {
            Some(element) => (json.parameter(), element),
            None if family == TypeClass::Multirange => (multirange(json), base_type(r#type)),
            None => (json.parameter(), compared_type(r#type)),
        },
    }
}

/// Wraps a single range in a multirange, which the operators need.
fn multirange(json: &Json<'_>) -> Parameter {
    let text = json.text();
    if text.starts_with('{') {
        return Parameter::Json(format!("[{text}]").into());
    }
    match json.string(&"") {
        Ok(range) if is_range_text(&range) && !range.trim_start().starts_with('{') => {
            Parameter::Text(format!("{{{range}}}").into())
        }
        _ => json.parameter(),
    }
}

/// A list of JSON documents as an array of text. In an array of jsonb, the JSON null would become
/// SQL NULL.
pub(super) fn documents(list: &Json<'_>) -> Parameter {
    let elements = list.elements(&"").unwrap_or_default();
    let texts = elements.iter().map(|element| {
        let mut text = String::new();
        write_string(&element.text(), &mut text);
        Json::from(text)
    });
    Json::List(texts.collect()).parameter()
}

/// Escapes `%`, `_` and the backslash of a `LIKE` pattern.
fn literal(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '_', '\\']) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        if matches!(character, '%' | '_' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    Cow::Owned(escaped)
}

/// The type to which a compared value is cast. A domain gives its base type, because a cast to the
/// domain would check its constraints. `name` gives `text`, because a cast to `name` would
/// truncate. `varchar` gives `text` too, because it has no operators of its own.
pub(super) fn compared_type(r#type: &Type) -> &Type {
    match base_type(r#type) {
        &Type::VARCHAR | &Type::NAME => &Type::TEXT,
        base => base,
    }
}

/// The type of a pattern for a column of this type.
fn pattern_type(r#type: &Type) -> &Type {
    match base_type(r#type) {
        citext if is_citext(citext) => citext,
        _ => &Type::TEXT,
    }
}
