//! The values that columns are compared with, as SQL takes them.

use std::borrow::Cow;

use tidegate_values::{Parameter, Type};

use crate::family::{Family, base, is_citext};
use crate::json::{Json, write_string};
use crate::operator::Operator;
use crate::read::{is_range_text, part};

/// The value of an operator as SQL takes it, and its type.
pub(super) fn operand<'t>(
    r#type: &'t Type,
    operator: Operator,
    json: &Json<'_>,
) -> (Parameter, &'t Type) {
    let family = Family::of(r#type);
    let text = |prefix: &str, suffix: &str| {
        let text = json.string(&"").unwrap_or_default();
        Parameter::Text(format!("{prefix}{}{suffix}", literal(&text)).into())
    };
    match operator {
        Operator::StartsWith => (text("", "%"), pattern_type(r#type)),
        Operator::EndsWith => (text("%", ""), pattern_type(r#type)),
        Operator::Contains if family == Family::Text => (text("%", "%"), pattern_type(r#type)),
        Operator::Like | Operator::ILike | Operator::Regex | Operator::IRegex => {
            (json.parameter(), pattern_type(r#type))
        }
        Operator::Overlaps if family == Family::Jsonb => (json.parameter(), &Type::TEXT_ARRAY),
        _ => match part(r#type, operator, json) {
            Some(part) => (json.parameter(), part),
            None if family == Family::Multirange => (multirange(json), base(r#type)),
            None => (json.parameter(), compared_type(r#type)),
        },
    }
}

/// A single range as a multirange of one.
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

/// A list of documents as a list of their texts. In an array of jsonb itself, null would be SQL NULL
/// instead of the JSON null.
pub(super) fn documents(list: &Json<'_>) -> Parameter {
    let elements = list.elements(&"").unwrap_or_default();
    let texts = elements.iter().map(|element| {
        let mut text = String::new();
        write_string(&element.text(), &mut text);
        Json::from(text)
    });
    Json::List(texts.collect()).parameter()
}

/// A text in which `%`, `_` and the backslash stand for themselves.
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

/// The type of a value that is compared with a column. The input of a domain checks its
/// constraints and that of `name` cuts off, which would refuse or change what is only compared.
pub(super) fn compared_type(r#type: &Type) -> &Type {
    match base(r#type) {
        &Type::VARCHAR | &Type::NAME => &Type::TEXT,
        base => base,
    }
}

/// The type of a pattern.
fn pattern_type(r#type: &Type) -> &Type {
    match base(r#type) {
        citext if is_citext(citext) => citext,
        _ => &Type::TEXT,
    }
}
