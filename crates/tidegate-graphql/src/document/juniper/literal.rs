//! Converts literals into [`Value`], and into literals that juniper's rules can check against the
//! API's schema. In both cases, numbers and strings in the input begin with the marker letter of
//! the parsing schema.

use std::collections::HashSet;

use juniper::{InputValue, SchemaType};

use super::Scalar;
use super::parsing_schema::{NUMBER, STRING};
use crate::document::Value;
use crate::field_type::takes_any_json;

/// Converts a literal into a [`Value`], without the marker letters. Numbers keep the digits that
/// were written.
pub(super) fn value(literal: &InputValue<Scalar>) -> Value {
    match literal {
        InputValue::Null => Value::Null,
        InputValue::Scalar(Scalar::Boolean(value)) => Value::Boolean(*value),
        InputValue::Scalar(Scalar::String(marked)) => match marked.strip_prefix(NUMBER) {
            Some(digits) => Value::Number(digits.into()),
            None => Value::String(marked.strip_prefix(STRING).unwrap_or(marked).into()),
        },
        // The parsing schema creates no other scalars.
        InputValue::Scalar(other) => Value::Number(other.to_string().into()),
        InputValue::Enum(name) => Value::Enum(name.as_str().into()),
        InputValue::Variable(name) => Value::Variable(name.as_str().into()),
        InputValue::List(items) => {
            Value::List(items.iter().map(|item| value(&item.item)).collect())
        }
        InputValue::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, member)| (name.item.as_str().into(), value(&member.item)))
                .collect(),
        ),
    }
}

/// Converts a literal so that juniper's rules can check it against a type. `named` is the name of
/// the innermost type, and `list` is whether the type is a list. Numbers and strings lose their
/// marker letter.
///
/// If the type takes any JSON, the literal becomes an empty string. If the type is a list, each
/// item of a list literal becomes an empty string instead. Null and variables are not replaced. The
/// names of variables inside replaced literals are added to `hidden`.
pub(super) fn adapt(
    literal: &mut InputValue<Scalar>,
    named: &str,
    list: bool,
    hidden: &mut HashSet<String>,
) {
    if takes_any_json(named) {
        return match literal {
            InputValue::List(items) if list => {
                for item in items {
                    json(&mut item.item, hidden);
                }
            }
            one => json(one, hidden),
        };
    }
    match literal {
        InputValue::Scalar(Scalar::String(marked)) => {
            let scalar = scalar(marked, named);
            *literal = InputValue::Scalar(scalar);
        }
        InputValue::List(items) => {
            for item in items {
                adapt(&mut item.item, named, list, hidden);
            }
        }
        InputValue::Object(members) => {
            for (_, member) in members {
                adapt(&mut member.item, named, list, hidden);
            }
        }
        _ => {}
    }
}

fn scalar(marked: &str, named: &str) -> Scalar {
    let Some(digits) = marked.strip_prefix(NUMBER) else {
        return Scalar::String(marked.strip_prefix(STRING).unwrap_or(marked).to_owned());
    };
    let whole = !digits.contains(['.', 'e', 'E']);
    match digits.parse::<i32>() {
        _ if named == "ID" && whole => Scalar::String(digits.to_owned()),
        Ok(number) if whole => Scalar::Int(number),
        // The number has a fraction or an exponent, or it is too large for `Int`, so only `Float`
        // accepts it.
        _ => Scalar::Float(digits.parse().unwrap_or(f64::INFINITY)),
    }
}

fn json(literal: &mut InputValue<Scalar>, hidden: &mut HashSet<String>) {
    match literal {
        InputValue::Null | InputValue::Variable(_) => {}
        other => {
            value(other).variables(&mut |name| {
                hidden.insert(name.to_owned());
            });
            *other = InputValue::Scalar(Scalar::String(String::new()));
        }
    }
}

/// The definitions of the arguments of a field or directive in the API's schema.
pub(super) type Arguments<'s> = &'s [juniper::meta::Argument<Scalar>];

/// The type of an argument: the name of the innermost type, and whether the type is a list. `None`
/// for an unknown argument.
pub(super) fn argument_type(arguments: Arguments<'_>, name: &str) -> Option<(String, bool)> {
    let argument = arguments.iter().find(|argument| argument.name == name)?;
    let list = argument.arg_type.to_string().starts_with('[');
    Some((argument.arg_type.innermost_name().to_owned(), list))
}

/// The definitions of the arguments of a directive; empty for an unknown directive.
pub(super) fn directive<'s>(schema: &'s SchemaType<Scalar>, name: &str) -> Arguments<'s> {
    schema
        .directive_by_name(name)
        .map_or(&[], |directive| &directive.arguments)
}
