//! Adds the URL of the resource metadata to `WWW-Authenticate`, so that a client that knows only
//! the URL of the API finds the authorization server (RFC 9728, section 5.1).

use http::header::{HeaderValue, WWW_AUTHENTICATE};
use http::{Response, StatusCode};
use tidegate_http::app::App;
use tidegate_http::body::Body;

use crate::route::Route;

/// Adds `resource_metadata` to the header `WWW-Authenticate: Bearer` of a response that refuses a
/// token or asks for one. Like all URLs in the metadata, this URL begins with the issuer's URL.
pub(super) fn add_to_challenge(app: &App, response: &mut Response<Body>) {
    let refuses = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&response.status());
    let Some(challenge) = response.headers().get(WWW_AUTHENTICATE).filter(|_| refuses) else {
        return;
    };
    let separator = match challenge.to_str() {
        Ok("Bearer") => " ",
        Ok(bearer) if bearer.starts_with("Bearer ") => ", ",
        _ => return,
    };
    let (issuer, path) = (
        app.issuer().address(),
        Route::ResourceMetadata.properties().path,
    );
    let mut named = challenge.as_bytes().to_vec();
    named.extend(format!("{separator}resource_metadata=\"{issuer}{path}\"").bytes());
    if let Ok(named) = HeaderValue::from_maybe_shared(bytes::Bytes::from(named)) {
        response.headers_mut().insert(WWW_AUTHENTICATE, named);
    }
}
