//! The operands and parameters of comparisons in SQL.

use std::borrow::Cow;

use tidegate_catalog::Relation;
use tidegate_catalog::model::Column;
use tidegate_values::{Parameter, Type, base_type};

use crate::filter::Comparison;
use crate::json::{Json, write_string};
use crate::operator::Operator;
use crate::parse::{contained_element_type, is_range_text};
use crate::type_class::{TypeClass, is_citext, number_type};

impl Comparison {
    /// The value of the comparison as JSON.
    pub(crate) fn json(&self) -> Json<'_> {
        match &self.value {
            Parameter::Null => Json::NULL,
            Parameter::Json(json) => Json::from(&**json),
            Parameter::Text(text) => {
                let mut json = String::with_capacity(text.len() + 2);
                write_string(text, &mut json);
                Json::from(json)
            }
        }
    }

    /// The number of parameters that the comparison has in SQL.
    pub(crate) fn parameters(&self, relation: &Relation) -> usize {
        match self.operator {
            Operator::IsNull | Operator::IsNotNull => 0,
            Operator::In | Operator::NotIn if self.is_listed_singly(relation) => self
                .json()
                .elements(&self.place)
                .map_or(0, |elements| elements.len()),
            _ => 1,
        }
    }

    /// The operand of an operator that takes no list, and the operand's type.
    pub(super) fn operand<'c>(&self, column: &'c Column) -> (Parameter, &'c Type) {
        if self.number {
            (self.value.clone(), number_type(&column.r#type))
        } else {
            operand(&column.r#type, self.operator, &self.json())
        }
    }

    /// The parameter of the comparison. The comparison must have exactly one, and the column's
    /// values must not be JSON documents.
    pub(crate) fn parameter(&self, relation: &Relation) -> Parameter {
        match self.operator {
            Operator::In | Operator::NotIn => self.value.clone(),
            _ => self.operand(relation.column(self.column)).0,
        }
    }

    /// Whether each element of a list is a separate parameter. This is so in a list of arrays,
    /// because PostgreSQL reads an array of arrays as one array with more dimensions.
    pub(super) fn is_listed_singly(&self, relation: &Relation) -> bool {
        TypeClass::of(&relation.column(self.column).r#type) == TypeClass::Array
    }
}

/// The operand in the form that SQL needs, and the operand's type.
fn operand<'t>(r#type: &'t Type, operator: Operator, json: &Json<'_>) -> (Parameter, &'t Type) {
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

/// Wraps a single range in a multirange, because the operand is cast to the type of the column.
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

/// A list of JSON documents as a parameter of type `text[]`. In a parameter of type `jsonb[]`, the
/// JSON null would become SQL NULL.
pub(super) fn documents(list: &Json<'_>) -> Parameter {
    let elements = list.elements(&"").unwrap_or_default();
    let texts = elements.iter().map(|element| {
        let mut text = String::new();
        write_string(&element.text(), &mut text);
        Json::from(text)
    });
    Json::List(texts.collect()).parameter()
}

/// Escapes `%`, `_` and the backslash, so that a `LIKE` pattern matches them literally.
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

/// The type to which a value is cast in a comparison with a column of the type `r#type`. For a
/// domain, this is the base type, because a cast to the domain would check its constraints. For
/// `name`, it is `text`, because a cast to `name` would truncate the value. For `varchar`, it is
/// `text`, because `varchar` has no operators of its own.
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
