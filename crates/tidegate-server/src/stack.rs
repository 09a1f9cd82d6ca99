//! The layers around the handler of every request, from the outermost to the innermost, and the
//! call of the handler.
//!
//! A layer consists of functions that run before or after the handler; the longer layers are
//! modules. The layers are plain functions in one future, because a response is too large to be
//! moved through one future for each layer.

mod admission;
mod observation;
mod resource_metadata;

use std::any::Any;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::task::{self, Poll};

use futures_util::FutureExt as _;
use http::header::{
    CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderValue, IF_NONE_MATCH, STRICT_TRANSPORT_SECURITY,
};
use http::{Method, Request, Response, StatusCode};
use tower::Service;

use crate::compress::{self, Encoding};
use crate::endpoint::OperatorListener;
use crate::endpoint::graphql::{self, Media};
use crate::route::{self, Access, Route, RouteError, Surface};
use tidegate_http::app::App;
use tidegate_http::body::{Body, Content};
use tidegate_http::call::Call;
use tidegate_http::error::ApiError;
use tidegate_http::forwarded::{self, Peer};
use tidegate_http::replica_reads;
use tidegate_http::report::{Context, REQUEST_ID};
use tidegate_http::request_body::IncomingBody;
use tidegate_pages as pages;

pub(crate) use admission::HTTP2_HEAD;
use observation::{Observation, PendingRequest};

/// The length of the longest `X-Request-Id` that is used.
const LONGEST_REQUEST_ID: usize = 128;
/// The value of `Strict-Transport-Security`. It has no `includeSubDomains`, because subdomains may
/// belong to other services.
const HSTS_ONE_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// The whole API as a tower service, for requests of `peer`.
///
/// The service is generic over the request's body for tests. They use `Full<Bytes>`, because
/// hyper's body type has no constructor.
pub fn service<B: IncomingBody + 'static>(
    app: App,
    peer: Peer,
) -> impl Service<
    Request<B>,
    Response = Response<Body>,
    Error = Infallible,
    Future: Future<Output = Result<Response<Body>, Infallible>> + Send,
> + Clone
+ Send {
    Stack { app, peer }
}

#[derive(Clone, Debug)]
struct Stack {
    app: App,
    peer: Peer,
}

impl<B: IncomingBody + 'static> Service<Request<B>> for Stack {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut task::Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Self { app, peer } = self.clone();
        Box::pin(async move { Ok(observed(&app, peer, request).await) })
    }
}

/// The outermost layers, through which every request and every response passes.
async fn observed<B: IncomingBody + 'static>(
    app: &App,
    peer: Peer,
    mut request: Request<B>,
) -> Response<Body> {
    // The id comes first, so that every response has the same id as its line in the log.
    let id = take_request_id(app, &mut request);
    let uri = request.uri().clone();
    let route = Route::parse(request.method(), uri.path());
    // The observation counts and logs what is really sent, so it is outside of all layers that can
    // respond.
    let observation = Observation::begin(app.clone(), &request, &route);
    let encrypted = forwarded::is_encrypted(peer, request.headers(), app.trusted_proxies());
    // A panic of a handler is logged and becomes a response with status 500. If it were not caught,
    // the connection would be closed.
    let mut response = catch_panic(admitted(app, peer, &route, request), &id).await;
    set_hsts(encrypted, &mut response);
    observation.responded(&mut response);
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

/// The layers that refuse requests.
async fn admitted<B: IncomingBody + 'static>(
    app: &App,
    peer: Peer,
    route: &Result<Route<'_>, RouteError>,
    request: Request<B>,
) -> Response<Body> {
    // This check comes before any layer that responds, because it is unclear for which host a
    // request with an invalid `Host` is meant.
    if let Some(refusal) = admission::refuse_host(&request) {
        return refusal;
    }
    // CORS is outside of the remaining layers that refuse requests, because the scripts of browsers
    // must be able to read the responses of these layers.
    let grant = match admission::check_origin(app, &request) {
        ControlFlow::Continue(grant) => grant,
        ControlFlow::Break(response) => return response,
    };
    // The size of the head is checked before the other headers are read. Over HTTP/1.1, the parser
    // enforces the limit.
    let mut response = match admission::refuse_head(&request) {
        Some(refusal) => refusal,
        None => negotiated(app, peer, route, request).await,
    };
    admission::set_origin_access(grant, &mut response);
    response
}

/// The layers that shorten a response: they omit a document that the client already has, compress
/// the body, or remove it for `HEAD`.
async fn negotiated<B: IncomingBody + 'static>(
    app: &App,
    peer: Peer,
    route: &Result<Route<'_>, RouteError>,
    request: Request<B>,
) -> Response<Body> {
    let method = request.method().clone();
    let encoding = Encoding::negotiate(request.headers());
    let known = request.headers().get(IF_NONE_MATCH).cloned();
    let mut response = handled(app, peer, route, request).await;
    // A document that the client already has is omitted.
    omit_known_document(known.as_ref(), &mut response);
    // Compression comes after ETags are compared, because an ETag identifies the document and not
    // its coding.
    compress::response(encoding, &mut response);
    // The body for `HEAD` is removed after all layers that change the head.
    remove_body_of_head(&method, &mut response);
    response
}

