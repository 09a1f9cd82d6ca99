//! Request parameters, from a form or from JSON.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::percent;
use crate::{Error, Result};
use tidegate_identity::{Error as IdentityError, Secret};

/// The maximum length in bytes of a parameter name that a response may contain.
const MAX_NAME_LENGTH: usize = 64;

/// The names and values of a request in the order sent, including duplicates. A value is checked
/// only when it is read. Unknown parameters are ignored (RFC 6749, section 3.2).
#[derive(Default)]
pub struct Parameters(Vec<(String, Value)>);

enum Value {
    Text(Secret),
    Null,
    Other,
}

impl Parameters {
    /// Parameters from decoded pairs.
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        let text = |(name, value): (N, V)| (name.into(), Value::Text(Secret::new(value)));
        Self(pairs.into_iter().map(text).collect())
    }

    /// Parses an `application/x-www-form-urlencoded` body.
    pub fn from_form(body: &[u8]) -> Result<Self> {
        // Many HTTP clients label a JSON body as a form by default. So a JSON body gets an error
        // that names this mistake.
        if body.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(body).is_ok() {
            return Err(IdentityError::Malformed {
                part: "Content-Type",
                expected: "application/json for a body that is JSON",
            }
            .into());
        }
        let mut pairs = Vec::new();
        for piece in body
            .split(|&byte| byte == b'&')
            .filter(|piece| !piece.is_empty())
        {
            let mut halves = piece.splitn(2, |&byte| byte == b'=');
            let mut half = || percent::decode(halves.next().unwrap_or_default());
            let malformed = IdentityError::Malformed {
                part: "body",
                expected: "an encoded form in UTF-8",
            };
            let (Some(name), Some(value)) = (half(), half()) else {
                return Err(malformed.into());
            };
            pairs.push((name, value));
        }
        Ok(Self::from_pairs(pairs))
    }

    /// Parses a body that is a JSON object. The members that are read must be strings or null.
    pub fn from_json(body: &[u8]) -> Result<Self> {
        serde_json::from_slice(body).map_err(|_| {
            IdentityError::Malformed {
                part: "body",
                expected: "a JSON object",
            }
            .into()
        })
    }

    /// Refuses a request with a duplicate parameter, known or not (RFC 6749, sections 3.1 and 3.2).
    /// A program that reads the first value and a program that reads the last value would read
    /// different values.
    ///
    /// Errors: [`Error::DuplicateParameter`] with the name of the parameter. A name that a response
    /// must not contain is replaced by a description.
    pub fn reject_duplicates(&self) -> Result<()> {
        let mut seen = HashSet::with_capacity(self.0.len());
        match self.0.iter().find(|(name, _)| !seen.insert(name.as_str())) {
            Some((name, _)) => Err(Error::DuplicateParameter(safe_name(name).to_owned())),
            None => Ok(()),
        }
    }

    /// The value of a parameter; `None` when it is absent, null or empty (RFC 6749, section 3.2).
    ///
    /// Errors: [`Error::DuplicateParameter`], [`Error::ParameterNotText`].
    pub fn text(&self, name: &'static str) -> Result<Option<&str>> {
        let mut values = self
            .0
            .iter()
            .filter(|(known, _)| known == name)
            .map(|(_, value)| value);
        let first = values.next();
        if values.next().is_some() {
            return Err(Error::DuplicateParameter(name.to_owned()));
        }
        match first {
            Some(Value::Other) => Err(Error::ParameterNotText(name)),
            Some(Value::Text(text)) if !text.is_empty() => Ok(Some(text.expose())),
            Some(Value::Text(_) | Value::Null) | None => Ok(None),
        }
    }

    /// The value of a required parameter.
    ///
    /// Errors: those of [`text`](Self::text), and [`Error::MissingParameter`] if there is no value.
    pub fn required(&self, name: &'static str) -> Result<&str> {
        self.text(name)?.ok_or(Error::MissingParameter(name))
    }

    pub(crate) fn required_secret(&self, name: &'static str) -> Result<Secret> {
        self.required(name).map(Secret::new)
    }
}

/// Returns the name of a parameter if a response may contain it, otherwise a description. The name
/// comes from the client, so it must be short and have only letters, digits and `_-.`.
fn safe_name(name: &str) -> &str {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let fits = (1..=MAX_NAME_LENGTH).contains(&name.len()) && name.bytes().all(plain);
    if fits { name } else { "with an odd name" }
}

impl fmt::Debug for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.0.iter().map(|(name, _)| name))
            .finish()
    }
}

impl<'de> Deserialize<'de> for Parameters {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ParametersVisitor)
    }
}

struct ParametersVisitor;

impl<'de> Visitor<'de> for ParametersVisitor {
    type Value = Parameters;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parameters, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Parameters(members))
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum JsonValue {
            Text(String),
            Null(()),
            Other(IgnoredAny),
        }
        Ok(match JsonValue::deserialize(deserializer)? {
            JsonValue::Text(text) => Self::Text(Secret::new(text)),
            JsonValue::Null(()) => Self::Null,
            JsonValue::Other(IgnoredAny) => Self::Other,
        })
    }
}
