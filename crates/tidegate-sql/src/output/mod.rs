//! Rows out: JSON, CSV, NDJSON and GeoJSON.

use bytes::BytesMut;

use crate::column::{Column, RawRow};
use crate::datetime::Zone;
use crate::error::{Error, InputError, Result};
use crate::executor::{BoxFuture, Completion, Flow, RowSink};

/// How a result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// `{"schema":{…},"data":[…]}`.
    #[default]
    Json,
    /// RFC 4180.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// A GeoJSON `FeatureCollection` (RFC 7946).
    GeoJson,
}

impl OutputFormat {
    /// The format that `output_format` names.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "json" => Self::Json,
            "csv" => Self::Csv,
            "ndjson" => Self::Ndjson,
            "geojson" => Self::GeoJson,
            _ => return None,
        })
    }

    /// The media type of the whole result.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Ndjson => "application/x-ndjson",
            Self::GeoJson => "application/geo+json",
        }
    }

    /// Whether rows may leave before the statement has ended.
    pub fn streams(self) -> bool {
        matches!(self, Self::Csv | Self::Ndjson)
    }
}

/// What a request says about its output.
#[derive(Clone, Debug, Default)]
pub struct OutputOptions {
    /// Date letters by column or placeholder name.
    pub type_formats: Vec<(String, String)>,
    /// The names of the statement's placeholders: a format that names one of them need not name a
    /// column.
    pub placeholders: Vec<String>,
    /// The zone for formatted values; `None` is UTC.
    pub timezone: Option<Zone>,
    /// JSON text that is echoed as the member `id` of a JSON result.
    pub id: Option<String>,
}

/// Writes a result row by row.
#[derive(Debug)]
pub struct RowWriter {}

impl RowWriter {
    /// Reads the date letters of `options`.
    pub fn new(format: OutputFormat, options: OutputOptions) -> Result<Self, InputError> {
        let _ = (format, options);
        Ok(Self {})
    }

    /// Writes what stands before the first row. Called once.
    pub fn columns(&mut self, columns: &[Column], out: &mut BytesMut) -> Result<()> {
        let _ = (&self, columns, out);
        Err(Error::internal("not written yet"))
    }

    /// Writes one row.
    pub fn row(&mut self, row: RawRow<'_>, out: &mut BytesMut) -> Result<()> {
        let _ = (&self, row, out);
        Err(Error::internal("not written yet"))
    }

    /// Writes what stands behind the last row.
    pub fn finish(&mut self, completion: Completion, out: &mut BytesMut) -> Result<()> {
        let _ = (&self, completion, out);
        Err(Error::internal("not written yet"))
    }
}

/// A sink that collects a whole result in memory, up to a limit.
#[derive(Debug)]
pub struct Buffer {
    writer: RowWriter,
    bytes: BytesMut,
    limit: u64,
}

impl Buffer {
    /// An empty buffer that takes at most `limit` bytes.
    pub fn new(writer: RowWriter, limit: u64) -> Self {
        Self { writer, bytes: BytesMut::new(), limit }
    }

    /// Ends the result and gives its bytes.
    pub fn finish(mut self, completion: Completion) -> Result<BytesMut> {
        self.writer.finish(completion, &mut self.bytes)?;
        self.check()?;
        Ok(self.bytes)
    }

    fn check(&self) -> Result<()> {
        if self.bytes.len() as u64 > self.limit {
            return Err(Error::ResultTooLarge(self.limit));
        }
        Ok(())
    }
}

impl RowSink for Buffer {
    fn columns(&mut self, columns: &[Column]) -> Result<()> {
        self.writer.columns(columns, &mut self.bytes)?;
        self.check()
    }

    fn row(&mut self, row: RawRow<'_>) -> Result<Flow> {
        self.writer.row(row, &mut self.bytes)?;
        self.check()?;
        Ok(Flow::Continue)
    }

    fn ready(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(std::future::ready(Ok(())))
    }
}
