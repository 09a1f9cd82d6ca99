//! Values out: the bytes that PostgreSQL sends for a column, written as JSON.
//!
//! [`wire_format`] says in which format a column should be asked for, [`ValueWriter`] writes its
//! values. What a value looks like is decided once per column, from its type alone, down through
//! arrays, ranges, composites and domains; a value then costs one jump and no allocation.
//!
//! | Types | JSON |
//! |---|---|
//! | `int2` `int4` `int8` `oid` | number |
//! | `float4` `float8` | the shortest number that reads back; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | `numeric` | string, every digit |
//! | `bool` | `true`, `false` |
//! | `json` `jsonb` | the document, verbatim |
//! | `date` `time` `timestamp` … | ISO 8601 strings, `timestamptz` in UTC with `Z`; or format specifiers |
//! | `interval` | `{"y","m","d","h","i","s"}` |
//! | `bytea` | base64 |
//! | `point` … `circle` | objects |
//! | PostGIS | GeoJSON geometry |
//! | ranges, multiranges, composites, arrays | objects and arrays of the above |
//! | `hstore` | its text form as a string; or, where a writer is asked for it, an object |
//! | everything else | its text form as a string |
//!
//! Types whose binary form this crate does not read come as text, and so does everything that
//! contains one; both wire formats give the same JSON. Attributes of an anonymous `record` have
//! neither names nor types here: they are `f1`, `f2` … and strings.

mod binary;
pub mod bytea;
mod hstore;
mod interval;
mod json_form;
mod pg_geometric;
mod postgis;
mod range;
mod text;
mod token;

use std::sync::Arc;

use bytes::BytesMut;
use postgres_types::Type;

use self::json_form::Form;
use crate::column::{Column, WireFormat};
use crate::datetime::{DateFormat, MomentType};
use crate::error::Result;

pub use self::interval::Interval;
pub use crate::append::json_string;

/// The format in which the values of a type should be asked for: binary when this crate reads it
/// all the way down, text otherwise.
pub fn wire_format(r#type: &Type) -> WireFormat {
    if Form::of(r#type, None).is_binary() {
        WireFormat::Binary
    } else {
        WireFormat::Text
    }
}

/// Writes the values of one column.
#[derive(Clone, Debug)]
pub struct ValueWriter {
    form: Form,
    format: WireFormat,
}

impl ValueWriter {
    /// A writer for the type and the wire format of `column`.
    pub fn new(column: &Column) -> Self {
        Self {
            form: Form::of(&column.r#type, None),
            format: column.format,
        }
    }

    /// A writer that shows the column's moments by format specifiers; `None` when its type is neither
    /// a date, time or timestamp, nor an array or range of them.
    pub fn formatted(column: &Column, format: &Arc<DateFormat>) -> Option<Self> {
        MomentType::of(&column.r#type)?;
        Some(Self {
            form: Form::of(&column.r#type, Some(format)),
            format: column.format,
        })
    }

    /// The same writer, but `int8` and `oid` are strings, also in arrays and ranges: for readers
    /// whose integers have 32 bits. Composites and multiranges keep their numbers.
    pub fn exact(self) -> Self {
        let (form, format) = (self.form.exact(), self.format);
        Self { form, format }
    }

    /// The same writer, but `hstore` values are objects of strings and nulls instead of
    /// PostgreSQL's text, also in arrays and composites.
    pub fn with_hstore_objects(self) -> Self {
        let (form, format) = (self.form.with_hstore_objects(), self.format);
        Self { form, format }
    }

    /// The same writer, but numbers and booleans are strings.
    pub fn quoted(self) -> Self {
        let (form, format) = (self.form.quoted(), self.format);
        Self { form, format }
    }

    /// Appends a value as JSON.
    ///
    /// # Errors
    /// [`MalformedValue`](crate::MalformedValue) when the bytes are no value of the column's type in its wire format;
    /// then `out` may hold part of the value.
    #[inline]
    pub fn json(&self, raw: &[u8], out: &mut BytesMut) -> Result<()> {
        match self.format {
            WireFormat::Binary => binary::json(&self.form, raw, out),
            WireFormat::Text => text::json(&self.form, raw, out),
        }
    }

    /// Appends a value as plain text: strings as they are, without quotes and escapes; objects,
    /// arrays and everything else as JSON.
    ///
    /// # Errors
    /// As [`ValueWriter::json`].
    pub fn plain(&self, raw: &[u8], out: &mut BytesMut) -> Result<()> {
        match self.format {
            WireFormat::Binary => binary::plain(&self.form, raw, out),
            WireFormat::Text => text::plain(&self.form, raw, out),
        }
    }

    /// Appends a value as a GeoJSON geometry, or `null` where it has none.
    ///
    /// # Errors
    /// As [`ValueWriter::json`].
    pub fn geojson(&self, raw: &[u8], out: &mut BytesMut) -> Result<()> {
        let shown = match &self.form {
            Form::Geometry => {
                let start = out.len();
                self.json(raw, out)?;
                let shown = out.get(start) == Some(&b'{');
                if !shown {
                    out.truncate(start);
                }
                shown
            }
            Form::Geometric(shape) => shape.geojson(raw, self.format == WireFormat::Binary, out)?,
            _ => false,
        };
        if !shown {
            out.extend_from_slice(b"null");
        }
        Ok(())
    }

    /// How well the column serves as the geometry of a GeoJSON feature.
    pub(crate) fn geometry(&self) -> Option<GeometrySource> {
        match &self.form {
            Form::Geometry => Some(GeometrySource::PostGis),
            Form::Geometric(shape) => shape.has_geojson().then_some(GeometrySource::BuiltIn),
            _ => None,
        }
    }

    /// Whether values may hold line breaks between JSON tokens.
    pub(crate) fn holds_json(&self) -> bool {
        self.form.holds_json()
    }
}

/// Where a GeoJSON geometry comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GeometrySource {
    PostGis,
    BuiltIn,
}
