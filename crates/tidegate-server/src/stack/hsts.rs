//! `Strict-Transport-Security` (RFC 6797): a browser that has used HTTPS once uses it for a year.

use std::ops::ControlFlow;

use http::header::STRICT_TRANSPORT_SECURITY;
use http::{HeaderValue, Request, Response};

use super::around::Around;
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::forwarded::{self, Peer};

/// Without `includeSubDomains`, because subdomains may belong to other services.
const A_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

#[derive(Clone, Debug)]
pub(crate) struct Hsts {
    app: App,
    peer: Peer,
}

impl Hsts {
    pub(crate) fn new(app: App, peer: Peer) -> Self {
        Self { app, peer }
    }
}

impl Around for Hsts {
    type State = bool;

    fn before<B>(&self, request: &mut Request<B>) -> ControlFlow<Response<Body>, bool> {
        let trusted = self.app.trusted_proxies();
        let encrypted = forwarded::is_encrypted(self.peer, request.headers(), trusted);
        ControlFlow::Continue(encrypted)
    }

    fn after(encrypted: bool, response: &mut Response<Body>) {
        if encrypted {
            let headers = response.headers_mut();
            headers.insert(STRICT_TRANSPORT_SECURITY, A_YEAR);
        }
    }
}
