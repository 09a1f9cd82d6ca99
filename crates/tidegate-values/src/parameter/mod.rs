//! Encodes JSON values as the text that PostgreSQL's input functions accept.
//!
//! Strings, numbers and booleans are passed on unchanged, so that everything that PostgreSQL
//! accepts is accepted. Only base64 for `bytea`, and values with a date format, are converted.
//! Arrays and objects are converted to the text form of the parameter's type, which may be an
//! array, range, multirange, composite, geometric type, PostGIS type, `interval` or `hstore`. For
//! `json` and `jsonb` the document is passed on verbatim.

mod array;
mod composite;
mod geojson;
mod geometric;
mod hstore;
mod interval;
mod place;
mod range;
mod value;

use bytes::BytesMut;
use postgres_types::{Kind, Type};

use self::place::{ValuePath, written};
use self::value::Value;
use crate::datetime::{MomentType, Zone};
use crate::error::ValueError;
use crate::json::JsonKind;
use crate::type_property::{is_hstore, is_spatial};

/// The value of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// SQL NULL.
    Null,
    /// A JSON document as it was sent, so that numbers keep their digits.
    Json(Box<str>),
    /// The text form of the parameter's type, for PostgreSQL's input function.
    Text(Box<str>),
}

/// The format of a date or time parameter.
#[derive(Clone, Debug)]
pub struct InputFormat {
    /// The format specifiers, as `type_formats` has them.
    pub specifiers: String,
    /// The time zone of texts that name none.
    pub zone: Zone,
}

/// Whether a parameter is SQL NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsNull {
    /// The value is SQL NULL; nothing was written.
    Yes,
    /// The value is not SQL NULL; its text was written.
    No,
}

/// Appends a value as text that PostgreSQL's input function of the type accepts.
///
/// `format` is the placeholder's entry in `type_formats`. `place` returns the path of the value and
/// is called only for errors. After an error, `out` may have part of the value.
///
/// # Errors
///
/// [`ValueError::InvalidValue`] with the path inside the value, the expected type, and the problem;
/// [`ValueError::InvalidFormat`] for a format on a type that accepts no format.
pub fn encode(
    value: &Parameter,
    r#type: &Type,
    format: Option<&InputFormat>,
    place: &dyn Fn() -> String,
    out: &mut BytesMut,
) -> Result<IsNull, ValueError> {
    let root = ValuePath::Root(place);
    if format.is_some() && MomentType::of(r#type).is_none() {
        return Err(root.unformatted(format!("a {} takes no date format", written(r#type))));
    }
    match value {
        Parameter::Null => Ok(IsNull::Yes),
        Parameter::Text(text) if memchr::memchr(0, text.as_bytes()).is_some() => {
            Err(root.invalid(r#type, "a text with the character U+0000"))
        }
        Parameter::Text(text) => {
            out.extend_from_slice(text.as_bytes());
            Ok(IsNull::No)
        }
        Parameter::Json(document) => {
            let value = Value::new(document, r#type, format, &root);
            if value.kind == JsonKind::Null {
                return Ok(IsNull::Yes);
            }
            value.write(out)?;
            Ok(IsNull::No)
        }
    }
}

impl Value<'_> {
    /// Appends the text of a value other than null.
    fn write(self, out: &mut BytesMut) -> Result<(), ValueError> {
        match self.r#type.kind() {
            Kind::Domain(base) => self.of(base).write(out),
            Kind::Array(element) if self.kind == JsonKind::Array => {
                array::write(self, element, out)
            }
            Kind::Range(bound) if self.kind == JsonKind::Object => range::write(self, bound, out),
            Kind::Multirange(part) if self.kind == JsonKind::Array => {
                range::write_many(self, part, out)
            }
            Kind::Composite(fields) if self.kind == JsonKind::Object => {
                composite::write(self, fields, out)
            }
            Kind::Array(_) => self.literal("an array", out),
            Kind::Range(_) => self.literal("an object with `lower` and `upper`", out),
            Kind::Multirange(_) => self.literal("an array of ranges", out),
            Kind::Composite(_) => self.literal("an object", out),
            _ => self.simple(out),
        }
    }

    /// Appends a value that is not in the JSON form of its type, such as a string for an array. A
    /// string is passed on as PostgreSQL's text. Any other value is an error; `expected` describes
    /// the JSON form.
    fn literal(self, expected: &str, out: &mut BytesMut) -> Result<(), ValueError> {
        if self.kind != JsonKind::String || self.format.is_some() {
            return Err(self.invalid(format!("{}, expected {expected}", self.kind)));
        }
        out.extend_from_slice(self.text()?.as_bytes());
        Ok(())
    }

    fn simple(self, out: &mut BytesMut) -> Result<(), ValueError> {
        let nested = matches!(self.kind, JsonKind::Array | JsonKind::Object);
        match *self.r#type {
            Type::JSON | Type::JSONB => {
                out.extend_from_slice(self.json.as_bytes());
                Ok(())
            }
            Type::BYTEA => self.bytes(out),
            // PostgreSQL reads no text as `record`, so only the caller can say which type is meant.
            Type::RECORD | Type::RECORD_ARRAY => Err(self.invalid(
                "the statement does not tell the composite type, expected its name in `type_hints`",
            )),
            Type::POINT if nested => geometric::point(self, out),
            Type::LINE if nested => geometric::line(self, out),
            Type::LSEG if nested => geometric::segment(self, out),
            Type::BOX if nested => geometric::r#box(self, out),
            Type::PATH if nested => geometric::path(self, out),
            Type::POLYGON if nested => geometric::polygon(self, out),
            Type::CIRCLE if nested => geometric::circle(self, out),
            Type::INTERVAL if nested => interval::write(self, out),
            _ if self.kind == JsonKind::Object && is_spatial(self.r#type) => {
                geojson::write(self, out)
            }
            _ if self.kind == JsonKind::Object && is_hstore(self.r#type) => {
                hstore::write(self, out)
            }
            _ => self.scalar(out),
        }
    }
}
