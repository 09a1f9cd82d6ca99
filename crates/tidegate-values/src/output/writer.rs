//! Writes a result row by row.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::BytesMut;

use super::schema::{self, column_names};
use super::{OutputFormat, OutputOptions, csv};
use crate::append::{json_string, number};
use crate::codec::{GeometrySource, ValueWriter};
use crate::column::{Column, RawRow};
use crate::datetime::DateFormat;
use crate::error::{MalformedValue, Result, ValueError};

/// Appends a result to a buffer, in one [`OutputFormat`].
///
/// Call [`columns`](Self::columns) once, [`row`](Self::row) for each row and
/// [`finish`](Self::finish) once. The buffer may be emptied between calls. After an error the
/// buffer ends in an incomplete row and the writer must not be used again.
#[derive(Debug)]
pub struct RowWriter {
    format: OutputFormat,
    date_formats: Vec<(String, Arc<DateFormat>)>,
    placeholders: Vec<String>,
    id: Option<String>,
    columns: Vec<ColumnWriter>,
    /// The index of the column that is the geometry of a GeoJSON feature; `None` in other formats,
    /// or if no column is a geometry.
    geometry: Option<usize>,
    /// Whether a row has been written.
    begun: bool,
}

#[derive(Debug)]
struct ColumnWriter {
    /// The text before the value. It is `{"name":` or `,"name":` in JSON, and `,` or nothing in
    /// CSV.
    prefix: Box<[u8]>,
    value: ValueWriter,
    /// Whether line breaks in the value must be replaced by spaces, because each row is one line.
    joins_lines: bool,
}

impl RowWriter {
    /// A writer for `format`. The format specifiers are parsed here.
    ///
    /// # Errors
    /// [`ValueError::InvalidFormat`] for invalid specifiers.
    pub fn new(format: OutputFormat, options: OutputOptions) -> Result<Self, ValueError> {
        let zone = options.timezone.unwrap_or_default();
        let read =
            |(name, specifiers): (String, String)| match DateFormat::new(&specifiers, zone.clone())
            {
                Ok(format) => Ok((name, Arc::new(format))),
                Err(problem) => Err(ValueError::InvalidFormat { name, problem }),
            };
        Ok(Self {
            format,
            date_formats: options
                .type_formats
                .into_iter()
                .map(read)
                .collect::<Result<_, _>>()?,
            placeholders: options.placeholders,
            id: options.id,
            columns: Vec::new(),
            geometry: None,
            begun: false,
        })
    }

    /// The format of the result.
    pub fn format(&self) -> OutputFormat {
        self.format
    }

    /// Changes the format to JSON, for a statement without result columns, because no other format
    /// can contain `affected_rows`. Must be called before [`columns`](Self::columns).
    pub fn fall_back_to_json(&mut self) {
        self.format = OutputFormat::Json;
    }

