//! From a call to a statement with its values and the writer of its result.

use tidegate_methods::Method;
use tidegate_sql::{Author, BoundStatement, InputError};
use tidegate_values::datetime::Zone;
use tidegate_values::{OutputFormat, OutputOptions, RowWriter};

use crate::error::Error;
use crate::payload::Call;

/// A call that can run.
#[derive(Debug)]
pub struct Prepared {
    /// The method's statement with the values of the call.
    pub statement: BoundStatement,
    /// The form of the rows, as the method defines it.
    pub format: OutputFormat,
    /// Writes the rows in that form.
    pub writer: RowWriter,
    /// Who wrote the statement, for the [`tidegate_sql::Terms`] on which it runs.
    pub author: Author,
}

impl Prepared {
    /// Binds the values of a call; `format` stands in for that of the method.
    pub(crate) fn new(
        method: &Method,
        call: &Call<'_>,
        format: Option<OutputFormat>,
        timezone: Option<&Zone>,
    ) -> Result<Self, Error> {
        let params = match &call.params {
            Ok(params) => params,
            Err(wrong) => return Err(Error::Params(wrong.clone())),
        };
        let bound = method.bind(params);
        let mut statement = bound.map_err(|error| Error::of_input(error, &[]))?;
        if let Some(zone) = timezone {
            statement = statement.in_zone(zone);
        }
        let format = format.unwrap_or_else(|| method.output_format());
        let writer = writer(method, format, timezone).map_err(Error::Definition)?;
        Ok(Self {
            statement,
            format,
            writer,
            author: if method.record().by_owner {
                Author::Owner
            } else {
                Author::Caller
            },
        })
    }
}

/// The writer of a method's rows.
pub(crate) fn writer(
    method: &Method,
    format: OutputFormat,
    timezone: Option<&Zone>,
) -> Result<RowWriter, InputError> {
    let mut options = OutputOptions {
        timezone: timezone.cloned(),
        ..OutputOptions::default()
    };
    let type_formats = &method.definition().type_formats;
    if !type_formats.is_empty() {
        options.placeholders = method.statement()?.placeholders().to_vec();
        options.type_formats.clone_from(type_formats);
    }
    Ok(RowWriter::new(format, options)?)
}
