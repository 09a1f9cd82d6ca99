//! Encodes the rows of events as JSON objects.

use std::fmt;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use tidegate_values::codec::{ValueWriter, json_string};

use crate::decode::change::Row;
use crate::decode::pgoutput::ColumnValue;
use crate::decode::schema::RelationSchema;
use crate::event::selection::{CustomWriter, FieldError, PathSegment, Selection, ValueForm};

#[derive(Clone, Debug)]
pub(crate) struct EncodedRow {
    /// The row as a JSON object; `null` if a value cannot be represented and must not be null.
    pub(crate) row: Bytes,
    /// The errors of values that cannot be represented; `None` if there are none.
    pub(crate) field_errors: Option<Arc<[FieldError]>>,
    /// The names of the columns of the primary key, if they are requested and known; otherwise
    /// `None`.
    pub(crate) key: Option<Arc<[Box<str>]>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EncodeError {
    /// The table no longer has this column.
    NoColumn(Box<str>),
    /// The change log does not contain a selected value.
    Absent,
    /// A value is not valid for its type.
    Malformed,
    /// The selection requests the primary key, but does not contain all its columns.
    KeyNotSelected,
}

impl From<tidegate_values::MalformedValue> for EncodeError {
    fn from(_: tidegate_values::MalformedValue) -> Self {
        Self::Malformed
    }
}

/// Encodes rows of one schema for one selection. The encoder contains the constant parts of the
/// JSON.
#[derive(Debug)]
pub(crate) struct RowEncoder {
    columns: Box<[EncodedColumn]>,
    /// The JSON text after the last value. It ends with `}`.
    end: Bytes,
    key: Option<Arc<[Box<str>]>>,
}

#[derive(Debug)]
struct EncodedColumn {
    /// The text before the value, such as `{"key":` or `,"key":`.
    prefix: Bytes,
    /// The index of the column in the schema.
    column: usize,
    writer: ColumnWriter,
}

enum ColumnWriter {
    Json(ValueWriter),
    /// Writes the plain text of the value as a JSON string.
    String(ValueWriter),
    Custom(CustomColumn),
}

/// A column that a [`CustomWriter`] writes.
struct CustomColumn {
    /// The name of the member in the JSON object.
    key: Arc<str>,
    not_null: bool,
    write: CustomWriter,
}

impl fmt::Debug for ColumnWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json(_) => "Json",
            Self::String(_) => "String",
            Self::Custom(_) => "Custom",
        })
    }
}

impl RowEncoder {
    pub(crate) fn new(selection: &Selection, schema: &RelationSchema) -> Result<Self, EncodeError> {
        let mut text = BytesMut::from(&b"{"[..]);
        let mut columns = Vec::with_capacity(selection.columns.len());
        for (at, selected) in selection.columns.iter().enumerate() {
            if at > 0 {
                text.extend_from_slice(b",");
            }
            json_string(selected.key.as_bytes(), &mut text);
            text.extend_from_slice(b":");
            if let ValueForm::Text(constant) = &selected.form {
                json_string(constant.as_bytes(), &mut text);
                continue;
            }
            let missing = || EncodeError::NoColumn(selected.column.clone());
            let column = schema.find(&selected.column).ok_or_else(missing)?;
            let wire = schema.wire_column(column).ok_or_else(missing)?;
            let writer = match &selected.form {
                ValueForm::Custom(form) => ColumnWriter::Custom(CustomColumn {
                    key: (&*selected.key).into(),
                    not_null: form.not_null,
                    write: (form.writer)(wire),
                }),
                ValueForm::String => ColumnWriter::String(ValueWriter::new(&wire)),
                ValueForm::Json | ValueForm::Text(_) => ColumnWriter::Json(ValueWriter::new(&wire)),
            };
            let prefix = text.split().freeze();
            columns.push(EncodedColumn {
                prefix,
                column,
                writer,
            });
        }
        text.extend_from_slice(b"}");
        let key = schema.primary_key().filter(|_| selection.key);
        let is_selected = |name: &str| selection.column_names().any(|one| one == name);
        if key.is_some_and(|key| !key.iter().all(|name| is_selected(name))) {
            return Err(EncodeError::KeyNotSelected);
        }
        Ok(Self {
            columns: columns.into(),
            end: text.freeze(),
            key: key.cloned(),
        })
    }

    /// Encodes a row as a JSON object. The row is `null` if a value cannot be represented and must
    /// not be null. The errors of values that cannot be represented are returned with the row.
    ///
    /// # Errors
    ///
    /// If a selected value is missing or malformed.
    pub(crate) fn encode(&self, row: Row<'_>) -> Result<EncodedRow, EncodeError> {
        let mut out = BytesMut::with_capacity(64 + 24 * self.columns.len());
        let mut field_errors = Vec::new();
        for encoded in &self.columns {
            out.extend_from_slice(&encoded.prefix);
            let is_allowed = match row.value(encoded.column) {
                ColumnValue::Null => {
                    out.extend_from_slice(b"null");
                    true
                }
                ColumnValue::Absent => return Err(EncodeError::Absent),
                ColumnValue::Text(raw) => encoded.write(raw, &mut out, &mut field_errors)?,
            };
            if !is_allowed {
                return Ok(EncodedRow {
                    row: Bytes::from_static(b"null"),
                    field_errors: Some(field_errors.into()),
                    key: self.key.clone(),
                });
            }
        }
        out.extend_from_slice(&self.end);
        Ok(EncodedRow {
            row: out.freeze(),
            field_errors: (!field_errors.is_empty()).then(|| field_errors.into()),
            key: self.key.clone(),
        })
    }
}

impl EncodedColumn {
    /// Appends a value. Returns `false` if the whole row must become null, because the value cannot
    /// be represented and must not be null.
    fn write(
        &self,
        raw: &[u8],
        out: &mut BytesMut,
        field_errors: &mut Vec<FieldError>,
    ) -> Result<bool, EncodeError> {
        match &self.writer {
            ColumnWriter::Json(writer) => writer.json(raw, out)?,
            ColumnWriter::String(writer) => {
                let mut plain = BytesMut::new();
                writer.plain(raw, &mut plain)?;
                json_string(&plain, out);
            }
            ColumnWriter::Custom(form) => {
                return form
                    .write(raw, out, field_errors)
                    .map_err(|_| EncodeError::Malformed);
            }
        }
        Ok(true)
    }
}

impl CustomColumn {
    fn write(
        &self,
        raw: &[u8],
        out: &mut BytesMut,
        field_errors: &mut Vec<FieldError>,
    ) -> tidegate_sql::Result<bool> {
        let (start, first_new) = (out.len(), field_errors.len());
        let is_represented = (self.write)(raw, out, field_errors)?;
        for field_error in &mut field_errors[first_new..] {
            field_error
                .path
                .insert(0, PathSegment::Key(self.key.clone()));
        }
        if !is_represented {
            out.truncate(start);
            out.extend_from_slice(b"null");
        }
        Ok(is_represented || !self.not_null)
    }
}
