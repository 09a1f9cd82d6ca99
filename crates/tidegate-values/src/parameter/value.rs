//! A JSON value together with the type for which it is encoded.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::{BufMut, BytesMut};
use postgres_types::Type;
use serde_json::value::RawValue;

use super::InputFormat;
use super::place::ValuePath;
use crate::datetime;
use crate::error::ValueError;
use crate::json::{self, JsonKind};

/// The decoder of base64 (RFC 4648, section 4), with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A JSON value, the PostgreSQL type for which it is encoded, and its path in the request.
#[derive(Clone, Copy)]
pub(super) struct Value<'a> {
    pub(super) json: &'a str,
    pub(super) kind: JsonKind,
    pub(super) r#type: &'a Type,
    pub(super) format: Option<&'a InputFormat>,
    pub(super) place: &'a ValuePath<'a>,
}

impl<'a> Value<'a> {
    pub(super) fn new(
        json: &'a str,
        r#type: &'a Type,
        format: Option<&'a InputFormat>,
        place: &'a ValuePath<'a>,
    ) -> Self {
        Self {
            json: json.trim_ascii(),
            kind: JsonKind::of(json),
            r#type,
            format,
            place,
        }
    }

    /// The same value with another type.
    pub(super) fn of(self, r#type: &'a Type) -> Self {
        Self { r#type, ..self }
    }

    /// The same value with another path.
    pub(super) fn at<'b>(self, place: &'b ValuePath<'b>) -> Value<'b>
    where
        'a: 'b,
    {
        Value { place, ..self }
    }

    /// Appends the value in quotes, as an element of an array, composite or range. Numbers and
    /// booleans need no quotes.
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

    /// The error for a value that does not fit its type.
    pub(super) fn invalid(self, problem: impl std::fmt::Display) -> ValueError {
        self.place.invalid(self.r#type, problem)
    }

    /// The elements of the value, which must be an array.
    pub(super) fn elements(self) -> Result<Vec<&'a RawValue>, ValueError> {
        json::elements(self.json).map_err(|error| self.invalid(json::problem(&error)))
    }

    /// The members of the value, which must be an object, in the order of `names`. A missing member
    /// is `None`. Any other member is an error.
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
                let place = ValuePath::Member(self.place, name);
                return Err(place.invalid(self.r#type, format!("unknown, expected {}", expected())));
            };
            if found[index].replace(raw.get()).is_some() {
                let place = ValuePath::Member(self.place, name);
                return Err(place.invalid(self.r#type, "given twice"));
            }
        }
        Ok(found)
    }

    /// The text of the value, which must be a string.
    pub(super) fn text(self) -> Result<Cow<'a, str>, ValueError> {
        json::string(self.json).map_err(|problem| self.invalid(problem))
    }

    /// Writes a string, number or boolean unchanged. If the parameter has a date format, parses the
    /// value in this format.
    pub(super) fn scalar(self, out: &mut BytesMut) -> Result<(), ValueError> {
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

    /// Writes a base64 string as `bytea`. A string that begins with `\x` is PostgreSQL's text form
    /// already, and is written unchanged.
    pub(super) fn bytes(self, out: &mut BytesMut) -> Result<(), ValueError> {
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

/// Puts a backslash before each quote and each backslash that `out` has after the position `mark`.
/// The texts of arrays, composites, ranges and `hstore` all accept such escapes.
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
