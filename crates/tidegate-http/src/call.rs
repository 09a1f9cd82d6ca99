//! A request as it is passed to endpoints, and helpers for their responses.

use std::fmt;
use std::net::IpAddr;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode};

use crate::app::App;
use crate::body::Body;
use crate::error::JSON;
use crate::forwarded::{self, Peer};
use crate::report::{Context, Subject};

/// The value of `Cache-Control` for documents that clients may cache for five minutes.
pub const CACHE_FIVE_MINUTES: HeaderValue = HeaderValue::from_static("public, max-age=300");

/// A request as it is passed to endpoints.
pub struct Call<'a, B> {
    /// The parts of the service.
    pub app: &'a App,
    /// The other end of the connection: a client or a proxy.
    pub peer: Peer,
    /// The head of the request: method, URI and headers.
    pub head: &'a Parts,
    /// The body of the request. It has not been read yet.
    pub body: B,
    /// The largest allowed size of the body in bytes.
    pub body_limit: u64,
    /// The route, the login and the errors of the request, for the log, the metrics and the
    /// tenant's activity.
    pub subject: &'a mut Subject,
}

impl<B> Call<'_, B> {
    /// The context of the request, for log lines.
    pub fn context(&self) -> Context<'_> {
        Context::new(self.head, self.subject)
    }

    /// The address of the client, even if the request came through trusted proxies.
    pub fn client_address(&self) -> IpAddr {
        forwarded::client_address(self.peer, &self.head.headers, self.app.trusted_proxies())
    }
}

impl<B> fmt::Debug for Call<'_, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("peer", &self.peer)
            .field("subject", &self.subject)
            .finish_non_exhaustive()
    }
}

/// A response with status 200 and a JSON body. `cache` is the value of `Cache-Control`.
pub fn json(body: impl Into<Bytes>, cache: HeaderValue) -> Response<Body> {
    let mut response = Response::new(Body::from(body.into()));
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    response.headers_mut().insert(CACHE_CONTROL, cache);
    response
}

/// A response with status 204 and no body.
pub fn no_content() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