/// Serves a request with the handler of its route; errors have the form of the route.
async fn handled<B: IncomingBody + 'static>(
    app: &App,
    peer: Peer,
    route: &Result<Route<'_>, RouteError>,
    request: Request<B>,
) -> Response<Body> {
    let (head, body) = request.into_parts();
    let mut pending_request = PendingRequest::new(app);
    let subject = &mut pending_request.subject;
    let for_operators = head.extensions.get::<OperatorListener>().is_some();
    let outcome = match route {
        Ok(route) if for_operators && route.properties().access != Access::Operator => {
            Err(no_such_path())
        }
        Ok(route) => {
            subject.route = Some(route.label());
            let call = Call {
                app,
                peer,
                head: &head,
                body,
                subject,
                body_limit: route.properties().body.bytes(app.limits().request_body),
            };
            route::serve(route, call).await
        }
        Err(RouteError::NotFound) => Err(no_such_path()),
        Err(RouteError::MethodNotAllowed(allow)) => Err(ApiError::method_not_allowed(allow)),
    };
    let mut response = outcome.unwrap_or_else(|failure| {
        let origin = Context::new(&head, &pending_request.subject);
        let surface = route.as_ref().map(|route| route.properties().surface);
        match surface {
            Ok(Surface::OAuth) => failure.into_oauth(false, &origin),
            Ok(Surface::Guest) => failure.into_oauth(true, &origin),
            Ok(Surface::Page) => pages::failure(&failure, site(app), &origin),
            // A person who mistypes a URL gets an HTML page.
            Err(RouteError::NotFound) if graphql::wants_page(&head.headers) => {
                pages::failure(&failure, site(app), &origin)
            }
            _ if head.uri.path().starts_with("/api/graphql/") => {
                let media = Media::of(&head.headers).unwrap_or_default();
                failure.into_graphql(media.header(), &origin)
            }
            _ => failure.into_rest(&origin),
        }
    });
    // Routes for operators are excluded, because the token of `/metrics` is a setting, and no
    // authorization server issues it.
    if let Ok(route) = route
        && route.properties().access != Access::Operator
    {
        resource_metadata::add_to_challenge(app, &mut response);
    }
    let mut subject = pending_request.into_subject();
    replica_reads::set_position(app, subject.login.as_ref(), response.headers_mut());
    subject.errors = response.body_mut().subject.errors.take();
    response.body_mut().subject = subject;
    response
}

/// The parts of the service to which an error page has links.
fn site(app: &App) -> pages::Site<'_> {
    pages::Site {
        issuer: app.issuer().address(),
        has_console: app.console().is_some(),
    }
}

fn no_such_path() -> ApiError {
    ApiError::not_found("there is no such path")
}

/// Returns the `X-Request-Id` of a request, and sets it in the request for the inner layers. An id
/// from the client is used if it has 1 to 128 visible ASCII characters. Otherwise the request gets
/// a new id.
fn take_request_id<B>(app: &App, request: &mut Request<B>) -> HeaderValue {
    let headers = request.headers_mut();
    if let Some(id) = headers.get(REQUEST_ID).filter(|id| is_acceptable_id(id)) {
        return id.clone();
    }
    let id = app.request_id();
    headers.insert(REQUEST_ID, id.clone());
    id
}

fn is_acceptable_id(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    (1..=LONGEST_REQUEST_ID).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

/// Sets `Strict-Transport-Security` (RFC 6797) for a client that uses HTTPS: a browser that has
/// used HTTPS once uses only HTTPS for a year.
fn set_hsts(encrypted: bool, response: &mut Response<Body>) {
    if encrypted {
        let headers = response.headers_mut();
        headers.insert(STRICT_TRANSPORT_SECURITY, HSTS_ONE_YEAR);
    }
}

/// Waits for the response. If the future panics, returns a response with status 500 and the id of
/// the request.
async fn catch_panic(
    response: impl Future<Output = Response<Body>>,
    id: &HeaderValue,
) -> Response<Body> {
    // `AssertUnwindSafe` is sound, because the future is dropped after a panic and its inconsistent
    // state is not observed.
    let caught = AssertUnwindSafe(response).catch_unwind().await;
    caught.unwrap_or_else(|panic| {
        let context = Context {
            request_id: id.to_str().unwrap_or_default(),
            ..Context::default()
        };
        ApiError::internal(panic_message(&*panic)).into_rest(&context)
    })
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}

/// Omits a document if the client already has this version (RFC 9110, section 13.1.2). `known` is
/// the value of `If-None-Match`.
fn omit_known_document(known: Option<&HeaderValue>, response: &mut Response<Body>) {
    if let Some(known) = known
        && let Some(tag) = response.headers().get(ETAG)
        && matches_tag(known, tag)
    {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(CONTENT_TYPE);
        *response.body_mut().content_mut() = Content::Empty;
    }
}

/// Compares an entity tag weakly with each tag in a list.
fn matches_tag(known: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(known), Ok(tag)) = (known.to_str(), tag.to_str()) else {
        return false;
    };
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    known.trim() == "*" || known.split(',').any(|known| opaque(known) == opaque(tag))
}

/// Removes the body of the response to `HEAD`. The head is the same as for `GET` (RFC 9110, section
/// 9.3.2). Sets `Content-Length` if the length is known.
fn remove_body_of_head(method: &Method, response: &mut Response<Body>) {
    if *method != Method::HEAD {
        return;
    }
    // In a 304, `Content-Length` would have to be the length of the omitted document (RFC 9110,
    // section 8.6), so it is not set.
    let is_of_document = response.status() != StatusCode::NOT_MODIFIED;
    if let Some(size) = response.body().exact_size().filter(|_| is_of_document) {
        response.headers_mut().insert(CONTENT_LENGTH, size.into());
    }
    *response.body_mut().content_mut() = Content::Empty;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_tag_of_the_list_may_match_weakly() {
        let tag = HeaderValue::from_static("W/\"b\"");
        for known in ["\"b\"", "W/\"b\"", "\"a\", W/\"b\"", "*"] {
            assert!(
                matches_tag(&HeaderValue::from_static(known), &tag),
                "{known}"
            );
        }
        assert!(!matches_tag(&HeaderValue::from_static("\"a\""), &tag));
    }
}
