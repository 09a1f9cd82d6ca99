//! The SQL endpoints.

mod access;
mod collect;
mod prepare;
pub(super) mod stream;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use tidegate_methods::definition::is_definition;
use tidegate_sql::request::{self, Requests, SqlRequest};
use tidegate_sql::{Author, Mode, OutputFormat, Terms};

use super::{Call, json, methods, origin};
use crate::app::App;
use crate::authenticate::{self, Caller};
use crate::body::{Body, Content};
use crate::error::{Failure, NO_STORE};
use crate::negotiate::{self, ContentType, Preferences};
use crate::percent;
use crate::request_body;
use crate::stack::BodyError;
use access::Access;
pub(super) use access::Permit;
use collect::Collector;
pub(crate) use collect::Pieces;
use prepare::Prepared;
pub(super) use prepare::zone;
use stream::Job;

const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// `POST /api/v4/sql`, and with a database in the path as its default user.
pub(crate) async fn post<B>(
    call: Call<'_, B>,
    database: Option<&str>,
) -> Result<Response<Body>, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin,
    B::Error: Into<BodyError>,
{
    let Call {
        app,
        head,
        body,
        subject,
        ..
    } = call;
    let caller = match database {
        Some(database) => authenticate::stranger(app, database).await?,
        None => authenticate::caller(app, &head.headers).await?,
    };
    subject.login = caller.login().cloned();
    let access = Access::of(app, &caller).await?;
    if ContentType::of(&head.headers) != Some(ContentType::Json) {
        return Err(Failure::unsupported_media_type(
            "the body must be application/json",
        ));
    }
    let preferences = Preferences::of(&head.headers)?.within(app.limits().statement);
    let share = app.memory().share(caller.holder());
    let body = request_body::read(body, &head.headers, app.limits(), share).await?;
    subject.keep_body(&body.bytes);
    let requests = match request::parse(&body.bytes, statement_limits(app)) {
        Ok(requests) => requests,
        Err(_) if database.is_none() && is_definition(&body.bytes) => {
            let user = authenticate::user(app, &head.headers)?;
            return methods::create(app, &user, &body.bytes).await;
        }
        Err(error) => return Err(error.into()),
    };
    let terms = terms(app, &preferences);
    let content = match requests {
        Requests::One(request) => {
            let format = negotiate::output_format(request.output_format, &head.headers)?;
            let prepared = Prepared::new(app, &request, format, &preferences)?;
            let log = || stream::Origin::new(&origin(head, subject));
            let permit = access
                .permit(app, &caller, &prepared.statement, terms)
                .await?;
            let (format, content) = one(app, &caller, prepared, permit, log).await?;
            let mut answer = answer(format, content, &preferences);
            if request.output_format == Some(format) {
                attach(&mut answer, format);
            }
            return Ok(answer);
        }
        Requests::Many(requests) => {
            access.admit_array()?;
            many(app, &caller, &requests, &preferences, terms).await?
        }
    };
    Ok(answer(OutputFormat::Json, content, &preferences))
}

/// Names a file for an answer in a format for files (RFC 6266).
fn attach(answer: &mut Response<Body>, format: OutputFormat) {
    if format == OutputFormat::Json {
        return;
    }
    let value = format!("attachment; filename=\"data.{}\"", format.extension());
    if let Ok(value) = HeaderValue::try_from(value) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, value);
    }
}

/// Runs one statement; formats that stream begin to leave after their first 64 KiB. Answers in JSON
/// a statement without result columns.
async fn one(
    app: &App,
    caller: &Caller,
    prepared: Prepared,
    permit: Permit,
    log: impl FnOnce() -> stream::Origin,
) -> Result<(OutputFormat, Content), Failure> {
    if !prepared.format.streams() {
        return collected(app, caller, prepared, permit).await;
    }
    let Prepared {
        statement, writer, ..
    } = prepared;
    let job = Job {
        executor: Arc::clone(app.executor()),
        principal: caller.principal.clone(),
        statement,
        permit,
    };
    let streamed = stream::run(job, writer, log).await;
    streamed.map_err(|error| Failure::from_sql(error, caller.anonymous))
}

/// Runs one statement and collects its answer.
async fn collected(
    app: &App,
    caller: &Caller,
    prepared: Prepared,
    permit: Permit,
) -> Result<(OutputFormat, Content), Failure> {
    let failed = |error| Failure::from_sql(error, caller.anonymous);
    let Prepared {
        statement, writer, ..
    } = prepared;
    let mut sink = Collector::new(writer, Pieces::of(app, caller));
    let executor = &**app.executor();
    let query = permit.run(executor, &caller.principal, &statement, &mut sink);
    let completion = query.await.map_err(failed)?;
    let format = sink.format();
    let pieces = sink.finish(completion).map_err(failed)?;
    Ok((format, pieces.into()))
}

/// A request, or an array of requests, that comes as a message; the answer is JSON.
pub(crate) async fn message(app: &App, caller: &Caller, text: &[u8]) -> Result<Content, Failure> {
    let access = Access::of(app, caller).await?;
    let preferences = Preferences::default();
    let terms = terms(app, &preferences);
    match request::parse(text, statement_limits(app))? {
        Requests::One(request) => {
            let format = request.output_format.unwrap_or(OutputFormat::Json);
            let prepared = Prepared::new(app, &request, format, &preferences)?;
            let permit = access.permit(app, caller, &prepared.statement, terms);
            let permit = permit.await?;
            Ok(collected(app, caller, prepared, permit).await?.1)
        }
        Requests::Many(requests) => {
            access.admit_array()?;
            many(app, caller, &requests, &preferences, terms).await
        }
    }
}

