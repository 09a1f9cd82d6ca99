//! Definitions of methods, and changes to them.

mod patch;
mod read;

pub(crate) use patch::infers_the_same;
pub use patch::{MemberChange, Patch};
pub use read::is_definition;

use tidegate_sql::{InputError, Statement};
use tidegate_values::OutputFormat;

use crate::error::Result;
use crate::name::MethodName;

/// The members of an object with string values. Names are distinct.
pub type StringMap = Vec<(String, String)>;

/// The definition of a method: a statement with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name of the method.
    pub name: MethodName,
    /// The statement's text, with placeholders.
    pub q: String,
    /// Type names by placeholder or column.
    pub type_hints: StringMap,
    /// Format specifiers by placeholder or column.
    pub type_formats: StringMap,
    /// JSON, CSV or NDJSON, if given.
    pub output_format: Option<OutputFormat>,
}

/// Limits on the size of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most bytes of a statement's text.
    pub statement: usize,
    /// The most definitions of an array.
    pub definitions: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            statement: 1 << 20,
            definitions: 1_000,
        }
    }
}

impl Definition {
    /// Parses the body of a request that defines methods: an object with the members `method`, `q`,
    /// `type_hints`, `type_formats` and `output_format`, or an array of such objects. A null counts
    /// as absent. The statement is parsed for its placeholders and its kind. PostgreSQL checks the
    /// SQL in a dry run.
    ///
    /// # Errors
    ///
    /// [`Error::Request`](crate::Error::Request) with the member, in an array with its index as in
    /// `[1].q`, and [`Error::Statement`](crate::Error::Statement).
    pub fn parse(body: &[u8], limits: Limits) -> Result<Vec<Self>> {
        read::definitions(body, limits)
    }

    /// Parses the statement.
    ///
    /// # Errors
    ///
    /// As [`Statement::parse`].
    pub fn statement(&self) -> Result<Statement, InputError> {
        Statement::parse(&self.q)
    }

    /// The name of the output format.
    pub fn output_format_name(&self) -> Option<&'static str> {
        self.output_format.map(|format| match format {
            OutputFormat::Json => "json",
            OutputFormat::Csv => "csv",
            OutputFormat::Ndjson => "ndjson",
            OutputFormat::GeoJson => "geojson",
        })
    }
}
