//! Calls of methods over HTTP.

use std::sync::Arc;

use http::Response;
use http::request::Parts;
use tidegate_oauth::Scope;
use tidegate_rpc::{BoundCall, Context, DispatchOutcome, Dispatcher, Payload, Reply};
use tidegate_sql::QueryOptions;
use tidegate_values::OutputFormat;
use tidegate_values::datetime::Zone;

use super::sql::response as sql_response;
use tidegate_http::app::App;
use tidegate_http::authenticate::{self, Caller};
use tidegate_http::body::{Body, Content};
use tidegate_http::call::{Call, no_content};
use tidegate_http::error::ApiError;
use tidegate_http::negotiate::{self, ContentType, Preferences};
use tidegate_http::operation::{Permit, Pieces, parse_zone, rpc, stream};
use tidegate_http::replica_reads;
use tidegate_http::report::{self, Errors, Subject};
use tidegate_http::request_body::{self, IncomingBody, RequestBody};

/// Handles `POST /api/v4/call` and `POST /api/v4/rpc`.
pub(crate) async fn call<B: IncomingBody>(call: Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let caller = authenticate::caller(call.app, &call.head.headers, &[Scope::Methods]).await?;
    respond(call, &caller, false).await
}

/// Handles `POST /api/v4/call/dry`: PostgreSQL describes the statements without running them.
pub(crate) async fn dry_run<B: IncomingBody>(
    call: Call<'_, B>,
) -> Result<Response<Body>, ApiError> {
    let user = authenticate::user(call.app, &call.head.headers, Scope::Methods).await?;
    user.require_own_role()?;
    respond(call, &Caller::from(user), true).await
}

async fn respond<B: IncomingBody>(
    call: Call<'_, B>,
    caller: &Caller,
    dry: bool,
) -> Result<Response<Body>, ApiError> {
    call.subject.login = caller.login().cloned();
    let asked = CallRequest::read(call.app, caller, call.head, call.body).await?;
    call.subject.keep_body(&asked.body.bytes);
    let payload = match asked.payload(call.app) {
        Ok(payload) => payload,
        Err(reply) => {
            let errors = Errors::of_reply(&reply);
            return Ok(with(asked.reply(reply), Some(errors)));
        }
    };
    let answering = ResponseParts {
        app: call.app,
        head: call.head,
        subject: call.subject,
        caller,
        asked: &asked,
    };
    match (&payload, streamed(call.head)) {
        (Payload::Single(single), Some(format)) if !dry && single.id.is_some() => {
            Box::pin(answering.rows(single, format)).await
        }
        _ => answering.envelopes(&payload, dry).await,
    }
}

/// A request whose body and headers were decoded.
struct CallRequest {
    body: RequestBody,
    preferences: Preferences,
    timezone: Option<Zone>,
    options: QueryOptions,
}

impl CallRequest {
    async fn read<B: IncomingBody>(
        app: &App,
        caller: &Caller,
        head: &Parts,
        body: B,
    ) -> Result<Self, ApiError> {
        let kind = ContentType::of(&head.headers);
        if !matches!(kind, Some(ContentType::Json | ContentType::JsonRpc)) {
            return Err(ApiError::unsupported_media_type(
                "the body must be application/json or application/json-rpc",
            ));
        }
        let preferences = Preferences::of(&head.headers)?.within(app.limits().statement);
        let timezone = preferences
            .timezone
            .as_deref()
            .map(parse_zone)
            .transpose()?;
        let reservation = app.memory().reservation(caller.holder());
        let body = request_body::read(body, &head.headers, app.limits(), reservation).await?;
        Ok(Self {
            body,
            timezone,
            // The deadline counts from the end of the request's body.
            options: QueryOptions {
                read_from: replica_reads::read_from(app, &head.headers)?,
                ..preferences.options(app.limits())
            },
            preferences,
        })
    }

