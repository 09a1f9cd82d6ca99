//! Runs the SQL statements of callers: binds the values of a request, and runs the statement.

use std::sync::Arc;

use tidegate_sql::request::{self, Requests, SqlRequest};
use tidegate_sql::{BoundStatement, InputError, Mode, QueryOptions};
use tidegate_values::datetime::Zone;
use tidegate_values::{OutputFormat, OutputOptions, RowWriter};

use super::access::{Access, Permit};
use super::collect::{Collector, Pieces};
use super::stream::{self, StatementRun};
use crate::app::App;
use crate::authenticate::Caller;
use crate::body::Content;
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

    /// Does the same as [`BoundRequest::new`] for a request in an array. The response to the
    /// request is an element of a JSON array.
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

/// Runs one statement. In a streamed format, sending starts when 64 KiB are ready. `log` returns
/// the context for the log line of an error that occurs after sending has started. The returned
/// format is the requested format, or JSON if the statement has no result columns.
pub async fn one(
    app: &App,
    caller: &Caller,
    bound: BoundRequest,
    permit: Permit,
    log: impl FnOnce() -> stream::OwnedContext,
) -> Result<(OutputFormat, Content), ApiError> {
    if !bound.format.streams() {
        return collected(app, caller, bound, permit).await;
    }
    let BoundRequest {
        statement, writer, ..
    } = bound;
    let job = StatementRun {
        executor: Arc::clone(app.executor()),
        principal: caller.principal.clone(),
        statement,
        permit,
    };
    let streamed = stream::run(job, writer, log).await;
    streamed.map_err(|error| ApiError::from_sql(error, caller.anonymous))
}

/// Runs one statement, and collects the whole response in memory.
async fn collected(
    app: &App,
    caller: &Caller,
    bound: BoundRequest,
    permit: Permit,
) -> Result<(OutputFormat, Content), ApiError> {
    let failed = |error| ApiError::from_sql(error, caller.anonymous);
    let BoundRequest {
        statement, writer, ..
    } = bound;
    let mut sink = Collector::new(writer, Pieces::of(app, caller));
    let executor = &**app.executor();
    let query = permit.run(executor, &caller.principal, &statement, &mut sink);
    let completion = query.await.map_err(failed)?;
    let format = sink.format();
    let pieces = sink.finish(completion).map_err(failed)?;
    Ok((format, pieces.into()))
}

/// Runs the request, or the array of requests, in a WebSocket message. An array has a JSON
/// response. The response to a single request has its `output_format`, by default JSON.
pub async fn message(app: &App, caller: &Caller, text: &[u8]) -> Result<Content, ApiError> {
    let access = Access::of(app, caller).await?;
    let preferences = Preferences::default();
    let options = preferences.options(app.limits());
    match request::parse(text, statement_limits(app))? {
        Requests::One(request) => {
            let format = request.output_format.unwrap_or(OutputFormat::Json);
            let bound = BoundRequest::new(app, &request, format, &preferences)?;
            let permit = access.permit(app, caller, &bound.statement, options);
            let permit = permit.await?;
            Ok(collected(app, caller, bound, permit).await?.1)
        }
        Requests::Many(requests) => {
            access.admit_array()?;
            many(app, caller, &requests, &preferences, options).await
        }
    }
}

/// Runs several statements in one transaction; the response is a JSON array. If a statement fails
/// with SQLSTATE 40001 (a serialization failure), the transaction is repeated once. The repetition
/// is safe, because nothing was committed and nothing of the response has been sent.
pub async fn many(
    app: &App,
    caller: &Caller,
    requests: &[SqlRequest<'_>],
    preferences: &Preferences,
    options: QueryOptions,
) -> Result<Content, ApiError> {
    let mut attempted = attempt(app, caller, bind_all(app, requests, preferences)?, options).await;
    if attempted
        .as_ref()
        .is_err_and(TransactionFailure::is_retryable)
    {
        attempted = attempt(app, caller, bind_all(app, requests, preferences)?, options).await;
    }
    attempted.map_err(|TransactionFailure { index, error }| {
        let failure = ApiError::from_sql(error, caller.anonymous);
        match index {
            Some(index) => failure.of_request(index),
            None => failure,
        }
    })
}

/// The reason why a transaction of several statements failed.
struct TransactionFailure {
    /// The index of the statement that failed; `None` if the transaction itself failed.
    index: Option<usize>,
    error: tidegate_sql::Error,
}

impl TransactionFailure {
    fn whole(error: tidegate_sql::Error) -> Self {
        Self { index: None, error }
    }

    /// Whether a statement failed with SQLSTATE 40001, so that a retry may succeed. PostgreSQL
    /// reports this code if concurrent writes conflicted. The executor reports it if a table was
    /// redefined after a statement on the table had been prepared.
    fn is_retryable(&self) -> bool {
        let again = matches!(&self.error, tidegate_sql::Error::Rejected(refused) if refused.sqlstate == "40001");
        again && self.index.is_some()
    }
}

fn bind_all(
    app: &App,
    requests: &[SqlRequest<'_>],
    preferences: &Preferences,
) -> Result<Vec<BoundRequest>, ApiError> {
    let prepare = |(index, request)| {
        let bound = BoundRequest::in_array(app, request, preferences);
        bound.map_err(|failure| failure.of_request(index))
    };
    requests.iter().enumerate().map(prepare).collect()
}

async fn attempt(
    app: &App,
    caller: &Caller,
    bound: Vec<BoundRequest>,
    options: QueryOptions,
) -> Result<Content, TransactionFailure> {
    let begin = app
        .executor()
        .begin(&caller.principal, Mode::ReadWrite, &options);
    let mut transaction = begin.await.map_err(TransactionFailure::whole)?;
    let mut pieces = Pieces::of(app, caller);
    for (
        index,
        BoundRequest {
            statement, writer, ..
        },
    ) in bound.into_iter().enumerate()
    {
        pieces.push(if index == 0 { b"[" } else { b"," });
        let mut sink = Collector::new(writer, pieces);
        let done = transaction.query(&statement, &mut sink).await;
        let index = Some(index);
        pieces = done
            .and_then(|completion| sink.finish(completion))
            .map_err(|error| TransactionFailure { index, error })?;
    }
    transaction
        .commit()
        .await
        .map_err(TransactionFailure::whole)?;
    pieces.push(b"]");
    Ok(pieces.into())
}

/// The limits of SQL requests.
pub fn statement_limits(app: &App) -> request::Limits {
    request::Limits {
        statement: app.limits().sql_text,
        requests: app.limits().batch,
        parameter_sets: app.limits().parameter_sets,
        ..request::Limits::default()
    }
}
