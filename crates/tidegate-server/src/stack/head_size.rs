//! The layer that limits the size of an HTTP/2 request's head.
//!
//! hyper refuses a larger head with a status without a body, past the layers of this service. So
//! hyper's limit is twice the limit of this layer, which responds with an error that has a body.

use http::{Request, Response, StatusCode, Version};

use tidegate_http::body::Body;
use tidegate_http::error::ApiError;
use tidegate_http::report::{Context, REQUEST_ID};

/// The size of the largest head in bytes, measured as in HTTP/2 (RFC 9113, section 6.5.2).
pub(crate) const HTTP2_HEAD: u32 = 16 * 1024;

/// The number of bytes that a field counts in addition to its name and value.
const FIELD: usize = 32;

/// Returns the response to a request whose head is too large.
pub(super) fn refusal<B>(request: &Request<B>) -> Option<Response<Body>> {
    if request.version() != Version::HTTP_2 || size(request) <= HTTP2_HEAD as usize {
        return None;
    }
    let id = request.headers().get(REQUEST_ID);
    let context = Context {
        request_id: id.and_then(|id| id.to_str().ok()).unwrap_or_default(),
        route: "none",
        ..Context::default()
    };
    let failure = ApiError::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "INPUT_VALIDATION_ERROR",
        "the head is too large, expected at most 16 KiB over HTTP/2",
    );
    Some(failure.into_rest(&context))
}

/// The size of the header fields, and of the URL, which HTTP/2 sends as fields too.
fn size<B>(request: &Request<B>) -> usize {
    let uri = request.uri();
    let address = uri.path_and_query().map_or(0, |path| path.as_str().len())
        + uri
            .authority()
            .map_or(0, |authority| authority.as_str().len());
    let fields = request.headers().iter();
    fields.fold(address, |sum, (name, value)| {
        sum + name.as_str().len() + value.len() + FIELD
    })
}
