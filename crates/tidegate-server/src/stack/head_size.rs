//! The size limit of an HTTP/2 request's head.
//!
//! hyper refuses a larger one with a bare status, which our layers do not see. So hyper's limit is
//! twice ours, and the error response is made here.

use std::ops::ControlFlow;

use http::{Request, Response, StatusCode, Version};

use super::around::Around;
use tidegate_http::body::Body;
use tidegate_http::error::ApiError;
use tidegate_http::report::{Context, REQUEST_ID};

/// The largest head, measured as in HTTP/2 (RFC 9113, section 6.5.2).
pub(crate) const HTTP2_HEAD: u32 = 16 * 1024;

/// What each field counts in addition to its name and value.
const FIELD: usize = 32;

#[derive(Clone, Copy, Debug)]
pub(crate) struct HeadSize;

impl Around for HeadSize {
    type State = ();

    fn before<B>(&self, request: &mut Request<B>) -> ControlFlow<Response<Body>> {
        if request.version() != Version::HTTP_2 || size(request) <= HTTP2_HEAD as usize {
            return ControlFlow::Continue(());
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
        ControlFlow::Break(failure.into_rest(&context))
    }

    fn after((): (), _: &mut Response<Body>) {}
}

/// The size of the fields and of the URL, which is sent in fields too.
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
