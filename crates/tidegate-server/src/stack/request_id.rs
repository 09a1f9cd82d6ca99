//! The layer for `X-Request-Id`. If the client sends an id of 1 to 128 visible ASCII characters,
//! that id is used. Otherwise the request gets a new id.

use http::{HeaderValue, Request, Response};

use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::report::REQUEST_ID;

const LONGEST: usize = 128;

/// Returns the id of a request, and sets it in the request for the inner layers.
pub(super) fn before<B>(app: &App, request: &mut Request<B>) -> HeaderValue {
    let headers = request.headers_mut();
    if let Some(id) = headers.get(REQUEST_ID).filter(|id| is_acceptable(id)) {
        return id.clone();
    }
    let id = app.request_id();
    headers.insert(REQUEST_ID, id.clone());
    id
}

/// Sets the id in the response.
pub(super) fn after(id: HeaderValue, response: &mut Response<Body>) {
    response.headers_mut().insert(REQUEST_ID, id);
}

fn is_acceptable(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    (1..=LONGEST).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}
