//! The browser console: its page at `/` and `/console/`, and its files.

use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use http::{HeaderName, HeaderValue, Response};

use super::graphql;
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::console::File;
use tidegate_http::error::ApiError;
use tidegate_socket as socket;

/// The content security policy of the pages. A page may run only scripts of this service, and may
/// call only this service.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
);
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
const PROTECTION: [(HeaderName, HeaderValue); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        SAME_ORIGIN,
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        SAME_ORIGIN,
    ),
];

/// Handles `GET /`: the console for browsers, a WebSocket for other clients.
pub(crate) fn root<B>(call: &Call<'_, B>) -> Result<Response<Body>, ApiError> {
    let Call { app, head, .. } = call;
    let browser = graphql::wants_page(&head.headers) && !socket::is_handshake(&head.headers);
    let page = app.console().filter(|_| browser);
    let Some(console) = page else {
        return socket::upgrade(app, head, None);
    };
    let mut response = response(console.page());
    let headers = response.headers_mut();
    headers.append(VARY, HeaderValue::from_static("Accept, Upgrade"));
    Ok(response)
}

/// Handles `GET /console/`: the HTML page of the console.
///
/// # Errors
///
/// 404 if the console is switched off.
pub(crate) fn page(app: &App) -> Result<Response<Body>, ApiError> {
    let console = app.console().ok_or_else(no_such_path)?;
    Ok(response(console.page()))
}

/// Handles `GET /console/{name}`: a file that the page loads.
///
/// # Errors
///
/// 404 if there is no such file, or the console is switched off.
pub(crate) fn file(app: &App, name: &str) -> Result<Response<Body>, ApiError> {
    let file = app.console().and_then(|console| console.file(name));
    file.map(response).ok_or_else(no_such_path)
}

pub(super) fn response(file: &File) -> Response<Body> {
    let mut response = Response::new(Body::from(file.bytes.clone()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(file.media_type));
    headers.insert(ETAG, file.etag.clone());
    // The names of the files contain no version, so browsers must ask whether they changed.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.extend(PROTECTION);
    response
}

pub(super) fn no_such_path() -> ApiError {
    ApiError::not_found("there is no such path")
}
