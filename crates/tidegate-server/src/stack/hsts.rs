//! The layer that sets `Strict-Transport-Security` (RFC 6797): a browser that has used HTTPS once
//! uses only HTTPS for a year.

use http::header::STRICT_TRANSPORT_SECURITY;
use http::{HeaderValue, Request, Response};

use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::forwarded::{self, Peer};

/// The value of the header. It has no `includeSubDomains`, because subdomains may belong to other
/// services.
const MAX_AGE_YEAR: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Whether the client uses HTTPS.
pub(super) fn before<B>(app: &App, peer: Peer, request: &Request<B>) -> bool {
    forwarded::is_encrypted(peer, request.headers(), app.trusted_proxies())
}

/// Sets the field for a client that uses HTTPS.
pub(super) fn after(encrypted: bool, response: &mut Response<Body>) {
    if encrypted {
        let headers = response.headers_mut();
        headers.insert(STRICT_TRANSPORT_SECURITY, MAX_AGE_YEAR);
    }
}
