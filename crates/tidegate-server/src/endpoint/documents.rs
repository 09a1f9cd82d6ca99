//! Documents that rarely change.

use std::sync::LazyLock;

use bytes::Bytes;
use http::Response;
use http::header::ETAG;
use serde_json::Value;
use tidegate_oauth::Endpoints;

use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::{MINUTES, etag, json};
use tidegate_http::error::Failure;

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
