//! Documents that rarely change.

use std::sync::LazyLock;

use bytes::Bytes;
use http::header::ETAG;
use http::{HeaderValue, Response};
use serde_json::Value;
use tidegate_oauth::Endpoints;

use super::json;
use crate::app::App;
use crate::body::Body;
use crate::error::Failure;
use crate::stack::etag;

/// Keys are published an hour before they sign, so a few minutes do no harm.
pub(super) const MINUTES: HeaderValue = HeaderValue::from_static("public, max-age=300");

const ENDPOINTS: Endpoints<'static> = Endpoints {
    authorization: "/auth",
    token: "/api/v4/oauth",
    device_authorization: "/api/v4/oauth/device",
    revocation: "/api/v4/oauth/revoke",
    introspection: "/api/v4/oauth/introspect",
    key_set: "/.well-known/jwks.json",
};

static OPENAPI: LazyLock<Bytes> = LazyLock::new(|| {
    let document: Value = serde_json::from_str(include_str!("openapi.json"))
        .expect("the document beside this file is JSON");
    document.to_string().into()
});

/// `GET /.well-known/oauth-authorization-server` (RFC 8414).
pub(crate) fn metadata(app: &App) -> Response<Body> {
    document(app.issuer().metadata(&ENDPOINTS).into())
}

/// `GET /.well-known/jwks.json` (RFC 7517).
pub(crate) fn keys(app: &App) -> Result<Response<Body>, Failure> {
    Ok(document(
        app.issuer().key_set().map_err(Failure::internal)?.into(),
    ))
}

/// `GET /api/v4/openapi.json` (OpenAPI 3.1).
pub(crate) fn openapi() -> Response<Body> {
    document(OPENAPI.clone())
}

fn document(text: Bytes) -> Response<Body> {
    let tag = etag(&text);
    let mut response = json(text, MINUTES);
    response.headers_mut().insert(ETAG, tag);
    response
}
