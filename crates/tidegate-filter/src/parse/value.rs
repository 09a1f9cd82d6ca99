//! Checks whether a value can be compared with a column. Not every invalid value is found here.
//! PostgreSQL rejects the others when the statement runs.

use bytes::BytesMut;
use tidegate_catalog::model::Column;
use tidegate_values::json::JsonKind;
use tidegate_values::{Parameter, Type, TypeKind, base_type, parameter};

use super::path::Path;
use crate::error::{Error, Result};
use crate::json::Json;
use crate::operator::Operator;
use crate::type_class::{TypeClass, written};

/// Checks that the value of an operator fits the column's type.
pub(super) fn check(
    r#type: &Type,
    operator: Operator,
    value: &Json<'_>,
    path: &Path<'_>,
) -> Result<()> {
    let family = TypeClass::of(r#type);
    match operator {
        Operator::In | Operator::NotIn => {
            let elements = value.elements(path)?.into_iter().enumerate();
            for (index, element) in elements {
                if !element.is_null() {
                    single(r#type, &element, &Path::Element(path, index))?;
                }
            }
            Ok(())
        }
        Operator::Like | Operator::ILike => pattern(value, path),
        Operator::StartsWith | Operator::EndsWith | Operator::Regex | Operator::IRegex => {
            value.string(path).map(drop)
        }
        Operator::Contains if family == TypeClass::Text => value.string(path).map(drop),
        Operator::Overlaps if family == TypeClass::Jsonb => {
            for (index, element) in value.elements(path)?.into_iter().enumerate() {
                element.string(&Path::Element(path, index))?;
            }
            Ok(())
        }
        Operator::Contains | Operator::ContainedBy | Operator::Overlaps => {
            match contained_element_type(r#type, operator, value) {
                Some(element) => single(element, value, path),
                None => single(r#type, value, path),
            }
        }
        _ => single(r#type, value, path),
    }
}

/// The element type of a range or multirange, if the operator is `contains` and `value` is a single
/// element: any value except an object, an array and the text of a range. `None` for other types,
/// operators and values.
pub(crate) fn contained_element_type<'t>(
    r#type: &'t Type,
    operator: Operator,
    value: &Json<'_>,
) -> Option<&'t Type> {
    let (TypeKind::Range(point) | TypeKind::Multirange(point)) = base_type(r#type).kind() else {
        return None;
    };
    let single = match value.kind() {
        JsonKind::Object | JsonKind::Array => false,
        JsonKind::String => !is_range_text(&value.text()),
        _ => true,
    };
    (operator == Operator::Contains && single).then_some(point)
}

/// Whether `json` begins like the text of a range or multirange, with or without the opening quote
/// of a JSON string.
pub(crate) fn is_range_text(json: &str) -> bool {
    let text = json.trim_start_matches('"').trim_start();
    text.starts_with(['[', '(', '{'])
        || text
            .get(..5)
            .is_some_and(|word| word.eq_ignore_ascii_case("empty"))
}

/// Checks that a pattern does not end in an incomplete escape.
fn pattern(value: &Json<'_>, path: &Path<'_>) -> Result<()> {
    let text = value.string(path)?;
    let backslashes = text.bytes().rev().take_while(|byte| *byte == b'\\').count();
    if backslashes % 2 == 1 {
        return Err(Error::InvalidValue {
            place: path.to_string(),
            expected: "pattern".to_owned(),
            problem: "it ends with a backslash that escapes nothing".to_owned(),
        });
    }
    Ok(())
}

/// Checks one value, which must not be null.
fn single(r#type: &Type, value: &Json<'_>, path: &Path<'_>) -> Result<()> {
    let kind = value.kind();
    let expected =
        |expected: &str| Err(value.not(path, format!("{expected} ({})", written(r#type))));
    if kind == JsonKind::Null {
        return Err(value.not(
            path,
            "a value: only `eq`, `neq` and the elements of `in` and `nin` can be null",
        ));
    }
    match (TypeClass::of(r#type), kind) {
        (TypeClass::Boolean, JsonKind::Bool)
        | (
            TypeClass::Float | TypeClass::Numeric | TypeClass::Money | TypeClass::Text,
            JsonKind::Number,
        )
        | (TypeClass::Other, JsonKind::Number | JsonKind::Bool)
        | (TypeClass::Jsonb, _) => Ok(()),
        (TypeClass::Integer(least, most), JsonKind::Number) => {
            integer(&value.text(), least, most, r#type, path)
        }
        (_, JsonKind::String) => string(r#type, value, path),
        (TypeClass::Array | TypeClass::Multirange, JsonKind::Array)
        | (
            TypeClass::Range | TypeClass::Composite | TypeClass::Interval | TypeClass::Other,
            JsonKind::Object,
        )
        | (TypeClass::Geometric(_), JsonKind::Object | JsonKind::Array) => {
            encodable(r#type, value, path)
        }
        (TypeClass::Multirange, JsonKind::Object) => {
            let listed = Json::List(vec![value.clone()]);
            encodable(r#type, &listed, path)
        }
        (TypeClass::Boolean, _) => expected("true or false"),
        (TypeClass::Integer(..), _) => expected("an integer"),
        (TypeClass::Float | TypeClass::Numeric | TypeClass::Money, _) => expected("a number"),
        (TypeClass::Array, _) => expected("an array"),
        (TypeClass::Range, _) => expected("an object with `lower` and `upper`"),
        (TypeClass::Multirange, _) => expected("an array of ranges"),
        (TypeClass::Composite | TypeClass::Interval | TypeClass::Geometric(_), _) => {
            expected("an object or a string")
        }
        (TypeClass::Other, _) => expected("a string or a number"),
        _ => expected("a string"),
    }
}

/// Checks that `tidegate_values` can encode the value, with its members and elements, in the text
/// form of the type.
fn encodable(r#type: &Type, value: &Json<'_>, path: &Path<'_>) -> Result<()> {
    let value = Parameter::Json(value.text().into());
    let place = || path.to_string();
    parameter::encode(
        &value,
        base_type(r#type),
        None,
        &place,
        &mut BytesMut::new(),
    )
    .map(drop)
    .map_err(|error| Error::of_value(error, path))
}

/// Checks that a string can be the text of a value. For a type without a check of its own, every
/// string is accepted.
fn string(r#type: &Type, value: &Json<'_>, path: &Path<'_>) -> Result<()> {
    let text = value.string(path)?;
    let word = text.trim();
    let fits = match TypeClass::of(r#type) {
        TypeClass::Boolean => is_boolean(word),
        TypeClass::Integer(least, most) => return integer(word, least, most, r#type, path),
        TypeClass::Float | TypeClass::Numeric => is_number(word),
        TypeClass::Uuid => {
            word.bytes().filter(u8::is_ascii_hexdigit).count() == 32
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() || b"-{}".contains(&byte))
        }
        TypeClass::Array => word.starts_with(['{', '[']),
        TypeClass::Range | TypeClass::Multirange => is_range_text(word),
        TypeClass::Bytes => return encodable(r#type, value, path),
        _ => true,
    };
    if fits {
        return Ok(());
    }
    Err(invalid(r#type, path, format!("{}", value.text())))
}

fn invalid(r#type: &Type, path: &Path<'_>, problem: String) -> Error {
    Error::InvalidValue {
        place: path.to_string(),
        expected: written(r#type),
        problem,
    }
}

/// Checks that a text is an integer in the range of its type.
fn integer(text: &str, least: i64, most: i64, r#type: &Type, path: &Path<'_>) -> Result<()> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        if is_newer_number(digits) {
            return Ok(());
        }
        return Err(invalid(r#type, path, format!("{text} is not an integer")));
    }
    match text.parse::<i64>() {
        Ok(number) if (least..=most).contains(&number) => Ok(()),
        _ => Err(invalid(
            r#type,
            path,
            format!("{text} is not between {least} and {most}"),
        )),
    }
}

/// Whether a text is a word that PostgreSQL's input function `boolin` accepts, or an unambiguous
/// prefix of one.
fn is_boolean(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let prefix = |word: &str, least: usize| text.len() >= least && word.starts_with(&text);
    ["true", "false", "yes", "no"]
        .iter()
        .any(|word| prefix(word, 1))
        || prefix("on", 2)
        || prefix("off", 2)
        || text == "1"
        || text == "0"
}

/// Whether a text is a decimal number, NaN, an infinity, or a number in a form that only PostgreSQL
/// 16 and later accept.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let word = digits.to_ascii_lowercase();
    matches!(&*word, "nan" | "inf" | "infinity") || is_newer_number(digits) || is_decimal(digits)
}

/// Whether a text is a decimal number such as `1`, `1.5`, `.5` or `1.`, with or without an
/// exponent.
fn is_decimal(text: &str) -> bool {
    let (number, exponent) = match text.split_once(['e', 'E']) {
        // PostgreSQL reads the exponent with `strtol`, which skips leading blanks.
        Some((number, exponent)) => (number, Some(exponent.trim_start())),
        None => (text, None),
    };
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let exponent = exponent.map(|exponent| exponent.strip_prefix(['-', '+']).unwrap_or(exponent));
    !(whole.is_empty() && fraction.is_empty())
        && all_digits(whole)
        && all_digits(fraction)
        && exponent.is_none_or(|digits| !digits.is_empty() && all_digits(digits))
}

/// Whether a text looks like a number that only PostgreSQL 16 and later accept, such as `0x1F` or
/// `1_000`.
fn is_newer_number(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.+-".contains(&byte))
        && (text.contains('_')
            || matches!(
                text.as_bytes().get(..2),
                Some([b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B'])
            ))
}

/// The kind of the first boolean or number in `value`, for a column that takes only text or arrays
/// of text. `None` if `value` contains no boolean or number, or if the column takes other values.
/// If the column belongs to the primary key (`is_key`), numbers are accepted, because the column is
/// an `ID`.
pub fn non_text_kind(column: &Column, is_key: bool, value: &Json<'_>) -> Option<JsonKind> {
    let r#type = &column.r#type;
    if !is_text(innermost(r#type)) {
        return None;
    }
    let is_list = matches!(base_type(r#type).kind(), TypeKind::Array(_));
    // A column of arrays is checked only if the value is an array, and any other column only if the
    // value is not an array. Other checks reject the other combinations.
    (is_list == (value.kind() == JsonKind::Array))
        .then(|| first_non_text(value, is_key))
        .flatten()
}

/// Rejects a number or a boolean where the column takes text, because PostgreSQL would accept its
/// JSON as text.
pub(super) fn check_text(
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

/// The kind of the first boolean or number in `value`, or in its elements at any depth if it is an
/// array; `None` if there is none. If `is_key` is true, numbers are not counted.
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

/// Whether numbers and booleans are rejected for the type. They are rejected for text types, and
/// for types whose text may look like a number.
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
