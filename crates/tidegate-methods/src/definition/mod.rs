//! Definitions of methods, and changes of them.

mod patch;
mod read;

pub(crate) use patch::infers_the_same;
pub use patch::{Change, Patch};
pub use read::is_definition;

use tidegate_sql::{InputError, Statement};
use tidegate_values::OutputFormat;

use crate::error::Result;
use crate::name::MethodName;

/// The members of an object whose values are strings; no name comes twice.
pub type Texts = Vec<(String, String)>;

/// What a caller defines: a statement under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Under which it is called.
    pub name: MethodName,
    /// The statement's text, with placeholders.
    pub q: String,
    /// Type names by placeholder or column; empty when there are none.
    pub type_hints: Texts,
    /// Date letters by placeholder or column; empty when there are none.
    pub type_formats: Texts,
    /// JSON, CSV or NDJSON, when given.
    pub output_format: Option<OutputFormat>,
}

/// How large the parts of a body may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a statement's text.
    pub statement: usize,
    /// Definitions in an array.
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
    /// Reads the body of a request that defines methods: an object with the members `method`,
    /// `q`, `type_hints`, `type_formats` and `output_format`, or an array of such objects. A null
    /// is as good as nothing. The statement is read for its placeholders and its kind; whether it
    /// is correct SQL is PostgreSQL's business, and shows in a dry run.
    ///
    /// # Errors
    ///
    /// [`Error::Request`](crate::Error::Request) that names the member, in an array together with
    /// its index as in `[1].q`, and [`Error::Statement`](crate::Error::Statement).
    pub fn parse(body: &[u8], limits: Limits) -> Result<Vec<Self>> {
        read::definitions(body, limits)
    }

    /// Reads the statement.
    ///
    /// # Errors
    ///
    /// As [`Statement::parse`].
    pub fn statement(&self) -> Result<Statement, InputError> {
        Statement::parse(&self.q)
    }

    /// The form of the result as the definition names it.
    pub fn output_format_name(&self) -> Option<&'static str> {
        self.output_format.map(|format| match format {
            OutputFormat::Json => "json",
            OutputFormat::Csv => "csv",
            OutputFormat::Ndjson => "ndjson",
            OutputFormat::GeoJson => "geojson",
        })
    }
}
