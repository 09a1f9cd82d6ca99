//! Encodes values from PostgreSQL as JSON.
//!
//! [`wire_format`] returns the format in which to request a column, and [`ValueWriter`] writes its
//! values. The JSON form of a column is determined once, from its type and the options of the
//! writer. It includes the forms of elements, bounds, attributes and base types. Writing a value in
//! the binary format then takes one dispatch for the value and for each of its parts, and usually
//! no allocation.
//!
//! | Types | JSON |
//! |---|---|
//! | `int2` `int4` `int8` `oid` | number |
//! | `float4` `float8` | the shortest number of equal value; `"NaN"`, `"Infinity"`, `"-Infinity"` |
//! | `numeric` | string, every digit |
//! | `bool` | `true`, `false` |
//! | `json` `jsonb` | the document, verbatim |
//! | `date` `time` `timestamp` … | ISO 8601, `timestamptz` in UTC (`Z`); or by format specifiers |
//! | `interval` | object with `y`, `m`, `d`, `h`, `i`, `s` |
//! | `bytea` | base64 |
//! | `point` … `circle` | objects; a `polygon` is an array of points |
//! | PostGIS | GeoJSON geometry |
//! | ranges, multiranges, composites, arrays | objects and arrays of the forms in this table |
//! | `hstore` | its text as a string; or an object, if the writer is configured so |
//! | everything else | its text as a string |
//!
//! Types whose binary format this crate does not decode are requested as text, and so are types
//! that contain such a type. A value has the same JSON in both wire formats. The attributes of an
//! anonymous `record` have neither names nor known types. They are written as members with the
//! names `f1`, `f2` and so on, whose values are strings or null.

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

use self::json_form::JsonForm;
use crate::column::{Column, WireFormat};
use crate::datetime::{DateFormat, MomentType};
use crate::error::Result;

pub use self::interval::Interval;
pub use crate::append::{json_escape, json_string};

/// The format in which to request values of a type: binary if this crate decodes the whole type,
/// text otherwise.
pub fn wire_format(r#type: &Type) -> WireFormat {
    if JsonForm::of(r#type, None).is_binary() {
        WireFormat::Binary
    } else {
        WireFormat::Text
    }
}

/// Writes the values of one column.
#[derive(Clone, Debug)]
pub struct ValueWriter {
    form: JsonForm,
    format: WireFormat,
}

impl ValueWriter {
    /// A writer for the type and wire format of `column`.
    pub fn new(column: &Column) -> Self {
        Self {
            form: JsonForm::of(&column.r#type, None),
            format: column.format,
        }
    }

    /// A writer that writes dates and times by format specifiers. Returns `None` unless the column
    /// has a date, time or timestamp type, or an array, range, multirange or domain of such a type.
    pub fn formatted(column: &Column, format: &Arc<DateFormat>) -> Option<Self> {
        MomentType::of(&column.r#type)?;
        Some(Self {
            form: JsonForm::of(&column.r#type, Some(format)),
            format: column.format,
        })
    }

    /// The same writer, but with `int8` and `oid` as strings, also in arrays and ranges, for
    /// clients whose integers have 32 bits. Composites and multiranges keep their numbers.
    pub fn exact(self) -> Self {
        let (form, format) = (self.form.exact(), self.format);
        Self { form, format }
    }

    /// The same writer, but with `hstore` values as objects of strings and nulls instead of
    /// PostgreSQL's text, also in arrays and composites.
    pub fn with_hstore_objects(self) -> Self {
        let (form, format) = (self.form.with_hstore_objects(), self.format);
        Self { form, format }
    }

    /// The same writer, but with numbers and booleans as strings. Elements of arrays, bounds of
    /// ranges and attributes of composites are unchanged.
    pub fn quoted(self) -> Self {
        let (form, format) = (self.form.quoted(), self.format);
        Self { form, format }
    }

    /// Appends a value as JSON.
    ///
    /// # Errors
    /// [`MalformedValue`](crate::MalformedValue) if the bytes are not a value of the column's type
    /// in its wire format; `out` may then have part of the value.
    #[inline]
    pub fn json(&self, raw: &[u8], out: &mut BytesMut) -> Result<()> {
        match self.format {
            WireFormat::Binary => binary::json(&self.form, raw, out),
            WireFormat::Text => text::json(&self.form, raw, out),
        }
    }

    /// Appends a value as plain text: strings without quotes and escapes, everything else as JSON.
    ///
    /// # Errors
    /// As [`ValueWriter::json`].
    pub fn plain(&self, raw: &[u8], out: &mut BytesMut) -> Result<()> {
        match self.format {
            WireFormat::Binary => binary::plain(&self.form, raw, out),
            WireFormat::Text => text::plain(&self.form, raw, out),
        }
    }

    /// Appends a value as a GeoJSON geometry. Appends `null` if GeoJSON cannot represent the value,
    /// or if the column is not a geometry.
    ///
    /// # Errors
    /// As [`ValueWriter::json`].
    pub fn geojson(&self, raw: &[u8], out: &mut BytesMut) -> Result<()> {
        let shown = match &self.form {
            JsonForm::Geometry => {
                let start = out.len();
                self.json(raw, out)?;
                let shown = out.get(start) == Some(&b'{');
                if !shown {
                    out.truncate(start);
                }
                shown
            }
            JsonForm::Geometric(shape) => {
                shape.geojson(raw, self.format == WireFormat::Binary, out)?
            }
            _ => false,
        };
        if !shown {
            out.extend_from_slice(b"null");
        }
        Ok(())
    }

    /// The kind of the column, if a GeoJSON geometry can be made from it; otherwise `None`.
    pub(crate) fn geometry(&self) -> Option<GeometrySource> {
        match &self.form {
            JsonForm::Geometry => Some(GeometrySource::PostGis),
            JsonForm::Geometric(shape) => shape.has_geojson().then_some(GeometrySource::BuiltIn),
            _ => None,
        }
    }

    /// Whether values may contain `json` documents, which may have line breaks between tokens.
    pub(crate) fn holds_json(&self) -> bool {
        self.form.holds_json()
    }
}

/// The kind of column from which a GeoJSON geometry is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GeometrySource {
    /// A column of PostGIS `geometry` or `geography`.
    PostGis,
    /// A column of a built-in geometric type.
    BuiltIn,
}