    fn payload(&self, app: &App) -> Result<Payload<'_>, Reply> {
        rpc::payload(app, &self.body.bytes)
    }

    /// A response with status 200 and a JSON text.
    fn response(&self, content: Content) -> Response<Body> {
        sql_response(OutputFormat::Json, content, &self.preferences)
    }

    fn reply(&self, reply: Reply) -> Response<Body> {
        self.response(Content::Whole(reply.into_bytes().freeze()))
    }
}

/// The streamed format, CSV or NDJSON, that `Accept` prefers; `None` if it prefers another format.
/// The rows of a single call are sent in this format, without a JSON-RPC envelope.
fn streamed(head: &Parts) -> Option<OutputFormat> {
    let wanted = negotiate::output_format(None, &head.headers).ok()?;
    wanted.streams().then_some(wanted)
}

/// The inputs for building the response to a call.
struct ResponseParts<'a> {
    app: &'a App,
    head: &'a Parts,
    subject: &'a Subject,
    caller: &'a Caller,
    asked: &'a CallRequest,
}

impl ResponseParts<'_> {
    fn dispatcher(&self) -> &Dispatcher {
        self.app.dispatcher()
    }

    fn context(&self) -> Context<'_> {
        Context {
            principal: &self.caller.principal,
            options: self.asked.options,
            timezone: self.asked.timezone.as_ref(),
        }
    }

    /// The JSON-RPC response to the calls; status 204 if all are notifications.
    async fn envelopes(
        &self,
        payload: &Payload<'_>,
        dry: bool,
    ) -> Result<Response<Body>, ApiError> {
        let (app, context) = (self.app, self.context());
        let mut out = Pieces::of(app, self.caller);
        let DispatchOutcome { answered, errors } = if dry {
            self.dispatcher().dry_run(&context, payload, &mut out).await
        } else {
            self.dispatcher()
                .dispatch(&context, payload, &mut out)
                .await
        };
        let errors = self.report(errors);
        let response = if answered {
            self.asked.response(out.into())
        } else {
            no_content()
        };
        Ok(with(response, errors))
    }

    /// The rows of one call, sent while the statement runs. If an error occurs before the first
    /// bytes are sent, the response is a JSON-RPC error, or status 204 for a notification.
    async fn rows(
        &self,
        call: &tidegate_rpc::Call<'_>,
        format: OutputFormat,
    ) -> Result<Response<Body>, ApiError> {
        match self.stream(call, format).await {
            Ok((format, rows)) => Ok(sql_response(format, rows, &self.asked.preferences)),
            Err(error) => {
                let reply = Reply::failed(call, &error);
                let response = reply.map_or_else(no_content, |reply| self.asked.reply(reply));
                Ok(with(response, self.report(vec![error])))
            }
        }
    }

    async fn stream(
        &self,
        call: &tidegate_rpc::Call<'_>,
        format: OutputFormat,
    ) -> Result<(OutputFormat, Content), tidegate_rpc::Error> {
        let context = self.context();
        let prepared = self.dispatcher().bind(&context, call, Some(format)).await?;
        let BoundCall {
            statement,
            writer,
            author,
            ..
        } = prepared;
        let options = QueryOptions {
            author,
            ..self.asked.options
        };
        let job = stream::StatementRun {
            executor: Arc::clone(self.app.executor()),
            principal: self.caller.principal.clone(),
            statement,
            permit: Permit::full(options),
        };
        let log = || stream::OwnedContext::new(&report::Context::new(self.head, self.subject));
        stream::run(job, writer, log)
            .await
            .map_err(tidegate_rpc::Error::of_statement)
    }

    fn report(&self, errors: Vec<tidegate_rpc::Error>) -> Option<Errors> {
        rpc::report(errors, &report::Context::new(self.head, self.subject))
    }
}

/// Adds the errors of a response, for the log and the metrics.
fn with(mut response: Response<Body>, errors: Option<Errors>) -> Response<Body> {
    response.body_mut().subject.errors = errors.map(Box::new);
    response
}
