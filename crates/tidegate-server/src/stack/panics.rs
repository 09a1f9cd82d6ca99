//! Turns a panic into a response with status 500.

use std::any::Any;
use std::convert::Infallible;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use tidegate_http::body::Body;
use tidegate_http::error::ApiError;
use tidegate_http::report::Context as Origin;
use tidegate_http::report::REQUEST_ID;

#[derive(Clone, Copy, Debug)]
pub(crate) struct CatchPanics;

#[derive(Clone, Copy, Debug)]
pub(crate) struct CatchPanicsService<S>(S);

impl<S> Layer<S> for CatchPanics {
    type Service = CatchPanicsService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        CatchPanicsService(inner)
    }
}

impl<S, B> Service<Request<B>> for CatchPanicsService<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = CatchPanicsFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let id = request.headers().get(REQUEST_ID).cloned();
        CatchPanicsFuture {
            inner: self.0.call(request),
            id,
        }
    }
}

pin_project! {
    /// The future of [`CatchPanicsService`].
    pub(crate) struct CatchPanicsFuture<F> {
        #[pin]
        inner: F,
        id: Option<http::HeaderValue>,
    }
}

impl<F> Future for CatchPanicsFuture<F>
where
    F: Future<Output = Result<Response<Body>, Infallible>>,
{
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        // The future is never polled again after a panic, so its inconsistent state is not
        // observed.
        catch_unwind(AssertUnwindSafe(|| this.inner.poll(cx))).unwrap_or_else(|panic| {
            let id = this
                .id
                .as_ref()
                .and_then(|id| id.to_str().ok())
                .unwrap_or_default();
            let context = Origin {
                request_id: id,
                ..Origin::default()
            };
            Poll::Ready(Ok(ApiError::internal(message(&*panic)).into_rest(&context)))
        })
    }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("panic: {}", text.unwrap_or("without a message"))
}
