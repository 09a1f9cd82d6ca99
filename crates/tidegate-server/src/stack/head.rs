//! The layer for `HEAD`, whose response has the head of the response to `GET` (RFC 9110, section
//! 9.3.2).

use http::header::CONTENT_LENGTH;
use http::{Method, Response, StatusCode};

use tidegate_http::body::{Body, Content};

/// Removes the body of the response to `HEAD`, and sets `Content-Length` if the length is known.
pub(super) fn after(method: &Method, response: &mut Response<Body>) {
    if *method != Method::HEAD {
        return;
    }
    // A 304 has no length of its own (RFC 9110, section 8.6).
    let is_of_document = response.status() != StatusCode::NOT_MODIFIED;
    if let Some(size) = response.body().exact_size().filter(|_| is_of_document) {
        response.headers_mut().insert(CONTENT_LENGTH, size.into());
    }
    *response.body_mut().content_mut() = Content::Empty;
}
