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

/// The members of an object, as pairs of name and value. All values are strings, and the names are
/// distinct.
pub type StringMap = Vec<(String, String)>;

/// The definition of a method: a statement with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The name of the method.
    pub name: MethodName,
    /// The text of the statement, with placeholders.
    pub q: String,
    /// The type hints: names of types, by placeholder or column.
    pub type_hints: StringMap,
    /// Format specifiers by placeholder or column.
    pub type_formats: StringMap,
    /// The format of the result: JSON, CSV or NDJSON; `None` if the definition names none.
    pub output_format: Option<OutputFormat>,
}

/// Limits on the size of the body of a request that defines or changes methods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest size of a statement's text, in bytes.
    pub statement: usize,
    /// The largest number of definitions in an array.
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
    /// [`Error::Request`](crate::Error::Request), which names the member (in an array with its
    /// index, such as `[1].q`), and [`Error::Statement`](crate::Error::Statement).
    pub fn parse(body: &[u8], limits: Limits) -> Result<Vec<Self>> {
        read::definitions(body, limits)
    }

    /// Parses the statement of the definition.
    ///
    /// # Errors
    ///
    /// As [`Statement::parse`].
    pub fn statement(&self) -> Result<Statement, InputError> {
        Statement::parse(&self.q)
    }

    /// The name of the output format; `None` if the definition has none.
    pub fn output_format_name(&self) -> Option<&'static str> {
        self.output_format.map(|format| match format {
            OutputFormat::Json => "json",
            OutputFormat::Csv => "csv",
            OutputFormat::Ndjson => "ndjson",
            OutputFormat::GeoJson => "geojson",
        })
    }
}
