//! What surrounds every request, from the outside in.
//!
//! Each layer is a few lines before and after the request ([`Around`]); none of them allocates on
//! the way, so that the whole stack costs less than a microsecond.

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

/// The whole API as a tower service, for requests that come from `peer`.
///
/// It is generic over the request's body, because hyper's cannot be built by hand: tests pass
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
        // Outermost, so that whatever answers carries the id under which it is logged.
        .layer(around(request_id::RequestId::new(app.clone())))
        // Counts and logs what is really sent, the refusals of the layers below too.
        .layer(around(access_log::AccessLog::new(app.clone())))
        // On every answer, those of the layers below too.
        .layer(around(hsts::Hsts::new(app.clone(), peer)))
        // A panic is a 500 with an id and an entry in the log, not a connection that breaks off.
        .layer(panics::CatchPanics)
        // Before anything is answered: whom such a request is for is in doubt.
        .layer(around(host::Host))
        // A browser must be able to read refusals too, so it stands before whatever refuses.
        .layer(around(cors::Cors::new(app.clone())))
        // Before anybody reads the fields; over HTTP/1.1 the parser itself has the limit.
        .layer(around(head_size::HeadSize))
        // HEAD takes the body away when everything that shapes the head has done its work.
        .layer(around(head::Head))
        // Outside of the validators, which speak of the document and not of its coding.
        .layer(around(compression::Compression))
        // A document that the client has already is not sent again.
        .layer(around(etag::Conditional))
        .service(Dispatch::new(app, peer))
}
