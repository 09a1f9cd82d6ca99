//! Aborts HTTP/2 responses that the client stops reading.
//!
//! hyper polls a body only when its stream has capacity, so the body itself cannot notice that the
//! client does not read it. The connection does not become idle either, because pings keep it
//! active. The monitor of the connection checks each response and aborts a stalled response. This
//! immediately frees the resources of the response, such as a statement or a part of the memory
//! budget, while other streams continue.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::activity::{InFlight, Stallable};
use tidegate_http::body::{BodyAborted, BodySource, Content};

/// Holds the content of a response in progress, so that the monitor can remove the content.
pub(crate) struct StallGuard(Mutex<Option<GuardedResponse>>);

struct GuardedResponse {
    content: Content,
    /// The time when bytes began to wait for the client; `None` if the client waits for bytes.
    waiting_since: Option<Instant>,
    _in_flight: InFlight,
}

impl StallGuard {
    /// Guards the content of a response while it is in progress.
    pub(crate) fn guard(content: Content, in_flight: InFlight) -> Content {
        let activity = in_flight.activity();
        let guard = Arc::new(Self(Mutex::new(Some(GuardedResponse {
            content,
            waiting_since: Some(Instant::now()),
            _in_flight: in_flight,
        }))));
        let stallable: Arc<dyn Stallable> = guard.clone();
        activity.watch(Arc::downgrade(&stallable));
        Content::Streamed(Box::pin(GuardedSource(guard)))
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyAborted>>> {
        let mut response = self.lock();
        let Some(response) = &mut *response else {
            return Poll::Ready(Some(Err(BodyAborted)));
        };
        let next = response.content.poll_next(cx);
        response.waiting_since = next.is_ready().then(Instant::now);
        next
    }

    fn lock(&self) -> MutexGuard<'_, Option<GuardedResponse>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stallable for StallGuard {
    fn check(&self, timeout: Duration, now: Instant) {
        let stalled = self.lock().take_if(|response| {
            response
                .waiting_since
                .is_some_and(|since| now.duration_since(since) >= timeout)
        });
        // The content is dropped outside of the lock, because dropping it may cancel a statement.
        drop(stalled);
    }
}

/// The source of bytes that a body reads from a guarded content.
struct GuardedSource(Arc<StallGuard>);

impl BodySource for GuardedSource {
    fn exact_size(&self) -> Option<u64> {
        self.0.lock().as_ref()?.content.exact_size()
    }

    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BodyAborted>>> {
        self.0.poll_next(cx)
    }
}