    /// Appends the start of the result, and chooses the writer of each column.
    ///
    /// # Errors
    /// [`ValueError::InvalidFormat`] if the name of a format is neither a column nor a placeholder,
    /// or if it is a column without dates or times and not also a placeholder.
    pub fn columns(&mut self, columns: &[Column], out: &mut BytesMut) -> Result<(), ValueError> {
        let names = column_names(columns);
        self.check_formats(&names)?;
        let values: Vec<ValueWriter> = names
            .iter()
            .zip(columns)
            .map(|(name, column)| self.value_writer(name, column))
            .collect::<Result<_, _>>()?;
        if self.format == OutputFormat::GeoJson {
            let first = |source| {
                values
                    .iter()
                    .position(|value| value.geometry() == Some(source))
            };
            self.geometry =
                first(GeometrySource::PostGis).or_else(|| first(GeometrySource::BuiltIn));
        }
        let mut first = true;
        self.columns = Vec::with_capacity(columns.len());
        for (at, (name, value)) in names.iter().zip(values).enumerate() {
            let prefix = if Some(at) == self.geometry {
                Box::default()
            } else {
                self.prefix(name, first)
            };
            first &= Some(at) == self.geometry;
            let joins_lines = self.format == OutputFormat::Ndjson && value.holds_json();
            self.columns.push(ColumnWriter {
                prefix,
                value,
                joins_lines,
            });
        }
        match self.format {
            OutputFormat::Json => {
                out.extend_from_slice(b"{\"schema\":");
                schema::write(&names, columns, out);
                out.extend_from_slice(b",\"data\":[");
            }
            OutputFormat::Csv => header(&names, out),
            OutputFormat::Ndjson => {}
            OutputFormat::GeoJson => {
                out.extend_from_slice(br#"{"type":"FeatureCollection","features":["#);
            }
        }
        Ok(())
    }

    /// Appends a row.
    ///
    /// # Errors
    /// [`MalformedValue`] if the row does not match the columns.
    #[inline]
    pub fn row(&mut self, row: RawRow<'_>, out: &mut BytesMut) -> Result<()> {
        match self.format {
            OutputFormat::Json => {
                self.separate(out);
                self.object(row, out)
            }
            OutputFormat::Ndjson => {
                self.object(row, out)?;
                out.extend_from_slice(b"\n");
                Ok(())
            }
            OutputFormat::Csv => self.record(row, out),
            OutputFormat::GeoJson => {
                self.separate(out);
                self.feature(row, out)
            }
        }
    }

    /// Appends the end of the result. `affected_rows` is the number of rows that the statement
    /// wrote; `None` for a statement that does not write.
    pub fn finish(&mut self, affected_rows: Option<u64>, out: &mut BytesMut) {
        match self.format {
            OutputFormat::Json => {
                out.extend_from_slice(b"]");
                if let Some(rows) = affected_rows {
                    out.extend_from_slice(b",\"affected_rows\":");
                    number::integer(rows, out);
                }
                if let Some(id) = &self.id {
                    out.extend_from_slice(b",\"id\":");
                    out.extend_from_slice(id.as_bytes());
                }
                out.extend_from_slice(b"}");
            }
            OutputFormat::GeoJson => out.extend_from_slice(b"]}"),
            OutputFormat::Csv | OutputFormat::Ndjson => {}
        }
    }

    fn check_formats(&self, names: &[Cow<'_, str>]) -> Result<(), ValueError> {
        for (name, _) in &self.date_formats {
            if !names.iter().any(|known| known == name) && !self.placeholders.contains(name) {
                return Err(ValueError::InvalidFormat {
                    name: name.clone(),
                    problem: "the result has no such column, nor the statement such a placeholder"
                        .to_owned(),
                });
            }
        }
        Ok(())
    }

    fn value_writer(&self, name: &str, column: &Column) -> Result<ValueWriter, ValueError> {
        let Some((_, format)) = self.date_formats.iter().find(|(named, _)| named == name) else {
            return Ok(ValueWriter::new(column));
        };
        match ValueWriter::formatted(column, format) {
            Some(value) => Ok(value),
            // The column is not a date or time, so the format belongs to the placeholder of the
            // same name.
            None if self
                .placeholders
                .iter()
                .any(|placeholder| placeholder == name) =>
            {
                Ok(ValueWriter::new(column))
            }
            None => Err(ValueError::InvalidFormat {
                name: name.to_owned(),
                problem: format!(
                    "the column is a {}; only dates, times, timestamps and their ranges and arrays take a format",
                    column.r#type.name()
                ),
            }),
        }
    }

    fn prefix(&self, name: &str, first: bool) -> Box<[u8]> {
        let mut prefix = BytesMut::with_capacity(name.len() + 8);
        match (self.format, first) {
            (OutputFormat::Csv, true) => {}
            (OutputFormat::Csv, false) => prefix.extend_from_slice(b","),
            (_, first) => {
                prefix.extend_from_slice(if first { b"{" } else { b"," });
                json_string(name.as_bytes(), &mut prefix);
                prefix.extend_from_slice(b":");
            }
        }
        prefix[..].into()
    }

    /// Appends a comma, unless no row has been written yet.
    #[inline]
    fn separate(&mut self, out: &mut BytesMut) {
        if std::mem::replace(&mut self.begun, true) {
            out.extend_from_slice(b",");
        }
    }

    /// Appends the row as an object, without the geometry column.
    #[inline]
    fn object(&self, row: RawRow<'_>, out: &mut BytesMut) -> Result<()> {
        let mut values = row.values();
        for (at, column) in self.columns.iter().enumerate() {
            let value = values.next().ok_or(MalformedValue)?;
            if Some(at) == self.geometry {
                continue;
            }
            out.extend_from_slice(&column.prefix);
            match value {
                None => out.extend_from_slice(b"null"),
                Some(raw) if column.joins_lines => column.json_line(raw, out)?,
                Some(raw) => column.value.json(raw, out)?,
            }
        }
        let bare = self.columns.len() == usize::from(self.geometry.is_some());
        out.extend_from_slice(if bare { b"{}" } else { b"}" });
        Ok(())
    }

    /// Appends the row as a line of CSV.
    fn record(&self, row: RawRow<'_>, out: &mut BytesMut) -> Result<()> {
        let mut values = row.values();
        for column in &self.columns {
            out.extend_from_slice(&column.prefix);
            if let Some(raw) = values.next().ok_or(MalformedValue)? {
                let start = out.len();
                column.value.plain(raw, out)?;
                csv::close_field(start, out);
            }
        }
        out.extend_from_slice(b"\r\n");
        Ok(())
    }

    /// Appends the row as a GeoJSON feature.
    fn feature(&self, row: RawRow<'_>, out: &mut BytesMut) -> Result<()> {
        out.extend_from_slice(br#"{"type":"Feature","geometry":"#);
        let raw = self.geometry.and_then(|at| row.values().nth(at)).flatten();
        match (raw, self.geometry.and_then(|at| self.columns.get(at))) {
            (Some(raw), Some(column)) => column.value.geojson(raw, out)?,
            _ => out.extend_from_slice(b"null"),
        }
        out.extend_from_slice(br#","properties":"#);
        self.object(row, out)?;
        out.extend_from_slice(b"}");
        Ok(())
    }
}

impl ColumnWriter {
    /// Appends a JSON document on one line. A line break in JSON text is white space between
    /// tokens, so a space can replace it.
    fn json_line(&self, raw: &[u8], out: &mut BytesMut) -> Result<()> {
        let start = out.len();
        self.value.json(raw, out)?;
        for byte in &mut out[start..] {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        Ok(())
    }
}

/// Appends the header line; a result without columns has none.
fn header(names: &[Cow<'_, str>], out: &mut BytesMut) {
    for (at, name) in names.iter().enumerate() {
        if at > 0 {
            out.extend_from_slice(b",");
        }
        let start = out.len();
        out.extend_from_slice(name.as_bytes());
        csv::close_field(start, out);
    }
    if !names.is_empty() {
        out.extend_from_slice(b"\r\n");
    }
}
