//! Rows out: JSON, CSV, NDJSON and GeoJSON.
//!
//! A [`RowWriter`] appends a result to a buffer row by row, straight from PostgreSQL's bytes. The
//! owner of the buffer decides when to send it.

mod csv;
mod schema;
mod writer;

pub use self::schema::{column_names, shown_type};
pub use self::writer::RowWriter;

use crate::datetime::Zone;

/// How a result is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// `{"schema":{…},"data":[…]}`.
    #[default]
    Json,
    /// Comma-separated values (RFC 4180) under a header line.
    Csv,
    /// One JSON object a line.
    Ndjson,
    /// A `FeatureCollection` (RFC 7946).
    GeoJson,
}

impl OutputFormat {
    /// The format of that name, as `output_format` has it.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "json" => Self::Json,
            // `ccsv` is what clients of older services call streamed CSV, which ours always is.
            "csv" | "ccsv" => Self::Csv,
            "ndjson" => Self::Ndjson,
            "geojson" => Self::GeoJson,
            _ => return None,
        })
    }

    /// The media type of a whole result.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Ndjson => "application/x-ndjson",
            Self::GeoJson => "application/geo+json",
        }
    }

    /// The ending of a file in this format, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
            Self::GeoJson => "geojson",
        }
    }

    /// Whether the first rows may leave before the last are there.
    pub fn streams(self) -> bool {
        matches!(self, Self::Csv | Self::Ndjson)
    }
}

/// What a request says about its output.
#[derive(Clone, Debug, Default)]
pub struct OutputOptions {
    /// Format specifiers by the name of a column or placeholder.
    pub type_formats: Vec<(String, String)>,
    /// The names of the statement's placeholders; a format may name one of these alone.
    pub placeholders: Vec<String>,
    /// The zone in which formatted values are shown; `None` is UTC.
    pub timezone: Option<Zone>,
    /// JSON text that comes back as the member `id` of a JSON result.
    pub id: Option<String>,
}