/// Runs several statements in one transaction and answers an array. What PostgreSQL asks to run
/// again is run again once: nothing of the answer has left, and nothing of the writes has stayed.
async fn many(
    app: &App,
    caller: &Caller,
    requests: &[SqlRequest<'_>],
    preferences: &Preferences,
    terms: Terms,
) -> Result<Content, Failure> {
    let mut attempted = attempt(app, caller, prepared(app, requests, preferences)?, terms).await;
    if attempted.as_ref().is_err_and(Failed::may_pass) {
        attempted = attempt(app, caller, prepared(app, requests, preferences)?, terms).await;
    }
    attempted.map_err(|Failed { index, error }| {
        let failure = Failure::from_sql(error, caller.anonymous);
        match index {
            Some(index) => failure.of_request(index),
            None => failure,
        }
    })
}

/// Why a transaction of several statements was not committed.
struct Failed {
    /// Which statement failed; `None` when it was the transaction around them.
    index: Option<usize>,
    error: tidegate_sql::Error,
}

impl Failed {
    fn whole(error: tidegate_sql::Error) -> Self {
        Self { index: None, error }
    }

    /// Whether a statement was rolled back that may go well the next time: a table was redefined
    /// after a statement on it had been prepared, or others wrote at once.
    fn may_pass(&self) -> bool {
        let again = matches!(&self.error, tidegate_sql::Error::Rejected(refused) if refused.sqlstate == "40001");
        again && self.index.is_some()
    }
}

fn prepared(
    app: &App,
    requests: &[SqlRequest<'_>],
    preferences: &Preferences,
) -> Result<Vec<Prepared>, Failure> {
    let prepare = |(index, request)| {
        let prepared = Prepared::in_array(app, request, preferences);
        prepared.map_err(|failure| failure.of_request(index))
    };
    requests.iter().enumerate().map(prepare).collect()
}

async fn attempt(
    app: &App,
    caller: &Caller,
    prepared: Vec<Prepared>,
    terms: Terms,
) -> Result<Content, Failed> {
    let begin = app
        .executor()
        .begin(&caller.principal, Mode::ReadWrite, &terms);
    let mut transaction = begin.await.map_err(Failed::whole)?;
    let mut pieces = Pieces::of(app, caller);
    for (
        index,
        Prepared {
            statement, writer, ..
        },
    ) in prepared.into_iter().enumerate()
    {
        pieces.push(if index == 0 { b"[" } else { b"," });
        let mut sink = Collector::new(writer, pieces);
        let done = transaction.query(&statement, &mut sink).await;
        let index = Some(index);
        pieces = done
            .and_then(|completion| sink.finish(completion))
            .map_err(|error| Failed { index, error })?;
    }
    transaction.commit().await.map_err(Failed::whole)?;
    pieces.push(b"]");
    Ok(pieces.into())
}

/// `GET /api/v4/sql/schema[?schema=name]` and `GET /api/v4/sql/schema/{schema}`.
pub(crate) async fn schemas<B>(
    call: Call<'_, B>,
    schema: Option<&str>,
) -> Result<Response<Body>, Failure> {
    let Call {
        app, head, subject, ..
    } = call;
    let caller = authenticate::caller(app, &head.headers).await?;
    subject.login = caller.login().cloned();
    let preferences = Preferences::of(&head.headers)?;
    let terms = terms(app, &preferences);
    let failed = |error| Failure::from_catalog(error, caller.anonymous);
    let login = caller
        .login()
        .ok_or_else(|| Failure::internal("only users ask for schemas"))?;
    let named = match schema {
        Some(schema) => Some(schema.to_owned()),
        None => query_member(head.uri.query().unwrap_or_default(), "schema")?,
    };
    let catalogs = app.catalogs();
    let document = if let Some(name) = named {
        let found = catalogs.schema(login, &name, &terms).await;
        let missing = || Failure::not_found("there is no such schema, or no right to use it");
        let schema = found.map_err(failed)?.ok_or_else(missing)?;
        tidegate_catalog::describe(&schema)
    } else {
        let schemas = catalogs.schemas(login, &terms).await.map_err(failed)?;
        tidegate_catalog::describe_all(&schemas)
    };
    Ok(json(document, NO_STORE))
}

fn statement_limits(app: &App) -> request::Limits {
    request::Limits {
        statement: app.limits().sql_text,
        requests: app.limits().batch,
        parameter_sets: app.limits().parameter_sets,
        ..request::Limits::default()
    }
}

/// A request may lower the deadline, never raise it.
pub(crate) fn terms(app: &App, preferences: &Preferences) -> Terms {
    let most = app.limits().statement;
    let wait = preferences.wait.map_or(most, |wait| wait.min(most));
    Terms {
        deadline: Some(Instant::now() + wait),
        ..Terms::default()
    }
}

/// The terms for statements that Tidegate generates.
pub(crate) fn generated_terms(app: &App, preferences: &Preferences) -> Terms {
    Terms {
        author: Author::Service,
        ..terms(app, preferences)
    }
}

fn query_member(query: &str, name: &str) -> Result<Option<String>, Failure> {
    let pairs = percent::form(query)
        .ok_or_else(|| Failure::input("the query of the address cannot be decoded"))?;
    Ok(pairs
        .into_iter()
        .find(|(known, value)| known == name && !value.is_empty())
        .map(|(_, v)| v))
}

/// 200 in a format.
pub(super) fn answer(
    format: OutputFormat,
    content: Content,
    preferences: &Preferences,
) -> Response<Body> {
    let mut response = Response::new(Body::from(content));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    if let Some(applied) = preferences.applied() {
        // What cannot stand in a header was not understood as a preference either.
        if let Ok(applied) = HeaderValue::try_from(applied) {
            headers.insert(PREFERENCE_APPLIED, applied);
        }
    }
    response
}
