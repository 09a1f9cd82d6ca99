//! One JSON value and the type that it is for.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::{BufMut, BytesMut};
use postgres_types::{Kind, Type};
use serde_json::value::RawValue;

use super::InputFormat;
use super::place::Place;
use super::{array, composite, geojson, geometric, hstore, interval, range};
use crate::datetime;
use crate::error::ValueError;
use crate::json::{self, JsonKind};
use crate::type_property::{is_hstore, is_spatial};

/// base64 (RFC 4648, section 4), with or without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A JSON document, its type and its place.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    pub(super) json: &'a str,
    pub(super) kind: JsonKind,
    pub(super) r#type: &'a Type,
    pub(super) format: Option<&'a InputFormat>,
    pub(super) place: &'a Place<'a>,
}

impl<'a> Value<'a> {
    pub(super) fn new(
        json: &'a str,
        r#type: &'a Type,
        format: Option<&'a InputFormat>,
        place: &'a Place<'a>,
    ) -> Self {
        Self {
            json: json.trim_ascii(),
            kind: JsonKind::of(json),
            r#type,
            format,
            place,
        }
    }

    /// The same value for another type.
    pub(super) fn of(self, r#type: &'a Type) -> Self {
        Self { r#type, ..self }
    }

    /// The same value at another place.
    pub(super) fn at<'b>(self, place: &'b Place<'b>) -> Value<'b>
    where
        'a: 'b,
    {
        Value { place, ..self }
    }

    /// Appends the text of a value that is not null.
    pub(super) fn write(self, out: &mut BytesMut) -> Result<(), ValueError> {
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

    /// Appends the value in quotes, as it stands inside an array, a composite or a range; a
    /// number or boolean needs none.
    pub(super) fn write_quoted(self, out: &mut BytesMut) -> Result<(), ValueError> {
        if matches!(self.kind, JsonKind::Number | JsonKind::Bool) && self.format.is_none() {
            return self.write(out);
        }
        out.put_u8(b'"');
        let mark = out.len();
        self.write(out)?;
        escape(out, mark);
        out.put_u8(b'"');
        Ok(())
    }

    /// The error of a value that does not fit.
    pub(super) fn invalid(self, problem: impl std::fmt::Display) -> ValueError {
        self.place.invalid(self.r#type, problem)
    }

    /// The elements of an array.
    pub(super) fn elements(self) -> Result<Vec<&'a RawValue>, ValueError> {
        json::elements(self.json).map_err(|error| self.invalid(json::problem(&error)))
    }

    /// The members of an object in the order of `names`; there may be no others.
    pub(super) fn members<const N: usize>(
        self,
        names: [&str; N],
    ) -> Result<[Option<&'a str>; N], ValueError> {
        let expected = || names.map(|name| format!("`{name}`")).join(", ");
        if self.kind != JsonKind::Object {
            return Err(self.invalid(format!(
                "{}, expected an object of {}",
                self.kind,
                expected()
            )));
        }
        let members =
            json::members(self.json).map_err(|error| self.invalid(json::problem(&error)))?;
        let mut found = [None; N];
        for (name, raw) in &members {
            let Some(index) = names.iter().position(|known| known == name) else {
                let place = Place::Member(self.place, name);
                return Err(place.invalid(self.r#type, format!("unknown, expected {}", expected())));
            };
            if found[index].replace(raw.get()).is_some() {
                let place = Place::Member(self.place, name);
                return Err(place.invalid(self.r#type, "given twice"));
            }
        }
        Ok(found)
    }

    /// The text of a string value.
    pub(super) fn text(self) -> Result<Cow<'a, str>, ValueError> {
        json::string(self.json).map_err(|problem| self.invalid(problem))
    }

    /// A type with a JSON form of its own; a string is taken for PostgreSQL's literal of it.
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

    /// Hands a string, number or boolean to PostgreSQL.
    fn scalar(self, out: &mut BytesMut) -> Result<(), ValueError> {
        if let Some(format) = self.format {
            return self.formatted(format, out);
        }
        match self.kind {
            JsonKind::String => out.extend_from_slice(self.text()?.as_bytes()),
            JsonKind::Number | JsonKind::Bool => out.extend_from_slice(self.json.as_bytes()),
            JsonKind::Null | JsonKind::Array | JsonKind::Object => {
                return Err(self.invalid(self.kind));
            }
        }
        Ok(())
    }

    fn formatted(self, format: &InputFormat, out: &mut BytesMut) -> Result<(), ValueError> {
        let text = match self.kind {
            JsonKind::String => self.text()?,
            JsonKind::Number => Cow::Borrowed(self.json),
            kind => return Err(self.invalid(format!("{kind}, expected a string"))),
        };
        let text = datetime::parse_in_zone(&format.specifiers, &text, self.r#type, &format.zone)
            .map_err(|problem| self.invalid(problem))?;
        out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// base64, or what begins with `\x`, which PostgreSQL reads itself.
    fn bytes(self, out: &mut BytesMut) -> Result<(), ValueError> {
        const EXPECTED: &str = "expected base64, or `\\x` and hex digits";
        if self.kind != JsonKind::String {
            return Err(self.invalid(format!("{}, {EXPECTED}", self.kind)));
        }
        let text = self.text()?;
        if text.starts_with("\\x") {
            out.extend_from_slice(text.as_bytes());
            return Ok(());
        }
        let bytes = BASE64
            .decode(text.as_bytes())
            .map_err(|_| self.invalid(format!("a string that is not base64, {EXPECTED}")))?;
        out.reserve(2 + 2 * bytes.len());
        out.extend_from_slice(b"\\x");
        for byte in bytes {
            out.put_slice(&[hex(byte >> 4), hex(byte & 15)]);
        }
        Ok(())
    }
}

fn hex(digit: u8) -> u8 {
    b"0123456789abcdef"[usize::from(digit)]
}

/// Protects quotes and backslashes behind `mark` with a backslash, which arrays, composites, ranges
/// and `hstore` read alike.
pub(super) fn escape(out: &mut BytesMut, mark: usize) {
    let Some(first) = memchr::memchr2(b'"', b'\\', &out[mark..]) else {
        return;
    };
    let plain = out[mark + first..].to_vec();
    out.truncate(mark + first);
    out.reserve(plain.len() + 8);
    for byte in plain {
        if matches!(byte, b'"' | b'\\') {
            out.put_u8(b'\\');
        }
        out.put_u8(byte);
    }
}
