//! Values in: from JSON to the text that PostgreSQL's input functions take.
//!
//! Strings, numbers and booleans are handed on as they are, so that PostgreSQL accepts what it
//! always accepts. Arrays and objects become the text of the parameter's type: arrays, ranges,
//! multiranges, composites, geometry, intervals, `hstore`, and JSON documents verbatim.

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
use postgres_types::Type;

use self::place::{Place, written};
use self::value::Value;
use crate::datetime::{MomentType, Zone};
use crate::error::ValueError;
use crate::json::JsonKind;

/// The value of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parameter {
    /// SQL NULL.
    Null,
    /// A JSON document, verbatim, so that numbers keep their digits.
    Json(Box<str>),
    /// The text form of the parameter's type, as PostgreSQL's input function takes it.
    Text(Box<str>),
}

/// How the text of a date or time is written.
#[derive(Clone, Debug)]
pub struct InputFormat {
    /// Format specifiers, as `type_formats` has them.
    pub specifiers: String,
    /// The zone of a text that names none.
    pub zone: Zone,
}

/// Whether a parameter is SQL NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsNull {
    /// SQL NULL; nothing was written.
    Yes,
    /// A value; its text was written.
    No,
}

/// Appends the text form that PostgreSQL's input function of the type takes.
///
/// `format` is the placeholder's entry in `type_formats`; `place` names the value in errors and is
/// called only for one. What was appended before an error is of no use.
///
/// # Errors
///
/// [`ValueError::InvalidValue`] with the path inside the value, what was expected and what was
/// found; [`ValueError::InvalidFormat`] for a format on a type that has none.
pub fn encode(
    value: &Parameter,
    r#type: &Type,
    format: Option<&InputFormat>,
    place: &dyn Fn() -> String,
    out: &mut BytesMut,
) -> Result<IsNull, ValueError> {
    let root = Place::Root(place);
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
