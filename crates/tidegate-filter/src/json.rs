//! A JSON value of a request: JSON text, or a GraphQL literal whose variables are resolved.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

use tidegate_values::Parameter;
use tidegate_values::json::{self, JsonKind};

use crate::error::{Error, Result};

/// A JSON value that is parsed only as far as needed.
///
/// JSON text is not converted. So numbers keep their digits, and values that are only passed on are
/// never parsed. A list or object of a GraphQL document becomes [`Json::List`] or [`Json::Object`],
/// a scalar becomes JSON text.
#[derive(Clone, Debug)]
pub enum Json<'a> {
    /// JSON text of any value, known to be valid.
    Text(Cow<'a, str>),
    /// A list.
    List(Vec<Json<'a>>),
    /// An object with its members in order.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

/// The members of an object in order, borrowed where possible.
pub type JsonMembers<'j> = Vec<(Cow<'j, str>, Cow<'j, Json<'j>>)>;

/// The elements of a list, borrowed where possible.
pub type JsonElements<'j> = Vec<Cow<'j, Json<'j>>>;

impl<'a> From<&'a str> for Json<'a> {
    /// Wraps JSON text, which must be valid.
    fn from(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Json<'_> {
    /// Wraps JSON text, which must be valid.
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl Json<'_> {
    /// The value `null`.
    pub const NULL: Json<'static> = Json::Text(Cow::Borrowed("null"));

    /// The kind of the value.
    pub fn kind(&self) -> JsonKind {
        match self {
            Self::Text(text) => JsonKind::of(text),
            Self::List(_) => JsonKind::Array,
            Self::Object(_) => JsonKind::Object,
        }
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        self.kind() == JsonKind::Null
    }

    /// The members of an object, in order and with distinct names. `place` names the value in
    /// errors.
    ///
    /// # Errors
    ///
    /// [`Error::WrongKind`] if the value is not an object, [`Error::Repeated`] if a name occurs
    /// twice, and [`Error::Unreadable`] for a name that PostgreSQL cannot store.
    pub fn members<'j>(&'j self, place: &dyn Display) -> Result<JsonMembers<'j>> {
        let members: JsonMembers<'j> = match self {
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
    /// [`Error::WrongKind`] if the value is not an array.
    pub fn elements<'j>(&'j self, place: &dyn Display) -> Result<JsonElements<'j>> {
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
    /// [`Error::WrongKind`] if the value is not a string, [`Error::Unreadable`] for characters that
    /// PostgreSQL cannot store: U+0000 and unpaired surrogates.
    pub fn string(&self, place: &dyn Display) -> Result<Cow<'_, str>> {
        match self {
            Self::Text(text) if self.kind() == JsonKind::String => {
                json::string(text).map_err(|problem| unreadable(place, problem.to_owned()))
            }
            _ => Err(self.not(place, "a string")),
        }
    }

    /// The value as JSON text, which is borrowed if the value is text already.
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

    /// The value as a parameter: SQL NULL for `null`, otherwise the JSON text, which an executor
    /// encodes as the parameter's type.
    pub fn parameter(&self) -> Parameter {
        if self.is_null() {
            Parameter::Null
        } else {
            Parameter::Json(self.text().into())
        }
    }

    /// The error for a value of another kind than expected.
    pub(crate) fn not(&self, place: &dyn Display, expected: impl Into<String>) -> Error {
        Error::WrongKind {
            place: place.to_string(),
            found: self.kind(),
            expected: expected.into(),
        }
    }
}

/// Appends `text` as a JSON string (RFC 8259, section 7).
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

/// A name that occurs twice; `None` if all names differ.
fn repeated<'m>(members: &'m JsonMembers<'_>) -> Option<&'m str> {
    let mut names: Vec<_> = members.iter().map(|(name, _)| &**name).collect();
    names.sort_unstable();
    names
        .windows(2)
        .find(|pair| pair[0] == pair[1])
        .map(|pair| pair[0])
}
