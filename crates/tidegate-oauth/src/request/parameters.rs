//! The parameters of a request, however they were sent.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::percent;
use crate::{Error, Result, Secret};

/// Longer names are not repeated in answers.
const LONGEST_NAME: usize = 64;

/// Names with their values in the order sent, doubles included. What is wrong with a value is told
/// when it is asked for: parameters that nobody asks for are ignored (RFC 6749, section 3.2).
#[derive(Default)]
pub struct Parameters(Vec<(String, Value)>);

enum Value {
    Text(Secret),
    Null,
    Other,
}

impl Parameters {
    /// Parameters that are decoded already.
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<String>,
        V: Into<String>,
    {
        let text = |(name, value): (N, V)| (name.into(), Value::Text(Secret::new(value)));
        Self(pairs.into_iter().map(text).collect())
    }

    /// Decodes a body of the type `application/x-www-form-urlencoded`.
    pub fn from_form(body: &[u8]) -> Result<Self> {
        // What many a program sends that was given a text and not told what it is.
        if body.starts_with(b"{") && serde_json::from_slice::<IgnoredAny>(body).is_ok() {
            return Err(Error::Malformed {
                part: "Content-Type",
                expected: "application/json for a body that is JSON",
            });
        }
        let mut pairs = Vec::new();
        for piece in body
            .split(|&byte| byte == b'&')
            .filter(|piece| !piece.is_empty())
        {
            let mut halves = piece.splitn(2, |&byte| byte == b'=');
            let mut half = || percent::decode(halves.next().unwrap_or_default());
            let malformed = Error::Malformed {
                part: "body",
                expected: "an encoded form in UTF-8",
            };
            let (Some(name), Some(value)) = (half(), half()) else {
                return Err(malformed);
            };
            pairs.push((name, value));
        }
        Ok(Self::from_pairs(pairs))
    }

    /// Decodes a body that is one JSON object. Its members must be strings or null, but only those
    /// that are asked for.
    pub fn from_json(body: &[u8]) -> Result<Self> {
        serde_json::from_slice(body).map_err(|_| Error::Malformed {
            part: "body",
            expected: "a JSON object",
        })
    }

    /// Refuses a request in which any parameter stands twice, known or not (RFC 6749, sections 3.1
    /// and 3.2): who reads the first and who reads the last would see two requests.
    ///
    /// [`Error::DuplicateParameter`] with the name, if it is one that can be repeated in any answer.
    pub fn each_once(&self) -> Result<()> {
        let mut seen = HashSet::with_capacity(self.0.len());
        match self.0.iter().find(|(name, _)| !seen.insert(name.as_str())) {
            Some((name, _)) => Err(Error::DuplicateParameter(shown(name).to_owned())),
            None => Ok(()),
        }
    }

    /// The value of a parameter; none when it is absent, null or empty (RFC 6749, section 3.2).
    ///
    /// [`Error::DuplicateParameter`], [`Error::ParameterNotText`].
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

    /// The value of a parameter that must be there: [`Error::MissingParameter`] else.
    pub fn required(&self, name: &'static str) -> Result<&str> {
        self.text(name)?.ok_or(Error::MissingParameter(name))
    }

    pub(crate) fn required_secret(&self, name: &'static str) -> Result<Secret> {
        self.required(name).map(Secret::new)
    }
}

/// The name of a parameter as an answer may hold it: whoever wrote the request chose it.
fn shown(name: &str) -> &str {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let fits = (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(plain);
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
        deserializer.deserialize_map(Members)
    }
}

struct Members;

impl<'de> Visitor<'de> for Members {
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
        enum Shape {
            Text(String),
            Null(()),
            Other(IgnoredAny),
        }
        Ok(match Shape::deserialize(deserializer)? {
            Shape::Text(text) => Self::Text(Secret::new(text)),
            Shape::Null(()) => Self::Null,
            Shape::Other(IgnoredAny) => Self::Other,
        })
    }
}
