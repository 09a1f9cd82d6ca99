//! Reads JSON (RFC 8259) with errors that name the member, and writes JSON.

use serde::Serialize;
use serde_json::value::RawValue;
use tidegate_sql::InputError;
use tidegate_sql::request::RequestError;
use tidegate_values::json::{self, JsonKind, Members};

/// Checks that a body is valid JSON.
pub(crate) fn document(body: &[u8]) -> Result<&RawValue, RequestError> {
    serde_json::from_slice(body).map_err(|error| RequestError::InvalidJson {
        problem: json::problem(&error),
        line: error.line().max(1),
        column: error.column().max(1),
    })
}

/// A value as JSON text.
pub(crate) fn write(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, booleans and maps of them have a JSON form")
}

pub(crate) fn kind(raw: &RawValue) -> JsonKind {
    JsonKind::of(raw.get())
}

/// The elements of an array; `None` for any other value.
pub(crate) fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    json::elements(raw.get()).ok()
}

/// The members of an object, which must have distinct names. `place` returns the path of a member
/// for errors. For the empty name it returns the path of the object.
pub(crate) fn members<'a>(
    raw: &'a RawValue,
    place: &dyn Fn(&str) -> String,
) -> Result<Members<'a>, InputError> {
    let found = kind(raw);
    if found != JsonKind::Object {
        return Err(invalid(place(""), format!("{found}, expected an object")));
    }
    let members =
        json::members(raw.get()).map_err(|error| invalid(place(""), json::problem(&error)))?;
    match json::repeated(&members) {
        Some(name) => Err(invalid(place(name), "given twice")),
        None => Ok(members),
    }
}

/// The text of a string. `place` returns its path for errors.
pub(crate) fn text(raw: &RawValue, place: impl Fn() -> String) -> Result<String, InputError> {
    let found = kind(raw);
    if found != JsonKind::String {
        return Err(invalid(place(), format!("{found}, expected a string")));
    }
    let text = json::string(raw.get()).map_err(|problem| invalid(place(), problem))?;
    Ok(text.into_owned())
}

pub(crate) fn invalid(field: String, problem: impl Into<String>) -> InputError {
    InputError::InvalidField {
        field,
        problem: problem.into(),
    }
}
