//! The layers around the handler of every request, from the outermost to the innermost.
//!
//! Each layer is a module with functions that run before or after the handler. They are plain
//! functions in one future, because a response is too large to be moved through one future for each
//! layer.

mod compression;
mod cors;
mod etag;
mod head;
mod head_size;
mod host;
mod hsts;
mod observation;
mod panics;
mod request_id;

use std::convert::Infallible;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{self, Poll};

use bytes::Bytes;
use http::header::IF_NONE_MATCH;
use http::{Request, Response};
use tower::Service;

use crate::compress::Encoding;
use crate::dispatch;
use crate::route::{Route, RouteError};
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::forwarded::Peer;
use tidegate_http::request_body::BodyError;

pub(crate) use head_size::HTTP2_HEAD;
use observation::Observation;

/// The whole API as a tower service, for requests of `peer`.
///
/// The service is generic over the request's body, because hyper's body type has no constructor:
/// tests use `Full<Bytes>`.
pub fn service<B>(
    app: App,
    peer: Peer,
) -> impl Service<
    Request<B>,
    Response = Response<Body>,
    Error = Infallible,
    Future: Future<Output = Result<Response<Body>, Infallible>> + Send,
> + Clone
+ Send
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    Stack { app, peer }
}

#[derive(Clone, Debug)]
struct Stack {
    app: App,
    peer: Peer,
}

impl<B> Service<Request<B>> for Stack
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
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

/// The layers that see every request and every response.
async fn observed<B>(app: &App, peer: Peer, mut request: Request<B>) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    // The id comes first, so that every response has the id with which it is logged.
    let id = request_id::before(app, &mut request);
    let uri = request.uri().clone();
    let route = Route::parse(request.method(), uri.path());
    // The observation counts and logs what is really sent, so it is outside of all layers that can
    // respond.
    let observation = Observation::begin(app.clone(), &request, &route);
    let encrypted = hsts::before(app, peer, &request);
    // A panic becomes a logged response with status 500. If the panic were not caught, the
    // connection would be closed.
    let mut response = panics::catch(admitted(app, peer, &route, request), &id).await;
    hsts::after(encrypted, &mut response);
    observation.responded(&mut response);
    request_id::after(id, &mut response);
    response
}

/// The layers that refuse requests.
async fn admitted<B>(
    app: &App,
    peer: Peer,
    route: &Result<Route<'_>, RouteError>,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    // This check comes before any layer that responds, because it is unclear for which host a
    // request with an invalid `Host` is meant.
    if let Some(refusal) = host::refusal(&request) {
        return refusal;
    }
    // CORS is outside of all other layers that refuse requests, because browsers must be able to
    // read their responses.
    let grant = match cors::before(app, &request) {
        ControlFlow::Continue(grant) => grant,
        ControlFlow::Break(response) => return response,
    };
    // This check comes before any header is read. Over HTTP/1.1, the parser has the limit.
    let mut response = match head_size::refusal(&request) {
        Some(refusal) => refusal,
        None => negotiated(app, peer, route, request).await,
    };
    cors::after(grant, &mut response);
    response
}

/// The layers that change the representation of a document.
async fn negotiated<B>(
    app: &App,
    peer: Peer,
    route: &Result<Route<'_>, RouteError>,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<BodyError>,
{
    let method = request.method().clone();
    let encoding = Encoding::negotiate(request.headers());
    let known = request.headers().get(IF_NONE_MATCH).cloned();
    let mut response = dispatch::answer(app, peer, route, request).await;
    // A document that the client already has is omitted.
    etag::after(known.as_ref(), &mut response);
    // Compression is outside of ETags, which identify the document and not its coding.
    compression::after(encoding, &mut response);
    // The body for `HEAD` is removed after all layers that change the head.
    head::after(&method, &mut response);
    response
}
