//! Reads JSON (RFC 8259) member by member, without building a tree of values.
//!
//! The values are not decoded: they are [`RawValue`]s of a document that was validated as a whole.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The kind of a JSON value, as errors name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool,
    /// A number.
    Number,
    /// A string.
    String,
    /// An array.
    Array,
    /// An object.
    Object,
}

impl JsonKind {
    /// Determines the kind of a JSON value from its first character. `document` must be valid JSON.
    pub fn of(document: &str) -> Self {
        match document.trim_ascii_start().as_bytes().first() {
            Some(b'{') => Self::Object,
            Some(b'[') => Self::Array,
            Some(b'"') => Self::String,
            Some(b't' | b'f') => Self::Bool,
            Some(b'n') => Self::Null,
            _ => Self::Number,
        }
    }
}

impl fmt::Display for JsonKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "null",
            Self::Bool => "a boolean",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        })
    }
}

/// The members of an object in order; names may repeat.
pub type Members<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// Reads the members of an object from its JSON text.
pub fn members(document: &str) -> serde_json::Result<Members<'_>> {
    serde_json::from_str::<Pairs<'_>>(document).map(|pairs| pairs.0)
}

/// Reads the elements of an array from its JSON text.
pub fn elements(document: &str) -> serde_json::Result<Vec<&RawValue>> {
    serde_json::from_str::<Elements<'_>>(document).map(|elements| elements.0)
}

/// The message of an error, without the position in the parsed fragment.
pub fn problem(error: &serde_json::Error) -> String {
    let mut text = error.to_string();
    if let Some(place) = text.rfind(" at line ") {
        text.truncate(place);
    }
    text
}

/// The byte offset at which the nesting of arrays and objects first exceeds `depth`; `None` if it
/// never does.
pub fn deeper_than(depth: usize, text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut open, mut at) = (0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at += closing_quote(&bytes[at + 1..]),
            b'[' | b'{' => {
                open += 1;
                if open > depth {
                    return Some(at);
                }
            }
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    None
}

/// The length of the rest of a string. `rest` begins after the opening quote. The length includes
/// the closing quote. If there is no closing quote, the result is the length of `rest`.
fn closing_quote(rest: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = rest
        .get(at..)
        .and_then(|rest| memchr::memchr2(b'"', b'\\', rest))
    {
        at += found;
        if rest[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    rest.len()
}

/// The first name that repeats an earlier one; `None` if all names differ.
pub fn repeated<'m>(members: &'m Members<'_>) -> Option<&'m str> {
    const MAX_LINEAR: usize = 16;
    let mut names = members.iter().map(|(name, _)| &**name);
    if members.len() <= MAX_LINEAR {
        let before = |index: usize, name| members[..index].iter().any(|(known, _)| known == name);
        return names
            .enumerate()
            .find(|(index, name)| before(*index, *name))
            .map(|(_, name)| name);
    }
    let mut known = HashSet::with_capacity(members.len());
    names.find(|name| !known.insert(*name))
}

/// The text of a JSON string, with its escapes replaced.
///
/// # Errors
///
/// A message about the problem: the document is not a string, or the string contains U+0000 or an
/// unpaired surrogate, which PostgreSQL cannot store.
pub fn string(document: &str) -> Result<Cow<'_, str>, &'static str> {
    let inner = document
        .trim_ascii()
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'));
    let inner = inner.ok_or("not a string")?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Ok(Cow::Borrowed(inner));
    }
    let text: String = serde_json::from_str(document)
        .map_err(|_| "a string with half of a surrogate pair (`\\ud800` to `\\udfff`)")?;
    if memchr::memchr(0, text.as_bytes()).is_some() {
        return Err("a string with the character U+0000, which PostgreSQL cannot store");
    }
    Ok(Cow::Owned(text))
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
                // This reserves no additional space. An empty `Vec` would reserve space for four
                // members too, when the first member is added.
                let mut members = Vec::with_capacity(4);
                while let Some(Name(name)) = map.next_key()? {
                    members.push((name, map.next_value()?));
                }
                Ok(Pairs(members))
            }
        }

        deserializer.deserialize_map(PairsVisitor(PhantomData))
    }
}

struct Elements<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Elements<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ElementsVisitor<'de>(PhantomData<&'de ()>);

        impl<'de> Visitor<'de> for ElementsVisitor<'de> {
            type Value = Elements<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = seq.next_element()? {
                    elements.push(element);
                }
                Ok(Elements(elements))
            }
        }

        deserializer.deserialize_seq(ElementsVisitor(PhantomData))
    }
}

/// The name of a member, borrowed if it has no escape.
struct Name<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor<'de>(PhantomData<&'de ()>);

        impl<'de> Visitor<'de> for NameVisitor<'de> {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member's name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
                if name.contains('\0') {
                    return Err(E::custom("a member's name holds the character U+0000"));
                }
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }

        deserializer.deserialize_str(NameVisitor(PhantomData))
    }
}
