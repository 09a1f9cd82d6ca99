//! The layer that turns a panic into a response with status 500.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures_util::FutureExt as _;
use http::{HeaderValue, Response};

use tidegate_http::body::Body;
use tidegate_http::error::ApiError;
use tidegate_http::report::Context;

/// Waits for the response. If `answer` panics, returns a response with status 500 and the id of the
/// request.
pub(super) async fn catch(
    answer: impl Future<Output = Response<Body>>,
    id: &HeaderValue,
) -> Response<Body> {
    // The future is dropped after a panic, so its inconsistent state is not observed.
    let caught = AssertUnwindSafe(answer).catch_unwind().await;
    caught.unwrap_or_else(|panic| {
        let context = Context {
            request_id: id.to_str().unwrap_or_default(),
            ..Context::default()
        };
        ApiError::internal(message(&*panic)).into_rest(&context)
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}
