//! Answers on HTTP/2 streams that the peer stops taking.
//!
//! hyper asks a body for bytes only when its stream has room, so a body cannot tell by itself that
//! nobody takes it, and pings keep the connection alive meanwhile. Whoever judges the connection
//! looks, and cuts the one answer off: what it holds goes at once, a statement or a share of the
//! memory, while other streams go on.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::activity::{InFlight, Stallable};
use tidegate_http::body::{Content, Interrupted, Source};

/// What an answer holds, where it can be taken away.
pub(crate) struct StallGuard(Mutex<Option<Held>>);

struct Held {
    content: Content,
    /// Since when bytes wait for the peer; `None` while the peer waits for bytes.
    waiting_since: Option<Instant>,
    _in_flight: InFlight,
}

impl StallGuard {
    /// Guards the content of a response, for as long as it is in progress.
    pub(crate) fn guard(content: Content, in_flight: InFlight) -> Content {
        let activity = in_flight.activity();
        let guard = Arc::new(Self(Mutex::new(Some(Held {
            content,
            waiting_since: Some(Instant::now()),
            _in_flight: in_flight,
        }))));
        let judged: Arc<dyn Stallable> = guard.clone();
        activity.watch(Arc::downgrade(&judged));
        Content::Streamed(Box::pin(Guarded(guard)))
    }

    fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Interrupted>>> {
        let mut held = self.held();
        let Some(held) = &mut *held else {
            return Poll::Ready(Some(Err(Interrupted)));
        };
        let next = held.content.poll_next(cx);
        held.waiting_since = next.is_ready().then(Instant::now);
        next
    }

    fn held(&self) -> MutexGuard<'_, Option<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stallable for StallGuard {
    fn judge(&self, patience: Duration, now: Instant) {
        let stalled = self.held().take_if(|held| {
            held.waiting_since
                .is_some_and(|since| now.duration_since(since) >= patience)
        });
        // Outside of the lock, because it may cancel a statement.
        drop(stalled);
    }
}

/// The response as the body sees it.
struct Guarded(Arc<StallGuard>);

impl Source for Guarded {
    fn exact_size(&self) -> Option<u64> {
        self.0.held().as_ref()?.content.exact_size()
    }

    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Interrupted>>> {
        self.0.poll_next(cx)
    }
}
