//! The activity of a connection: reads and writes update counters, which are checked periodically.

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio_rustls::server::TlsStream;

use tidegate_http::limits::Timeouts;

/// The counters and flags of a connection.
#[derive(Default)]
pub(crate) struct ConnectionActivity {
    read: AtomicU64,
    written: AtomicU64,
    /// Whether the most recent write or flush is pending because the client does not read.
    blocked: AtomicBool,
    /// The number of requests that have started.
    requests: AtomicU64,
    /// The number of requests in progress.
    in_flight: AtomicU64,
    /// The value of the field `read` at the end of the most recent request. If `read` is greater
    /// while an HTTP/1 connection has no request in progress, the head of the next request is being
    /// received.
    read_before: AtomicU64,
    http2: AtomicBool,
    /// Whether the response in progress has no length, so that only the end of the connection marks
    /// its end. If such a response is incomplete, the connection is reset, because after a normal
    /// close the response would look complete.
    closes_after: AtomicBool,
    /// Whether the next flush must check that the client is still connected. Set periodically while
    /// the client waits for a response, or for the next rows of a response.
    needs_check: AtomicBool,
    /// Notified when the client has closed its side of the connection. hyper does not notice this
    /// as long as there are unread bytes.
    client_closed: Notify,
    /// The responses in progress; used for HTTP/2 only.
    responses: Mutex<Vec<Weak<dyn Stallable>>>,
}

/// A response that is aborted when the client stops reading it.
pub(super) trait Stallable: Send + Sync {
    /// Aborts the response if the client has read nothing of it for as long as `timeout`.
    fn check(&self, timeout: Duration, now: Instant);
}

/// Marks a request as in progress until this value is dropped.
pub(crate) struct InFlight(Arc<ConnectionActivity>);

impl InFlight {
    pub(crate) fn begin(activity: &Arc<ConnectionActivity>) -> Self {
        activity.requests.fetch_add(1, Relaxed);
        activity.in_flight.fetch_add(1, Relaxed);
        Self(Arc::clone(activity))
    }

    /// Whether the connection may have several requests at the same time, which only HTTP/2 allows.
    pub(crate) fn is_multiplexed(&self) -> bool {
        self.0.http2.load(Relaxed)
    }

    /// Records that only the end of the connection marks the end of the response. This is the case
    /// for an HTTP/1.0 response without `Content-Length`.
    pub(crate) fn close_after(&self) {
        self.0.closes_after.store(true, Relaxed);
    }

    /// Requests a check of whether the client is still connected.
    pub(super) fn request_check(&self) {
        self.0.request_check();
    }

    /// Records that the response has been written completely.
    pub(crate) fn finish(&self) {
        self.0.closes_after.store(false, Relaxed);
    }

    pub(super) fn activity(&self) -> Arc<ConnectionActivity> {
        Arc::clone(&self.0)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.read_before.store(self.0.read.load(Relaxed), Relaxed);
        self.0.in_flight.fetch_sub(1, Relaxed);
    }
}

/// The phase of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The client has sent no byte yet.
    Silent,
    /// The head of a request is being received.
    Head,
    /// A request is in progress.
    Busy,
    /// The connection waits for its next request.
    Idle,
}

/// The action that the task of a connection must take after a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The connection continues.
    Keep,
    /// The connection was idle for too long, and must be shut down gracefully.
    Shutdown,
    /// The client is too slow, so the connection must be closed immediately.
    Close,
}

/// Compares the counters of a connection with their values at the previous check, and stores since
/// when they have been unchanged.
pub(crate) struct Monitor {
    activity: Arc<ConnectionActivity>,
    /// The phase at the previous check, and the number of requests that had started by then.
    phase: (Phase, u64),
    phase_since: Instant,
    written: u64,
    written_since: Instant,
}

impl Monitor {
    pub(crate) fn new(activity: Arc<ConnectionActivity>, now: Instant) -> Self {
        Self {
            activity,
            phase: (Phase::Silent, 0),
            phase_since: now,
            written: 0,
            written_since: now,
        }
    }

    /// Compares the counters with those of the previous check, and decides whether the connection
    /// continues. Also aborts responses that have stalled for the write timeout.
    pub(crate) fn check(&mut self, timeouts: &Timeouts, now: Instant) -> Decision {
        let written = self.activity.written.load(Relaxed);
        if written != self.written || !self.activity.blocked.load(Relaxed) {
            (self.written, self.written_since) = (written, now);
        } else if now.duration_since(self.written_since) >= timeouts.write {
            return Decision::Close;
        }
        self.activity.check_responses(timeouts, now);
        let phase = (self.activity.phase(), self.activity.requests.load(Relaxed));
        if phase != self.phase {
            (self.phase, self.phase_since) = (phase, now);
        }
        let lasted = now.duration_since(self.phase_since);
        match phase.0 {
            Phase::Silent | Phase::Head if lasted >= timeouts.header => Decision::Close,
            Phase::Idle if lasted >= timeouts.idle => Decision::Shutdown,
            _ => Decision::Keep,
        }
    }
}

impl ConnectionActivity {
    /// Requests a check of whether the client is still connected. The next flush of an HTTP/1
    /// connection makes the check.
    pub(super) fn request_check(&self) {
        self.needs_check.store(true, Relaxed);
    }

