//! The layers around every request, from the outermost to the innermost.
//!
//! Each layer is a few lines before and after the request ([`Around`]). None of them allocates, and
//! the whole stack costs less than a microsecond.

mod access_log;
mod around;
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

use bytes::Bytes;
use http::{Request, Response};
use tower::{Service, ServiceBuilder};

use crate::dispatch::Dispatch;
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::forwarded::Peer;
use tidegate_http::request_body::BodyError;

use around::around;
pub(crate) use head_size::HTTP2_HEAD;

/// The whole API as a tower service, for requests of `peer`.
///
/// It is generic over the request's body, because hyper's body type has no constructor: tests use
/// `Full<Bytes>`.
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
    ServiceBuilder::new()
        // Outermost, so that every response has the id with which it is logged.
        .layer(around(request_id::RequestId::new(app.clone())))
        // Counts and logs what is really sent, including responses of the layers below.
        .layer(around(access_log::AccessLog::new(app.clone())))
        // On every response, including those of the layers below.
        .layer(around(hsts::Hsts::new(app.clone(), peer)))
        // A panic becomes a logged 500 instead of a closed connection.
        .layer(panics::CatchPanics)
        // Before any other layer responds: it is unclear for which host such a request is meant.
        .layer(around(host::Host))
        // Before any layer that refuses requests, because browsers must be able to read those
        // responses.
        .layer(around(cors::Cors::new(app.clone())))
        // Before the fields are read. Over HTTP/1.1 the parser has the limit.
        .layer(around(head_size::HeadSize))
        // HEAD removes the body after all layers that change the head.
        .layer(around(head::Head))
        // Outside of ETags, which identify the document and not its coding.
        .layer(around(compression::Compression))
        // Omits a document that the client already has.
        .layer(around(etag::Conditional))
        .service(Dispatch::new(app, peer))
}
