//! Writes the results of calls row by row.

use bytes::BytesMut;
use tidegate_sql::{Completion, Flow, Result, RowSink};
use tidegate_values::codec::{json_escape, json_string};
use tidegate_values::output::{column_names, shown_type};
use tidegate_values::{Column, OutputFormat, RawRow, RowWriter};

use crate::output::Output;

/// Writes the value of the member `result` of a response: an object with the members `schema` and
/// `data`, and `affected_rows` for a write.
pub(crate) struct ResultWriter {
    writer: RowWriter,
    data: DataForm,
    /// A piece of the text in `data` that is not escaped yet.
    piece: BytesMut,
}

/// The form of the rows in the member `data`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DataForm {
    /// An array of objects, one for each row. The row writer writes the whole result.
    Rows,
    /// One JSON document with all rows, for GeoJSON.
    Document,
    /// A string that contains the rows as CSV or NDJSON.
    Text,
}

impl ResultWriter {
    pub(crate) fn new(writer: RowWriter, format: OutputFormat) -> Self {
        let data = match format {
            OutputFormat::Json => DataForm::Rows,
            OutputFormat::GeoJson => DataForm::Document,
            OutputFormat::Csv | OutputFormat::Ndjson => DataForm::Text,
        };
        Self {
            writer,
            data,
            piece: BytesMut::new(),
        }
    }

    /// Writes the start of the result.
    pub(crate) fn columns(&mut self, columns: &[Column], out: &mut BytesMut) -> Result<()> {
        if self.data != DataForm::Rows {
            out.extend_from_slice(b"{\"schema\":");
            write_schema(columns, out);
            out.extend_from_slice(b",\"data\":");
            if self.data == DataForm::Text {
                out.extend_from_slice(b"\"");
            }
        }
        self.append(out, |writer, out| Ok(writer.columns(columns, out)?))
    }

    pub(crate) fn row(&mut self, row: RawRow<'_>, out: &mut BytesMut) -> Result<()> {
        self.append(out, |writer, out| Ok(writer.row(row, out)?))
    }

    /// Writes the end of the result.
    pub(crate) fn finish(&mut self, completion: Completion, out: &mut BytesMut) -> Result<()> {
        self.append(out, |writer, out| {
            writer.finish(completion.affected_rows, out);
            Ok(())
        })?;
        if self.data == DataForm::Rows {
            return Ok(());
        }
        if self.data == DataForm::Text {
            out.extend_from_slice(b"\"");
        }
        if let Some(rows) = completion.affected_rows {
            out.extend_from_slice(b",\"affected_rows\":");
            out.extend_from_slice(rows.to_string().as_bytes());
        }
        out.extend_from_slice(b"}");
        Ok(())
    }

    /// Calls `write` with the row writer and appends the output to the member `data`, escaped if
    /// `data` is a string.
    fn append(
        &mut self,
        out: &mut BytesMut,
        write: impl FnOnce(&mut RowWriter, &mut BytesMut) -> Result<()>,
    ) -> Result<()> {
        if self.data == DataForm::Text {
            write(&mut self.writer, &mut self.piece)?;
            json_escape(&self.piece, out);
            self.piece.clear();
            Ok(())
        } else {
            write(&mut self.writer, out)
        }
    }
}

/// The sink for the rows of a call with a response.
pub(crate) struct ResultSink<'a> {
    pub(crate) result: ResultWriter,
    pub(crate) out: &'a mut dyn Output,
}

impl RowSink for ResultSink<'_> {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.result.columns(columns, self.out.bytes())?;
        self.out.check()
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        self.result.row(row, self.out.bytes())?;
        self.out.check()?;
        Ok(Flow::Continue)
    }
}

/// The sink for the rows of a notification. It discards the rows, because a notification has no
/// response.
pub(crate) struct Discard;

impl RowSink for Discard {
    fn columns(&mut self, _: &[Column]) -> Result<()> {
        Ok(())
    }

    fn row(&mut self, _: RawRow<'_>) -> Result<Flow> {
        Ok(Flow::Continue)
    }
}

/// Appends an object that maps each column's name to an object with the members `type` (the name of
/// the type) and `array` (a boolean).
pub(crate) fn write_schema(columns: &[Column], out: &mut BytesMut) {
    let names = column_names(columns);
    let types = columns.iter().map(|column| &column.r#type);
    write_types(names.iter().map(AsRef::as_ref).zip(types), out);
}

/// Appends an object that maps each name to an object with the members `type` and `array`.
pub(crate) fn write_types<'a>(
    entries: impl Iterator<Item = (&'a str, &'a tidegate_values::Type)>,
    out: &mut BytesMut,
) {
    out.extend_from_slice(b"{");
    for (index, (name, r#type)) in entries.enumerate() {
        let (shown, array) = shown_type(r#type);
        if index > 0 {
            out.extend_from_slice(b",");
        }
        json_string(name.as_bytes(), out);
        out.extend_from_slice(b":{\"type\":");
        json_string(shown.as_bytes(), out);
        out.extend_from_slice(if array {
            b",\"array\":true}"
        } else {
            b",\"array\":false}"
        });
    }
    out.extend_from_slice(b"}");
}
