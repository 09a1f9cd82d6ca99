//! Writes rows as JSON, CSV, NDJSON or GeoJSON.
//!
//! A [`RowWriter`] appends a result to a buffer row by row, directly from PostgreSQL's bytes. The
//! owner of the buffer decides when to send it.

mod csv;
mod schema;
mod writer;

pub use self::schema::{column_names, shown_type};
pub use self::writer::RowWriter;

use crate::datetime::Zone;

/// The format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OutputFormat {
    /// `{"schema":{…},"data":[…]}`.
    #[default]
    Json,
    /// Comma-separated values (RFC 4180) after a header line.
    Csv,
    /// One JSON object on each line.
    Ndjson,
    /// A `FeatureCollection` (RFC 7946).
    GeoJson,
}

impl OutputFormat {
    /// The format that the member `output_format` names; `None` for an unknown name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "json" => Self::Json,
            // Clients of similar services request streamed CSV as `ccsv`. In this service CSV is
            // always streamed, so both names mean the same.
            "csv" | "ccsv" => Self::Csv,
            "ndjson" => Self::Ndjson,
            "geojson" => Self::GeoJson,
            _ => return None,
        })
    }

    /// The media type of a response in this format.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json; charset=utf-8",
            Self::Csv => "text/csv; charset=utf-8",
            Self::Ndjson => "application/x-ndjson",
            Self::GeoJson => "application/geo+json",
        }
    }

    /// The file name extension of the format, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Ndjson => "ndjson",
            Self::GeoJson => "geojson",
        }
    }

    /// Whether a response can be sent while the statement still returns rows.
    pub fn streams(self) -> bool {
        matches!(self, Self::Csv | Self::Ndjson)
    }
}

/// The options for the output of a request.
#[derive(Clone, Debug, Default)]
pub struct OutputOptions {
    /// The format specifiers of columns and placeholders, as pairs of a name and the specifiers.
    pub type_formats: Vec<(String, String)>,
    /// The names of the statement's placeholders. A format for one of these names is valid even if
    /// no column has the name.
    pub placeholders: Vec<String>,
    /// The zone in which formatted values are written; `None` is UTC.
    pub timezone: Option<Zone>,
    /// The JSON text of the member `id` of a JSON result; `None` for a result without the member.
    pub id: Option<String>,
}
