//! Reads JSON without building a tree. Members and elements are not decoded.

use std::borrow::Cow;
use std::fmt;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};
use serde_json::value::RawValue;
use tidegate_values::json::deeper_than;

use crate::error::Error;

/// Checks that a message is valid JSON of bounded depth.
///
/// # Errors
///
/// [`Error::NoJson`], and [`Error::TooMany`] if arrays and objects are nested too deeply.
pub(crate) fn read(text: &[u8], depth: usize) -> Result<&RawValue, Error> {
    let text = str::from_utf8(text).map_err(|error| Error::NoJson {
        problem: format!("a byte that is not UTF-8 at offset {}", error.valid_up_to()),
    })?;
    let document: &RawValue = serde_json::from_str(text).map_err(|error| Error::NoJson {
        problem: error.to_string(),
    })?;
    if deeper_than(depth, document.get()).is_some() {
        return Err(Error::TooMany {
            what: "levels of arrays and objects",
            limit: depth,
        });
    }
    Ok(document)
}

/// The text of a JSON string; `None` for any other value, and for a string with an unpaired
/// surrogate.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        return serde_json::from_str(raw.get()).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inner))
}

/// The members of a request object that JSON-RPC defines. Other members are ignored.
#[derive(Default)]
pub(crate) struct Envelope<'a> {
    pub(crate) jsonrpc: Option<&'a RawValue>,
    pub(crate) method: Option<&'a RawValue>,
    pub(crate) params: Option<&'a RawValue>,
    pub(crate) id: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    /// Reads an object; `None` if a member that JSON-RPC defines occurs twice.
    pub(crate) fn read(raw: &'a RawValue) -> Option<Self> {
        serde_json::from_str(raw.get()).ok()
    }
}

impl<'de> Deserialize<'de> for Envelope<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct EnvelopeVisitor;

        impl<'de> Visitor<'de> for EnvelopeVisitor {
            type Value = Envelope<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a request object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut envelope = Envelope::default();
                while let Some(member) = map.next_key()? {
                    let place = match member {
                        EnvelopeMember::Jsonrpc => &mut envelope.jsonrpc,
                        EnvelopeMember::Method => &mut envelope.method,
                        EnvelopeMember::Params => &mut envelope.params,
                        EnvelopeMember::Id => &mut envelope.id,
                        EnvelopeMember::Unknown => {
                            map.next_value::<IgnoredAny>()?;
                            continue;
                        }
                    };
                    if place.replace(map.next_value()?).is_some() {
                        return Err(A::Error::custom("a member twice"));
                    }
                }
                Ok(envelope)
            }
        }

        deserializer.deserialize_map(EnvelopeVisitor)
    }
}

enum EnvelopeMember {
    Jsonrpc,
    Method,
    Params,
    Id,
    Unknown,
}

impl<'de> Deserialize<'de> for EnvelopeMember {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Name;

        impl Visitor<'_> for Name {
            type Value = EnvelopeMember;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a member's name")
            }

            fn visit_bytes<E>(self, name: &[u8]) -> Result<EnvelopeMember, E> {
                Ok(match name {
                    b"jsonrpc" => EnvelopeMember::Jsonrpc,
                    b"method" => EnvelopeMember::Method,
                    b"params" => EnvelopeMember::Params,
                    b"id" => EnvelopeMember::Id,
                    _ => EnvelopeMember::Unknown,
                })
            }
        }

        // The name is read as bytes, because the name of an ignored member may contain an unpaired
        // surrogate (`\ud800`), which a `str` cannot hold.
        deserializer.deserialize_bytes(Name)
    }
}

/// The first elements of an array, and the number of all its elements.
pub(crate) struct Elements<'a> {
    pub(crate) kept: Vec<&'a RawValue>,
    /// The number of elements, including those that were not kept.
    pub(crate) count: usize,
}

impl<'a> Elements<'a> {
    /// Reads an array and keeps at most `limit` of its elements; `None` for any other value.
    pub(crate) fn read(raw: &'a RawValue, limit: usize) -> Option<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(raw.get());
        LimitedElements(limit).deserialize(&mut deserializer).ok()
    }
}

struct LimitedElements(usize);

impl<'de> DeserializeSeed<'de> for LimitedElements {
    type Value = Elements<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for LimitedElements {
    type Value = Elements<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut kept = Vec::new();
        while kept.len() < self.0 {
            match seq.next_element()? {
                Some(element) => kept.push(element),
                None => break,
            }
        }
        let mut count = kept.len();
        while seq.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Elements { kept, count })
    }
}
