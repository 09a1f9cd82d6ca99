//! Endpoints of JSON documents that rarely change.

use bytes::Bytes;
use http::Response;
use http::header::ETAG;
use tidegate_oauth::Endpoints;

use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::{CACHE_FIVE_MINUTES, json};
use tidegate_http::error::ApiError;
use tidegate_http::etag::etag;

const ENDPOINTS: Endpoints<'static> = Endpoints {
    authorization: "/auth",
    token: "/api/v4/oauth",
    device_authorization: "/api/v4/oauth/device",
    revocation: "/api/v4/oauth/revoke",
    introspection: "/api/v4/oauth/introspect",
    key_set: "/.well-known/jwks.json",
    user_info: "/api/v4/oauth/userinfo",
    end_session: "/signout",
};

/// Handles `GET /.well-known/oauth-authorization-server` (RFC 8414).
pub(crate) fn metadata(app: &App) -> Response<Body> {
    document(app.issuer().metadata(&ENDPOINTS).into())
}

/// Handles `GET /.well-known/openid-configuration` (OpenID Connect Discovery 1.0).
pub(crate) fn openid_metadata(app: &App) -> Response<Body> {
    document(app.issuer().openid_metadata(&ENDPOINTS).into())
}

/// Handles `GET /.well-known/oauth-protected-resource` (RFC 9728).
pub(crate) fn resource_metadata(app: &App) -> Response<Body> {
    document(app.issuer().resource_metadata(&ENDPOINTS).into())
}

/// Handles `GET /.well-known/jwks.json` (RFC 7517).
pub(crate) fn keys(app: &App) -> Result<Response<Body>, ApiError> {
    Ok(document(
        app.issuer().key_set().map_err(ApiError::internal)?.into(),
    ))
}

/// A response with a JSON document. It has an entity tag, and may be cached for five minutes.
pub(super) fn document(text: Bytes) -> Response<Body> {
    let tag = etag(&text);
    let mut response = json(text, CACHE_FIVE_MINUTES);
    response.headers_mut().insert(ETAG, tag);
    response
}
