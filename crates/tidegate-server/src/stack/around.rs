//! A tower layer made from two synchronous functions.

use std::convert::Infallible;
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Request, Response};
use pin_project_lite::pin_project;
use tower::{Layer, Service};

use tidegate_http::body::Body;

/// What a layer does before and after a request. Neither function waits.
pub(crate) trait Around: Clone {
    /// What `after` needs from `before`.
    type State;

    /// Sees the request before it is handled. May change its head, or respond at once.
    fn before<B>(&self, request: &mut Request<B>) -> ControlFlow<Response<Body>, Self::State>;

    /// Changes the response in place; it is too large to be moved through every layer.
    fn after(state: Self::State, response: &mut Response<Body>);
}

/// A layer that runs `around`.
pub(crate) fn around<A>(around: A) -> AroundLayer<A> {
    AroundLayer(around)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct AroundLayer<A>(A);

impl<A: Clone, S> Layer<S> for AroundLayer<A> {
    type Service = AroundService<A, S>;

    fn layer(&self, inner: S) -> Self::Service {
        AroundService {
            around: self.0.clone(),
            inner,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct AroundService<A, S> {
    around: A,
    inner: S,
}

impl<A, S, B> Service<Request<B>> for AroundService<A, S>
where
    A: Around,
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = AroundFuture<A, S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        match A::before(&self.around, &mut request) {
            ControlFlow::Continue(state) => AroundFuture::Asked {
                state: Some(state),
                inner: self.inner.call(request),
            },
            ControlFlow::Break(response) => AroundFuture::Answered {
                response: Some(response),
            },
        }
    }
}

pin_project! {
    /// The future of [`AroundService`].
    #[project = Projected]
    pub(crate) enum AroundFuture<A: Around, F> {
        Asked {
            state: Option<A::State>,
            #[pin]
            inner: F,
        },
        Answered { response: Option<Response<Body>> },
    }
}

impl<A, F> Future for AroundFuture<A, F>
where
    A: Around,
    F: Future<Output = Result<Response<Body>, Infallible>>,
{
    type Output = Result<Response<Body>, Infallible>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Projected::Asked { state, inner } => {
                let mut polled = inner.poll(cx);
                if let Poll::Ready(Ok(response)) = &mut polled {
                    let state = state.take().expect("a future is not polled after its end");
                    A::after(state, response);
                }
                polled
            }
            Projected::Answered { response } => {
                let response = response.take();
                Poll::Ready(Ok(response.expect("a future is not polled after its end")))
            }
        }
    }
}
