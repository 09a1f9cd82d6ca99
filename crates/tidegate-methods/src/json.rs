//! Reading JSON (RFC 8259) member by member, so that errors can name the member; writing it.

use std::fmt;
use std::marker::PhantomData;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use tidegate_sql::InputError;
use tidegate_sql::request::RequestError;

/// The members of an object in their order; names may repeat.
pub(crate) type Members<'a> = Vec<(String, &'a RawValue)>;

/// Checks that a body is one JSON text.
pub(crate) fn document(body: &[u8]) -> Result<&RawValue, RequestError> {
    serde_json::from_slice(body).map_err(|error| RequestError::InvalidJson {
        problem: problem(&error),
        line: error.line().max(1),
        column: error.column().max(1),
    })
}

/// A value as JSON text.
pub(crate) fn write(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, booleans and maps of them have a JSON form")
}

/// What an error says, without the place.
fn problem(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let Some(place) = text.rfind(" at line ") {
        text.truncate(place);
    }
    text
}

/// What kind of value a document is, as errors call it.
pub(crate) fn kind(raw: &RawValue) -> &'static str {
    match raw.get().as_bytes().first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// The elements of an array; `None` when the value is none.
pub(crate) fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

/// The members of the object at `place`, no name twice.
pub(crate) fn members<'a>(
    raw: &'a RawValue,
    place: &dyn Fn(&str) -> String,
) -> Result<Members<'a>, InputError> {
    let found = kind(raw);
    if found != "an object" {
        return Err(invalid(place(""), format!("{found}, expected an object")));
    }
    let Pairs(members) = serde_json::from_str(raw.get())
        .map_err(|error: serde_json::Error| invalid(place(""), problem(&error)))?;
    let mut names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(invalid(place(pair[0]), "given twice")),
        None => Ok(members),
    }
}

/// The text of the string at `place`.
pub(crate) fn text(raw: &RawValue, place: impl Fn() -> String) -> Result<String, InputError> {
    let found = kind(raw);
    if found != "a string" {
        return Err(invalid(place(), format!("{found}, expected a string")));
    }
    let text: String = serde_json::from_str(raw.get()).map_err(|_| {
        let problem = "a string with half of a surrogate pair (`\\ud800` to `\\udfff`)";
        invalid(place(), problem)
    })?;
    if text.contains('\0') {
        let problem = "a string with the character U+0000, which PostgreSQL cannot store";
        return Err(invalid(place(), problem));
    }
    Ok(text)
}

pub(crate) fn invalid(member: String, problem: impl Into<String>) -> InputError {
    InputError::InvalidMember {
        member,
        problem: problem.into(),
    }
}

struct Pairs<'a>(Members<'a>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor<'de>(PhantomData<&'de ()>);

        impl<'de> Visitor<'de> for PairsVisitor<'de> {
            type Value = Pairs<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Pairs(members))
            }
        }

        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}
