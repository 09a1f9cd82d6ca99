//! Handles one request of a connection: passes its head to the layers, reads the rest of its body,
//! and tracks its response until it has been sent. Detects clients that disconnect while they wait.
//!
//! A handler that responds with an error such as 404, 401 or 415 does not read the body. Over
//! HTTP/1.1, the next request follows the bytes of the body. So if the unread rest of the body is
//! short, it is read and discarded. If it is longer, the connection must be closed, and the
//! response announces this. Without the announcement, the client would send its next request on a
//! closed connection (RFC 9112, section 9.6).

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT, UPGRADE};
use http::{HeaderValue, Request, Response, StatusCode, Version};
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;
use tower::Service;

use super::activity::{ConnectionActivity, InFlight};
use super::stall::StallGuard;
use crate::endpoint::OperatorListener;
use crate::stack;
use tidegate_http::app::App;
use tidegate_http::body::{Body, Watcher};
use tidegate_http::forwarded::Peer;
use tidegate_http::request_body::{IncomingBody, discard};
use tidegate_socket::Handoff;

/// The interval at which the connection is checked while a client waits for a response. The check
/// is needed because hyper notices the end of a connection only after it has read all bytes before
/// the end, and it does not read bytes that follow a request until the response has been sent.
const CHECK_INTERVAL: Duration = Duration::from_millis(400);
/// The longest rest of a body that is read and discarded, in bytes.
const MAX_DRAINED: u64 = 64 * 1024;
/// The timeout for reading the rest of a body. It is short, because clients send a small body
/// directly after its head.
const DRAINING: Duration = Duration::from_millis(500);

/// The stack of layers as a hyper service. Marks each request as in progress until its response has
/// been sent. `operations` is true for a listener that serves only operators.
pub(super) fn service(
    (app, operations): (App, bool),
    peer: Peer,
    activity: Arc<ConnectionActivity>,
    handoff: Handoff,
) -> impl hyper::service::Service<
    Request<Incoming>,
    Response = Response<Body>,
    Error = Infallible,
    Future: Send + 'static,
> {
    let stack = stack::service::<TrackedBody<Incoming>>(app.clone(), peer);
    hyper::service::service_fn(move |mut request: Request<Incoming>| {
        if request.headers().contains_key(UPGRADE) {
            request.extensions_mut().insert(handoff.clone());
        }
        if operations {
            request.extensions_mut().insert(OperatorListener);
        }
        let in_flight = InFlight::begin(&activity);
        let version = request.version();
        let (request, unread_body) = split(request);
        let reply = stack.clone().call(request);
        let (app, activity) = (app.clone(), Arc::clone(&activity));
        async move {
            let mut response = watch_client(reply, &activity).await?;
            if let Some(unread_body) = unread_body {
                unread_body.discard_or_close(&mut response).await;
            }
            if version != Version::HTTP_2 && app.is_draining() {
                announce_close(&mut response);
            }
            if version == Version::HTTP_10 && response.body().exact_size().is_none() {
                in_flight.close_after();
            }
            keep_in_progress(response.body_mut(), in_flight);
            Ok(response)
        }
    })
}

/// Makes the response announce that the connection will be closed, unless the connection becomes a
/// WebSocket.
fn announce_close<T>(response: &mut Response<T>) {
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
}

/// Waits for a response. Until it is ready, requests periodic checks of the connection to the
/// client.
async fn watch_client<T>(response: impl Future<Output = T>, activity: &ConnectionActivity) -> T {
    let mut response = pin!(response);
    loop {
        tokio::select! {
            biased;
            done = &mut response => return done,
            () = tokio::time::sleep(CHECK_INTERVAL) => activity.request_check(),
        }
    }
}

/// Keeps the request marked as in progress until its response has been sent.
fn keep_in_progress(body: &mut Body, in_flight: InFlight) {
    // A connection with one response at a time needs no guard, because the monitor notices a stall
    // by the counters of the connection.
    if in_flight.is_multiplexed() && body.exact_size() != Some(0) {
        let content = body.content_mut();
        *content = StallGuard::guard(content.take(), in_flight);
        return;
    }
    let timer = body.content().is_statement().then(|| Timer(None));
    body.watch(Box::new(ResponseInProgress { in_flight, timer }));
}

/// A response that is being sent.
struct ResponseInProgress {
    in_flight: InFlight,
    /// The timer for a response whose statement may produce no rows for some time.
    timer: Option<Timer>,
}

impl Watcher for ResponseInProgress {
    fn pending(&mut self, cx: &mut Context<'_>) {
        if let Some(timer) = &mut self.timer {
            timer.wait(&self.in_flight, cx);
        }
    }

    fn complete(&mut self) {
        self.in_flight.finish();
    }
}

/// Checks the connection while the response waits for rows.
struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    /// Called when there are no bytes to send. Requests a check of whether the client is still
    /// connected if [`CHECK_INTERVAL`] has passed since the first call or the previous check.
    /// Registers the waker of the connection's task for the next check.
    fn wait(&mut self, in_flight: &InFlight, cx: &mut Context<'_>) {
        let timer = self
            .0
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(CHECK_INTERVAL)));
        if timer.as_mut().poll(cx).is_ready() {
            in_flight.request_check();
            timer
                .as_mut()
                .reset(tokio::time::Instant::now() + CHECK_INTERVAL);
            // This poll only registers the waker for the next check, which is not due yet.
            let _ = timer.as_mut().poll(cx);
        }
    }
}

/// A request body. When it is dropped, its unread rest goes to its [`UnreadBody`].
struct TrackedBody<B> {
    body: Option<B>,
    rest: Arc<Mutex<Option<B>>>,
}

/// Holds the unread rest of a request's body after the body was dropped.
struct UnreadBody<B> {
    rest: Arc<Mutex<Option<B>>>,
    /// Whether the client waits for `100 Continue` before it sends the body.
    expects_continue: bool,
}

/// Wraps the body of a request so that its unread rest remains after the handler has dropped the
/// body. Returns no [`UnreadBody`] for HTTP/2, which resets the stream of an unread body.
fn split<B>(request: Request<B>) -> (Request<TrackedBody<B>>, Option<UnreadBody<B>>) {
    let rest = Arc::new(Mutex::new(None));
    let unread_body = (request.version() != Version::HTTP_2).then(|| UnreadBody {
        rest: Arc::clone(&rest),
        expects_continue: request.headers().contains_key(EXPECT),
    });
    let received = |body| TrackedBody {
        body: Some(body),
        rest,
    };
    (request.map(received), unread_body)
}

impl<B: IncomingBody> UnreadBody<B> {
    /// Reads and discards a short rest. If the rest is longer, makes the response announce that the
    /// connection will be closed.
    async fn discard_or_close<T>(self, response: &mut Response<T>) {
        let rest = self
            .rest
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(rest) = rest.filter(|rest| !rest.is_end_stream()) else {
            return;
        };
        let small = rest.size_hint().lower() <= MAX_DRAINED && !self.expects_continue;
        if !small || !discard(rest, MAX_DRAINED, DRAINING).await {
            announce_close(response);
        }
    }
}

impl<B> Drop for TrackedBody<B> {
    fn drop(&mut self) {
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = self.body.take();
    }
}

impl<B: http_body::Body<Data = Bytes> + Unpin> http_body::Body for TrackedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let polled = Pin::new(body).poll_frame(cx);
        // After the end of the body, and after an error, there is no rest.
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body
            .as_ref()
            .is_none_or(http_body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), http_body::Body::size_hint)
    }
}
