//! A JSON value of a request: text as it came, or a literal with values put in.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

use tidegate_values::Parameter;
use tidegate_values::json::{self, JsonKind};

use crate::error::{Error, Result};

/// A JSON value, read only as far as somebody asks.
///
/// A value that came as JSON text stays text, so that numbers keep their digits and what only
/// passes through is never taken apart. A literal of a GraphQL document is a list or an object
/// here, its scalars are their JSON text.
#[derive(Clone, Debug)]
pub enum Json<'a> {
    /// The JSON text of any value, known to be valid.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Json<'a>>),
    /// An object; the members in their order.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// The members of an object in their order, borrowed as far as they can be.
pub type Members<'j> = Vec<(Cow<'j, str>, Cow<'j, Json<'j>>)>;

/// The elements of a list, borrowed as far as they can be.
pub type Elements<'j> = Vec<Cow<'j, Json<'j>>>;

impl<'a> From<&'a str> for Json<'a> {
    /// Takes JSON text that is known to be valid.
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Json<'_> {
    /// Takes JSON text that is known to be valid.
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl Json<'_> {
    /// The value `null`.
    pub const NULL: Json<'static> = Json::Text(Cow::Borrowed("null"));

    /// What kind of value it is.
    pub fn kind(&self) -> JsonKind {
        match self {
            Self::Text(text) => JsonKind::of(text),
            Self::List(_) => JsonKind::Array,
            Self::Object(_) => JsonKind::Object,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// The members of an object, in their order; no name comes twice. `place` names the value in
    /// errors.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`] when it is no object, [`Error::Repeated`] when a name comes twice, and
    /// [`Error::Unreadable`] for a name that PostgreSQL could not have.
    pub fn members<'j>(&'j self, place: &dyn Display) -> Result<Members<'j>> {
        let members: Members<'j> = match self {
            Self::Object(members) => members
                .iter()
                .map(|(name, value)| (Cow::Borrowed(&**name), Cow::Borrowed(value)))
                .collect(),
            Self::Text(text) if self.kind() == JsonKind::Object => json::members(text)
                .map_err(|error| unreadable(place, json::problem(&error)))?
                .into_iter()
                .map(|(name, raw)| (name, Cow::Owned(Json::from(raw.get()))))
                .collect(),
            _ => return Err(self.not(place, "an object")),
        };
        match repeated(&members) {
            Some(name) => Err(Error::Repeated {
                place: format!("{place}.{name}"),
            }),
            None => Ok(members),
        }
    }

    /// The elements of an array. `place` names the value in errors.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`] when it is no array.
    pub fn elements<'j>(&'j self, place: &dyn Display) -> Result<Elements<'j>> {
        match self {
            Self::List(elements) => Ok(elements.iter().map(Cow::Borrowed).collect()),
            Self::Text(text) if self.kind() == JsonKind::Array => Ok(json::elements(text)
                .map_err(|error| unreadable(place, json::problem(&error)))?
                .into_iter()
                .map(|raw| Cow::Owned(Json::from(raw.get())))
                .collect()),
            _ => Err(self.not(place, "an array")),
        }
    }

    /// The characters of a string. `place` names the value in errors.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`] when it is no string, [`Error::Unreadable`] for what PostgreSQL could
    /// not store: U+0000, and halves of surrogate pairs.
    pub fn string(&self, place: &dyn Display) -> Result<Cow<'_, str>> {
        match self {
            Self::Text(text) if self.kind() == JsonKind::String => {
                json::string(text).map_err(|problem| unreadable(place, problem.to_owned()))
            }
            _ => Err(self.not(place, "a string")),
        }
    }

    /// The value as JSON text; borrowed when it came as text.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text.trim_ascii()),
            Self::List(_) | Self::Object(_) => {
                let mut out = String::new();
                self.write(&mut out);
                Cow::Owned(out)
            }
        }
    }

    /// Appends the value as JSON text.
    pub fn write(&self, out: &mut String) {
        match self {
            Self::Text(text) => out.push_str(text.trim_ascii()),
            Self::List(elements) => {
                out.push('[');
                for (at, element) in elements.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    element.write(out);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (at, (name, value)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_string(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }

    /// The value as a parameter: SQL NULL for `null`, and otherwise the JSON text, which an
    /// executor turns into the text of the parameter's type.
    pub fn parameter(&self) -> Parameter {
        if self.is_null() {
            Parameter::Null
        } else {
            Parameter::Json(self.text().into())
        }
    }

    /// The error of a value of another kind than expected.
    pub(crate) fn not(&self, place: &dyn Display, expected: impl Into<String>) -> Error {
        Error::WrongKind {
            place: place.to_string(),
            found: self.kind(),
            expected: expected.into(),
        }
    }
}

/// Appends a JSON string (RFC 8259, section 7).
pub(crate) fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\0'..='\x1f' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

fn unreadable(place: &dyn Display, problem: String) -> Error {
    Error::Unreadable {
        place: place.to_string(),
        problem,
    }
}

/// The name that comes twice, if one does.
fn repeated<'m>(members: &'m Members<'_>) -> Option<&'m str> {
    let mut names: Vec<_> = members.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    names
        .windows(2)
        .find(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
}
