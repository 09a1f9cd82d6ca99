//! GraphQL over HTTP (<https://graphql.github.io/graphql-over-http/draft/>).

mod array;
mod media;
mod page;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, VARY};
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{self, Poll, ready};
use tidegate_graphql::{
    Api, Error, ErrorSummary, GraphqlResponse, Request, Requests, ResponseReader, ResponseText,
};
use tidegate_oauth::Scope;
use tidegate_sql::QueryOptions;

use tidegate_http::app::App;
use tidegate_http::authenticate::{self, Caller};
use tidegate_http::body::{Body, BodyAborted, BodySource, Content};
use tidegate_http::call::Call;
use tidegate_http::error::{ApiError, NO_STORE};
use tidegate_http::memory::Reservation;
use tidegate_http::negotiate::{ContentType, Preferences};
use tidegate_http::operation::graphql::{LARGE, api, execute};
use tidegate_http::percent;
use tidegate_http::replica_reads;
use tidegate_http::report::Errors;
use tidegate_http::request_body::{self, IncomingBody, RequestBody};

pub(crate) use media::{Media, wants_page};
pub(crate) use page::asset;

/// Handles `GET` and `POST /api/graphql/schema/{schema}`, including WebSocket handshakes.
pub(crate) async fn serve<B: IncomingBody>(
    call: Call<'_, B>,
    schema: &str,
) -> Result<Response<Body>, ApiError> {
    if tidegate_socket::is_handshake(&call.head.headers) {
        return tidegate_socket::upgrade(call.app, call.head, Some(schema));
    }
    let Call {
        app,
        head,
        body,
        subject,
        ..
    } = call;
    let posted = head.method == Method::POST;
    if !posted && media::wants_page(&head.headers) {
        return Ok(page::page(app));
    }
    let media = Media::of(&head.headers)?;
    let needed = [Scope::Read, Scope::Write];
    let caller = authenticate::caller(app, &head.headers, &needed).await?;
    subject.login = caller.login().cloned();
    let preferences = Preferences::of(&head.headers)?;
    let body = if posted {
        Some(read(app, &caller, head, body).await?)
    } else {
        None
    };
    if let Some(body) = &body {
        subject.keep_body(&body.bytes);
    }
    let options = QueryOptions {
        read_from: replica_reads::read_from(app, &head.headers)?,
        ..preferences.options_for_generated(app.limits())
    };
    let api = api(app, &caller, schema, &options).await?;
    let work = Handler {
        app,
        api: &api,
        caller: &caller,
        options,
    };
    match body {
        Some(body) => work.posted(&body.bytes, media).await,
        None => {
            work.run_query_string(head.uri.query().unwrap_or_default(), media)
                .await
        }
    }
}

/// Handles `GET /api/graphql/schema/{schema}/sdl`.
pub(crate) async fn sdl<B>(call: Call<'_, B>, schema: &str) -> Result<Response<Body>, ApiError> {
    let Call {
        app, head, subject, ..
    } = call;
    let needed = [Scope::Read, Scope::Write];
    let caller = authenticate::caller(app, &head.headers, &needed).await?;
    subject.login = caller.login().cloned();
    let preferences = Preferences::of(&head.headers)?;
    let api = api(
        app,
        &caller,
        schema,
        &preferences.options_for_generated(app.limits()),
    )
    .await?;
    let mut response = Response::new(Body::from(content(app, &caller, api.sdl())));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.insert(CACHE_CONTROL, NO_STORE);
    Ok(response)
}

async fn read<B: IncomingBody>(
    app: &App,
    caller: &Caller,
    head: &Parts,
    body: B,
) -> Result<RequestBody, ApiError> {
    if ContentType::of(&head.headers) != Some(ContentType::Json) {
        return Err(ApiError::unsupported_media_type(
            "the body must be application/json",
        ));
    }
    let reservation = app.memory().reservation(caller.holder());
    request_body::read(body, &head.headers, app.limits(), reservation).await
}

/// The parts that a GraphQL request needs to run.
struct Handler<'a> {
    app: &'a App,
    api: &'a Api,
    caller: &'a Caller,
    options: QueryOptions,
}

