//! Coerces input values: converts the JSON of a request to the types of the schema (GraphQL,
//! sections 3.5 and 6.1.2, "Coercing Variable Values").

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;
use tidegate_filter::Json;
use tidegate_values::json::{self, JsonKind};

use super::{Condition, InputType, Operation, Value};
use crate::error::{Code, Error, Errors};
use crate::field_type::takes_any_json;

/// The coerced variables of a request.
#[derive(Debug, Default)]
pub(crate) struct Variables<'a> {
    operation: Option<&'a Operation>,
    /// The values, by the index of the variable in the operation.
    values: Vec<Option<Json<'a>>>,
}

impl<'a> Variables<'a> {
    /// Coerces the values that a request gives for the variables of an operation to the types of
    /// the variables. Values for unknown variables are ignored.
    ///
    /// # Errors
    ///
    /// `BAD_USER_INPUT` for missing and invalid values.
    pub(crate) fn coerce(
        operation: &'a Operation,
        values: Option<&'a RawValue>,
    ) -> Result<Self, Vec<Error>> {
        if operation.variables.is_empty() {
            return Ok(Self::default());
        }
        let given = values.map(|values| json::members(values.get())).transpose();
        let given = given
            .map_err(|error| {
                vec![Error::input(format!(
                    "`variables`: {}",
                    json::problem(&error)
                ))]
            })?
            .unwrap_or_default();
        let given = VariableValues::new(given);
        let mut values = Vec::with_capacity(operation.variables.len());
        let mut errors = Errors::default();
        for variable in &operation.variables {
            if errors.is_full() {
                break;
            }
            let value = given.get(&variable.name);
            let value = match (value, &variable.default, &variable.r#type) {
                (Some(value), ..) => json(value.get(), &variable.r#type),
                (None, Some(default), r#type) => literal(default, r#type),
                (None, None, InputType::NonNull(_)) => Err("must be given".to_owned()),
                (None, None, _) => {
                    values.push(None);
                    continue;
                }
            };
            match value {
                Ok(value) => values.push(Some(value)),
                Err(problem) => {
                    let (name, r#type) = (&variable.name, &variable.r#type);
                    let message = format!("Variable `${name}` of type `{type}` {problem}");
                    errors.push(Error::input(message).at(variable.location));
                }
            }
        }
        errors.into_result()?;
        Ok(Self {
            operation: Some(operation),
            values,
        })
    }

    /// The value of a variable; `None` if the variable is unknown or has no value.
    pub(crate) fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.at(self.number(name)?)
    }

    /// The value of the variable with this index in the operation; `None` if the variable has no
    /// value.
    pub(crate) fn at(&self, number: usize) -> Option<&Json<'a>> {
        self.values.get(number)?.as_ref()
    }

    /// The index of a variable in the operation; `None` for an unknown variable.
    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.operation?.variable(name)
    }

