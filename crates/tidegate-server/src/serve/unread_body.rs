//! Handles the rest of a request body that is unread when the response is ready.
//!
//! An error such as 404, 401 or 415 does not need the body. Over HTTP/1.1 the next request follows
//! the body's bytes, so a short rest is read and discarded. After a longer rest the connection must
//! be closed, and the response announces this. Without the announcement, the client would send its
//! next request on a closed connection (RFC 9112, section 9.6).

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT};
use http::{HeaderValue, Request, Response, Version};
use http_body::{Body, Frame, SizeHint};

use tidegate_http::request_body::{BodyError, discard};

/// The longest rest of a body that is read and discarded, in bytes.
const MAX_DRAINED: u64 = 64 * 1024;
/// How long reading the rest may take. Clients send a small body directly after its head.
const DRAINING: Duration = Duration::from_millis(500);

/// A request body. When it is dropped, its unread rest goes to its [`UnreadBody`].
pub(crate) struct TrackedBody<B> {
    body: Option<B>,
    rest: Arc<Mutex<Option<B>>>,
}

/// Holds the unread rest of a request's body after the body was dropped.
pub(crate) struct UnreadBody<B> {
    rest: Arc<Mutex<Option<B>>>,
    /// Whether the client waits for `100 Continue` before it sends the body.
    expects_continue: bool,
}

/// Wraps the body of a request so that its unread rest remains after the handler has dropped the
/// body. Returns no [`UnreadBody`] for HTTP/2, which resets the stream of an unread body.
pub(crate) fn split<B>(request: Request<B>) -> (Request<TrackedBody<B>>, Option<UnreadBody<B>>) {
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

impl<B> UnreadBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BodyError>,
{
    /// Reads and discards a short rest. If the rest is longer, makes the response announce that the
    /// connection will be closed.
    pub(crate) async fn discard_or_close<T>(self, response: &mut Response<T>) {
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
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(CONNECTION, close);
        }
    }
}

impl<B> Drop for TrackedBody<B> {
    fn drop(&mut self) {
        *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = self.body.take();
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for TrackedBody<B> {
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
        self.body.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), Body::size_hint)
    }
}