impl Handler<'_> {
    /// Runs the request, or the array of requests, in a body.
    async fn posted(&self, body: &[u8], media: Media) -> Result<Response<Body>, ApiError> {
        let requests = tidegate_graphql::parse(body, self.app.limits().graphql_batch);
        let requests = match requests.map_err(|error| ApiError::input(error.message))? {
            Requests::One(request) => {
                let response = Box::pin(self.run(&request, true, u64::MAX)).await?;
                return Ok(self.one(response, media));
            }
            Requests::Many(requests) => requests,
        };
        let (text, errors) = self.array(&requests).await;
        Ok(self.respond((text, &errors), StatusCode::OK, media))
    }

    /// Runs the request in the query of the URL.
    async fn run_query_string(
        &self,
        query: &str,
        media: Media,
    ) -> Result<Response<Body>, ApiError> {
        let pairs = percent::form(query)
            .ok_or_else(|| ApiError::input("the query of the address cannot be decoded"))?;
        let find = |name| {
            let mut pairs = pairs.iter();
            let found = pairs.find(|(known, _)| known == name);
            found
                .map(|(_, value)| value.as_str())
                .filter(|value| !value.is_empty())
        };
        let variables = find("variables").map(object).transpose()?.flatten();
        find("extensions").map(object).transpose()?;
        let request = Request {
            query: find("query")
                .map(Cow::Borrowed)
                .ok_or_else(|| ApiError::input("`query` is missing"))?,
            operation_name: find("operationName").map(Cow::Borrowed),
            variables,
        };
        let response = self.run(&request, false, u64::MAX).await?;
        Ok(self.one(response, media))
    }

    async fn run(
        &self,
        request: &Request<'_>,
        may_write: bool,
        response_budget: u64,
    ) -> Result<GraphqlResponse, ApiError> {
        let operation = request.operation_name.as_deref();
        let prepared = match self.api.prepare(&request.query, operation) {
            Ok(prepared) => prepared,
            Err(errors) => return Ok(GraphqlResponse::refused(&errors)),
        };
        if prepared.is_mutation() && !may_write {
            let mut failure = ApiError::method_not_allowed("POST, OPTIONS");
            failure.message = "a mutation needs POST".into();
            return Err(failure);
        }
        if prepared.is_subscription() {
            let text = "subscriptions are served over WebSocket and as server-sent events";
            return Ok(GraphqlResponse::refused(&[Error::input(text)]));
        }
        let parts = (self.app, self.api);
        let options = (self.options, response_budget);
        execute(parts, self.caller, options, &prepared, request.variables).await
    }

    fn one(&self, response: GraphqlResponse, media: Media) -> Response<Body> {
        let status = media.status(response.executed);
        self.respond((response.body, &response.errors), status, media)
    }

    fn respond(
        &self,
        (body, errors): (ResponseText, &ErrorSummary),
        status: StatusCode,
        media: Media,
    ) -> Response<Body> {
        let mut response = Response::new(Body::from(content(self.app, self.caller, body)));
        response.body_mut().subject.errors = Errors::of_graphql(errors).map(Box::new);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, media.header());
        headers.insert(CACHE_CONTROL, NO_STORE);
        headers.append(VARY, HeaderValue::from_static("Accept"));
        response
    }
}

/// Converts the text of a response to content. A large text in memory counts in the memory budget
/// until it has been sent. If the budget is used up, the text is sent without being counted,
/// because an error response would hide whether the mutations of the request were committed.
fn content(app: &App, caller: &Caller, text: ResponseText) -> Content {
    let mut reservation = app.memory().reservation(caller.holder());
    let held = text.held();
    let paid = held >= LARGE && reservation.take(held).is_ok();
    match text.into_bytes() {
        Ok(bytes) if paid => Content::Pieces {
            size: held,
            pieces: VecDeque::from([bytes]),
            reservation: Some(reservation),
        },
        Ok(bytes) => Content::Whole(bytes),
        Err(text) => Content::Streamed(Box::pin(RenderedText {
            reader: text.read(),
            _reservation: reservation,
        })),
    }
}

/// A response that is generated while the client reads it.
struct RenderedText {
    reader: ResponseReader,
    /// The reservation in the memory budget for the parts of the text that are in memory.
    _reservation: Reservation,
}

impl BodySource for RenderedText {
    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut task::Context<'_>,
    ) -> Poll<Option<Result<Bytes, BodyAborted>>> {
        let next = ready!(self.reader.poll_next(cx));
        Poll::Ready(next.map(|bytes| bytes.map_err(|_| BodyAborted)))
    }
}

/// Parses a parameter of the URL. Its value must be a JSON object or null; null gives `None`.
fn object(text: &str) -> Result<Option<&RawValue>, ApiError> {
    let wrong = || ApiError::input("`variables` and `extensions` must be JSON objects");
    let value: &RawValue = serde_json::from_str(text).map_err(|_| wrong())?;
    match value.get().as_bytes().first() {
        Some(b'{') => Ok(Some(value)),
        Some(b'n') => Ok(None),
        _ => Err(wrong()),
    }
}
