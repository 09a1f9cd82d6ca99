//! Makes a call ready to run: binds its values to the method's statement, and chooses the writer of
//! its result.

use std::sync::Arc;

use tidegate_methods::{Method, Registry};
use tidegate_sql::{Author, BoundStatement, InputError};
use tidegate_values::datetime::Zone;
use tidegate_values::{OutputFormat, OutputOptions, RowWriter};

use crate::call::Call;
use crate::context::Context;
use crate::error::Error;

/// A call that is ready to run.
#[derive(Debug)]
pub struct BoundCall {
    /// The statement of the method, with the values of the call.
    pub statement: BoundStatement,
    /// The format of the rows.
    pub format: OutputFormat,
    /// The writer of the rows.
    pub writer: RowWriter,
    /// The author of the statement, for the [`tidegate_sql::QueryOptions`] with which it runs.
    pub author: Author,
}

impl BoundCall {
    /// Binds the values of a call to the method's statement. `format` replaces the format of the
    /// method, unless it is `None`.
    pub(crate) fn new(
        context: &Context<'_>,
        method: &Method,
        call: &Call<'_>,
        format: Option<OutputFormat>,
    ) -> Result<Self, Error> {
        let (timezone, by_owner) = (context.timezone, method.record().by_owner);
        if context.is_member() && !by_owner {
            return Err(Error::NotForMembers);
        }
        let params = match &call.params {
            Ok(params) => params,
            Err(wrong) => return Err(Error::Params(wrong.clone())),
        };
        let bound = method.bind(params);
        let mut statement = bound.map_err(Error::of_input)?;
        if let Some(zone) = timezone {
            statement = statement.in_zone(zone);
        }
        let format = format.unwrap_or_else(|| method.output_format());
        let writer = writer(method, format, timezone).map_err(Error::Definition)?;
        Ok(Self {
            statement,
            format,
            writer,
            author: if by_owner {
                Author::Owner
            } else {
                Author::Caller
            },
        })
    }
}

/// Looks up a method of the tenant.
pub(crate) async fn find(
    registry: &Registry,
    context: &Context<'_>,
    name: &str,
) -> Result<Arc<Method>, Error> {
    let found = registry.lookup(context.tenant()?, name).await;
    found.map_err(Error::Registry)?.ok_or(Error::MethodNotFound)
}

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
