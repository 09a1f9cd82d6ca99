//! The documentation: its pages at `/docs/`, and `/llms.txt`.

use http::header::{ETAG, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use super::console::{no_such_path, response};
use super::{graphql, openapi};
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::call::Call;
use tidegate_http::docs::Docs;
use tidegate_http::error::ApiError;

/// Handles `GET /docs/{path}`: a page, or a file that a page refers to.
///
/// # Errors
///
/// 404 if the documentation is switched off, or if there is no such page. In the second case, a
/// browser gets an HTML page with this status.
pub(crate) fn page<B>(call: &Call<'_, B>, path: &str) -> Result<Response<Body>, ApiError> {
    let docs = call.app.docs().ok_or_else(no_such_path)?;
    match docs.file(path, openapi) {
        Some(file) => Ok(response(file)),
        None => missing(docs, &call.head.headers),
    }
}

/// Handles `GET /docs/{folder}/{name}` like [`page`].
pub(crate) fn page_of<B>(
    call: &Call<'_, B>,
    folder: &str,
    name: &str,
) -> Result<Response<Body>, ApiError> {
    page(call, &format!("{folder}/{name}"))
}

/// Handles `GET /llms.txt`: the list of chapters for language models.
///
/// # Errors
///
/// 404 when the documentation is switched off.
pub(crate) fn llms(app: &App) -> Result<Response<Body>, ApiError> {
    app.docs().ok_or_else(no_such_path)?;
    Ok(response(&Docs::llms()))
}

fn missing(docs: &Docs, headers: &HeaderMap) -> Result<Response<Body>, ApiError> {
    if !graphql::wants_page(headers) {
        return Err(no_such_path());
    }
    let mut response = response(&docs.not_found());
    *response.status_mut() = StatusCode::NOT_FOUND;
    let headers = response.headers_mut();
    // The entity tag is removed, because with it a conditional request would get 304 and not 404.
    headers.remove(ETAG);
    headers.append(VARY, HeaderValue::from_static("Accept"));
    Ok(response)
}
