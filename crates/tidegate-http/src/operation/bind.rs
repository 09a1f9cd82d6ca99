//! Turns a request into a statement with its values and the writer of its response.

use tidegate_sql::request::SqlRequest;
use tidegate_sql::{BoundStatement, InputError};
use tidegate_values::datetime::Zone;
use tidegate_values::{OutputFormat, OutputOptions, RowWriter};

use crate::app::App;
use crate::error::ApiError;
use crate::negotiate::Preferences;

/// A request that is ready to run.
pub struct BoundRequest {
    /// The statement with its values.
    pub statement: BoundStatement,
    /// The format of the response.
    pub format: OutputFormat,
    /// The writer of the response's rows.
    pub writer: RowWriter,
}

opaque_debug!(BoundRequest);

impl BoundRequest {
    /// Parses the statement and binds its values.
    ///
    /// # Errors
    ///
    /// 400 and 403, with the cause in the message.
    pub fn new(
        app: &App,
        request: &SqlRequest<'_>,
        format: OutputFormat,
        preferences: &Preferences,
    ) -> Result<Self, ApiError> {
        let SqlRequest {
            q,
            params,
            type_hints,
            type_formats,
            id,
            ..
        } = request;
        let statement = app.statement_cache().read(q)?;
        let mut options = OutputOptions {
            timezone: preferences
                .timezone
                .as_deref()
                .map(parse_zone)
                .transpose()?,
            id: id.map(|id| id.get().to_owned()),
            ..OutputOptions::default()
        };
        if !type_formats.is_empty() {
            options.placeholders = statement.placeholders().to_vec();
            let owned = type_formats
                .iter()
                .map(|(name, format)| (name.to_string(), format.to_string()));
            options.type_formats = owned.collect();
        }
        let mut bound = statement.bind(params, type_hints, type_formats)?;
        if let Some(zone) = &options.timezone {
            bound = bound.in_zone(zone);
        }
        let writer = RowWriter::new(format, options).map_err(InputError::from)?;
        Ok(Self {
            statement: bound,
            format,
            writer,
        })
    }

    /// Like [`BoundRequest::new`], for a request in an array. Its response is an element of a
    /// JSON array.
    ///
    /// # Errors
    ///
    /// As [`BoundRequest::new`], and 400 for a format other than JSON.
    pub fn in_array(
        app: &App,
        request: &SqlRequest<'_>,
        preferences: &Preferences,
    ) -> Result<Self, ApiError> {
        match request.output_format {
            None | Some(OutputFormat::Json) => {
                Self::new(app, request, OutputFormat::Json, preferences)
            }
            Some(_) => Err(ApiError::input(
                "`output_format`: the requests of an array are answered in json only",
            )),
        }
    }
}

/// Parses the time zone in `Prefer: timezone`.
pub fn parse_zone(name: &str) -> Result<Zone, ApiError> {
    Zone::named(name).ok_or_else(|| {
        ApiError::input(
            "`Prefer: timezone` must be a name of the IANA database, such as Europe/Berlin",
        )
    })
}