    /// The value of a literal, with its variables replaced by their values; `None` if the literal
    /// is a variable without a value.
    ///
    /// # Errors
    ///
    /// If a variable inside a list or object has no value, and `missing` is [`Missing::Refuse`].
    pub(crate) fn value(
        &self,
        value: &'a Value,
        missing: Missing,
    ) -> Result<Option<Json<'a>>, Error> {
        Ok(Some(match value {
            Value::Null => Json::NULL,
            Value::Boolean(true) => Json::from("true"),
            Value::Boolean(false) => Json::from("false"),
            Value::Number(digits) => Json::from(&**digits),
            // For a type that takes any JSON, a name such as `desc` in `orderBy: {name: desc}`
            // becomes a string.
            Value::String(text) | Value::Enum(text) => string(text),
            Value::Variable(name) => return Ok(self.get(name).cloned()),
            Value::List(items) => {
                let items = items
                    .iter()
                    .map(|item| Ok(self.inner(item, missing)?.unwrap_or(Json::NULL)));
                Json::List(items.collect::<Result<_, Error>>()?)
            }
            Value::Object(members) => {
                let members = members.iter().filter_map(|(name, member)| {
                    let value = self.inner(member, missing).transpose()?;
                    Some(value.map(|value| (Cow::Borrowed(&**name), value)))
                });
                Json::Object(members.collect::<Result<_, Error>>()?)
            }
        }))
    }

    fn inner(&self, value: &'a Value, missing: Missing) -> Result<Option<Json<'a>>, Error> {
        match (self.value(value, missing)?, value, missing) {
            (None, Value::Variable(name), Missing::Refuse) => Err(Error::input(format!(
                "the variable `${name}` stands in a condition and has no value; give it one, which may be null"
            ))),
            (value, ..) => Ok(value),
        }
    }

    /// Whether `@skip` and `@include` allow a selection to be executed.
    ///
    /// # Errors
    ///
    /// If the variable of a condition is null or has no value.
    pub(crate) fn allow(&self, conditions: &[Condition]) -> Result<bool, Error> {
        for condition in conditions {
            let value = match &condition.value {
                Value::Boolean(value) => *value,
                Value::Variable(name) => match self.get(name).map(Json::text).as_deref() {
                    Some("true") => true,
                    Some("false") => false,
                    _ => {
                        let message = format!(
                            "the variable `${name}` decides over a selection and must not be null"
                        );
                        return Err(Error::input(message).at(condition.location));
                    }
                },
                _ => return Err(Error::new(Code::Internal, "a condition that is no boolean")),
            };
            if value != condition.wanted {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// If a request has at least this many values, they are sorted by name for fast look-ups.
const MANY: usize = 16;

/// The values that a request gives for variables. If a name occurs twice, the value of its final
/// occurrence is used.
enum VariableValues<'a> {
    Few(json::Members<'a>),
    Many(BTreeMap<Cow<'a, str>, &'a RawValue>),
}

impl<'a> VariableValues<'a> {
    fn new(members: json::Members<'a>) -> Self {
        if members.len() < MANY {
            Self::Few(members)
        } else {
            Self::Many(members.into_iter().collect())
        }
    }

    fn get(&self, name: &str) -> Option<&'a RawValue> {
        match self {
            Self::Few(members) => {
                let found = members.iter().rfind(|(known, _)| known == name);
                found.map(|(_, value)| *value)
            }
            Self::Many(members) => members.get(name).copied(),
        }
    }
}

/// How a variable without a value is handled inside a list or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// An object gets no member for the variable. A list gets null in place of the variable.
    Omit,
    /// The literal is rejected, because a condition without one of its members would match more
    /// rows.
    Refuse,
}

fn string(text: &str) -> Json<'static> {
    Json::from(serde_json::Value::from(text).to_string())
}

/// Coerces a literal without variables.
///
/// # Errors
///
/// The reason why the literal does not fit the type, such as `must not be null`. The
/// calling function puts the subject of the sentence before it: the variable or its default.
pub(crate) fn literal(value: &Value, r#type: &InputType) -> Result<Json<'static>, String> {
    if let (Value::Enum(name), false) = (value, takes_words(r#type)) {
        return Err(format!("must not be the word `{name}`"));
    }
    let none = Variables::default();
    let value = none
        .value(value, Missing::Omit)
        .map_err(|error| error.message)?;
    let text = value.unwrap_or(Json::NULL).text().into_owned();
    json(&text, r#type).map(owned)
}

fn takes_words(r#type: &InputType) -> bool {
    match r#type {
        InputType::Named(name) => takes_any_json(name) || name.starts_with("__"),
        InputType::List(of) | InputType::NonNull(of) => takes_words(of),
    }
}

fn owned(json: Json<'_>) -> Json<'static> {
    match json {
        Json::Text(text) => Json::Text(Cow::Owned(text.into_owned())),
        Json::List(items) => Json::List(items.into_iter().map(owned).collect()),
        Json::Object(members) => Json::Object(
            members
                .into_iter()
                .map(|(name, value)| (Cow::Owned(name.into_owned()), owned(value)))
                .collect(),
        ),
    }
}

/// Coerces JSON text to a type. A value that is not a list becomes a list of one element if the
/// type is a list.
fn json<'a>(text: &'a str, r#type: &InputType) -> Result<Json<'a>, String> {
    let kind = JsonKind::of(text);
    match r#type {
        InputType::NonNull(_) if kind == JsonKind::Null => Err("must not be null".to_owned()),
        InputType::NonNull(of) => json(text, of),
        _ if kind == JsonKind::Null => Ok(Json::NULL),
        InputType::List(of) if kind == JsonKind::Array => {
            let elements = json::elements(text).map_err(|error| json::problem(&error))?;
            let elements = elements.into_iter().enumerate().map(|(at, element)| {
                json(element.get(), of).map_err(|problem| format!("at [{at}] {problem}"))
            });
            Ok(Json::List(elements.collect::<Result<_, _>>()?))
        }
        InputType::List(of) => Ok(Json::List(vec![json(text, of)?])),
        InputType::Named(name) => scalar(text, kind, name),
    }
}

fn scalar<'a>(text: &'a str, kind: JsonKind, name: &str) -> Result<Json<'a>, String> {
    let fits = match name {
        name if takes_any_json(name) => true,
        "Int" => return int(text, kind),
        "Float" => kind == JsonKind::Number,
        "Boolean" => kind == JsonKind::Bool,
        "ID" => {
            let whole = kind == JsonKind::Number && !text.contains(['.', 'e', 'E']);
            whole || kind == JsonKind::String
        }
        _ => kind == JsonKind::String,
    };
    if fits {
        Ok(Json::from(text))
    } else {
        Err(format!("must not be {kind}"))
    }
}

/// Coerces a 32-bit integer, which may have any notation of JSON, such as `5.0`.
fn int(text: &str, kind: JsonKind) -> Result<Json<'_>, String> {
    if kind != JsonKind::Number {
        return Err(format!("must not be {kind}"));
    }
    if text.parse::<i32>().is_ok() {
        return Ok(Json::from(text));
    }
    let number: f64 = text.parse().map_err(|_| "is no number".to_owned())?;
    #[expect(
        clippy::cast_possible_truncation,
        reason = "compared with what it came from"
    )]
    let whole = number as i32;
    if number.is_finite() && f64::from(whole).to_bits() == number.to_bits() {
        return Ok(Json::from(whole.to_string()));
    }
    Err("must be a whole number of 32 bits".to_owned())
}