    /// Waits until the client has disconnected during an HTTP/1 request.
    pub(super) async fn client_disconnected(&self) {
        self.client_closed.notified().await;
    }

    /// Whether the connection speaks HTTP/2 and has had a request. Only such a connection can be
    /// shut down gracefully. Before the first request, the HTTP/2 handshake may be incomplete, and
    /// hyper's graceful shutdown would close the connection abruptly.
    pub(super) fn has_served_http2(&self) -> bool {
        self.http2.load(Relaxed) && self.requests.load(Relaxed) > 0
    }

    /// The number of requests that have started on an HTTP/1 connection; `None` if a request is in
    /// progress, and for HTTP/2.
    pub(super) fn requests_if_idle(&self) -> Option<u64> {
        let is_idle = self.in_flight.load(Relaxed) == 0 && !self.http2.load(Relaxed);
        is_idle.then(|| self.requests.load(Relaxed))
    }

    /// Adds a response in progress. [`Monitor::check`] aborts it when it has stalled for the write
    /// timeout.
    pub(super) fn watch(&self, response: Weak<dyn Stallable>) {
        self.responses().push(response);
    }

    fn responses(&self) -> MutexGuard<'_, Vec<Weak<dyn Stallable>>> {
        self.responses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn check_responses(&self, timeouts: &Timeouts, now: Instant) {
        let mut responses = self.responses();
        responses.retain(|response| response.strong_count() > 0);
        let current: Vec<_> = responses.iter().filter_map(Weak::upgrade).collect();
        drop(responses);
        for response in current {
            response.check(timeouts.write, now);
        }
    }

    fn phase(&self) -> Phase {
        let read = self.read.load(Relaxed);
        if self.in_flight.load(Relaxed) > 0 {
            Phase::Busy
        } else if read == 0 {
            Phase::Silent
        } else if self.http2.load(Relaxed) {
            // Over HTTP/2, bytes between requests need not be a head. They may be other frames,
            // such as pings and window updates.
            Phase::Idle
        } else if read > self.read_before.load(Relaxed) {
            Phase::Head
        } else {
            Phase::Idle
        }
    }
}

/// A connection that can be ended with a TCP reset.
pub(crate) trait Reset {
    /// Makes the next close send a reset (RFC 9293, section 3.10.7).
    fn reset(&self);

    /// Whether the client has closed its side, even if there are unread bytes.
    fn is_closed(&self) -> bool;
}

impl Reset for TcpStream {
    fn reset(&self) {
        // If the option cannot be set, the connection is closed without a reset.
        let _ = self.set_zero_linger();
    }

    fn is_closed(&self) -> bool {
        let mut noop = Context::from_waker(Waker::noop());
        let ready = pin!(self.ready(Interest::READABLE)).poll(&mut noop);
        matches!(ready, Poll::Ready(Ok(ready)) if ready.is_read_closed())
    }
}

impl Reset for TlsStream<TcpStream> {
    fn reset(&self) {
        self.get_ref().0.reset();
    }

    fn is_closed(&self) -> bool {
        self.get_ref().0.is_closed()
    }
}

/// A connection that records its reads and writes in its [`ConnectionActivity`].
pub(crate) struct CountedIo<I: Reset> {
    io: I,
    activity: Arc<ConnectionActivity>,
}

impl<I: Reset> Drop for CountedIo<I> {
    fn drop(&mut self) {
        if self.activity.closes_after.load(Relaxed) {
            self.io.reset();
        }
    }
}

impl<I: Reset> CountedIo<I> {
    pub(crate) fn new(io: I, activity: Arc<ConnectionActivity>) -> Self {
        Self { io, activity }
    }

    fn wrote<T>(&self, poll: &Poll<std::io::Result<T>>, size: impl FnOnce(&T) -> usize) {
        match poll {
            Poll::Ready(Ok(done)) => {
                self.activity.written.fetch_add(size(done) as u64, Relaxed);
                self.activity.blocked.store(false, Relaxed);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => self.activity.blocked.store(true, Relaxed),
        }
    }
}

impl<I: AsyncRead + Reset + Unpin> AsyncRead for CountedIo<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buf.filled().len();
        let poll = Pin::new(&mut self.io).poll_read(cx, buf);
        let new = &buf.filled()[before..];
        if !new.is_empty() {
            let read = self.activity.read.fetch_add(new.len() as u64, Relaxed);
            // These are the first bytes of the preface of HTTP/2 (RFC 9113, section 3.4). No method
            // of HTTP/1 begins with them.
            if read == 0 && new.starts_with(b"PRI") {
                self.activity.http2.store(true, Relaxed);
            }
        }
        poll
    }
}

impl<I: AsyncWrite + Reset + Unpin> AsyncWrite for CountedIo<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let poll = Pin::new(&mut self.io).poll_write(cx, buf);
        self.wrote(&poll, |size| *size);
        poll
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        let poll = Pin::new(&mut self.io).poll_write_vectored(cx, bufs);
        self.wrote(&poll, |size| *size);
        poll
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        let poll = Pin::new(&mut self.io).poll_flush(cx);
        self.wrote(&poll, |()| 0);
        let activity = &self.activity;
        if activity.needs_check.load(Relaxed)
            && activity.needs_check.swap(false, Relaxed)
            && !activity.http2.load(Relaxed)
            && self.io.is_closed()
        {
            activity.client_closed.notify_one();
        }
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
