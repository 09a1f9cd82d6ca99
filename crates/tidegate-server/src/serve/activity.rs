//! What a connection has done, counted where it happens and judged now and then.

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

/// The counters of a connection.
#[derive(Default)]
pub(crate) struct ConnectionActivity {
    read: AtomicU64,
    written: AtomicU64,
    /// Bytes wait that the peer does not take.
    blocked: AtomicBool,
    /// Requests begun.
    requests: AtomicU64,
    in_flight: AtomicU64,
    /// `read` when the last request ended.
    read_before: AtomicU64,
    http2: AtomicBool,
    /// The peer would take the end of the connection for the end of an answer that has more.
    owing: AtomicBool,
    /// A request has waited for its answer for a while: it is time to look after the peer.
    waits: AtomicBool,
    /// The peer has closed its side meanwhile, which nobody reads who has unread bytes before.
    gone: Notify,
    /// The responses in progress, of HTTP/2 only.
    responses: Mutex<Vec<Weak<dyn Stallable>>>,
}

/// A response that is aborted when the client stops reading it.
pub(super) trait Stallable: Send + Sync {
    /// Aborts the response if the client has read nothing of it for `patience`.
    fn judge(&self, patience: Duration, now: Instant);
}

/// One request in flight; it is over when this is dropped.
pub(crate) struct InFlight(Arc<ConnectionActivity>);

impl InFlight {
    pub(crate) fn begin(activity: &Arc<ConnectionActivity>) -> Self {
        activity.requests.fetch_add(1, Relaxed);
        activity.in_flight.fetch_add(1, Relaxed);
        Self(Arc::clone(activity))
    }

    /// Whether other requests are answered on the connection at the same time.
    pub(crate) fn is_multiplexed(&self) -> bool {
        self.0.http2.load(Relaxed)
    }

    /// The answer ends with the connection, as HTTP/1.0 has it without a length.
    pub(crate) fn owe(&self) {
        self.0.owing.store(true, Relaxed);
    }

    /// Has the connection look after the peer of an answer that has begun.
    pub(super) fn attend(&self) {
        self.0.attend();
    }

    /// All of the answer is on its way.
    pub(crate) fn settle(&self) {
        self.0.owing.store(false, Relaxed);
    }

    /// The counters of the connection.
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

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing has come yet.
    Silent,
    /// A request's head has begun.
    Head,
    /// A request is being answered.
    Busy,
    /// It waits for the next request.
    Idle,
}

/// What is to be done with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// It may go on.
    Live,
    /// It has been without a request for long enough: it may end what it does and close.
    Rest,
    /// The peer is too slow: it is closed at once.
    Drop,
}

/// Looks at the counters from time to time and remembers since when they stand still.
pub(crate) struct Monitor {
    activity: Arc<ConnectionActivity>,
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

    /// Judges the connection by what has changed since the last time.
    pub(crate) fn judge(&mut self, timeouts: &Timeouts, now: Instant) -> Decision {
        let written = self.activity.written.load(Relaxed);
        if written != self.written || !self.activity.blocked.load(Relaxed) {
            (self.written, self.written_since) = (written, now);
        } else if now.duration_since(self.written_since) >= timeouts.write {
            return Decision::Drop;
        }
        self.activity.judge_responses(timeouts, now);
        let phase = (self.activity.phase(), self.activity.requests.load(Relaxed));
        if phase != self.phase {
            (self.phase, self.phase_since) = (phase, now);
        }
        let lasted = now.duration_since(self.phase_since);
        match phase.0 {
            Phase::Silent | Phase::Head if lasted >= timeouts.header => Decision::Drop,
            Phase::Idle if lasted >= timeouts.idle => Decision::Rest,
            _ => Decision::Live,
        }
    }
}

impl ConnectionActivity {
    /// Has the connection look after the peer when it is woken.
    pub(super) fn attend(&self) {
        self.waits.store(true, Relaxed);
    }

    /// Waits until the peer has gone while a request of HTTP/1 was in flight.
    pub(super) async fn abandoned(&self) {
        self.gone.notified().await;
    }

    /// How many requests have begun on a connection of HTTP/1, if none of them is in flight.
    pub(super) fn settled(&self) -> Option<u64> {
        let settled = self.in_flight.load(Relaxed) == 0 && !self.http2.load(Relaxed);
        settled.then(|| self.requests.load(Relaxed))
    }

    /// Has [`Monitor::judge`] judge a response, too.
    pub(super) fn watch(&self, response: Weak<dyn Stallable>) {
        self.responses().push(response);
    }

    fn responses(&self) -> MutexGuard<'_, Vec<Weak<dyn Stallable>>> {
        self.responses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn judge_responses(&self, timeouts: &Timeouts, now: Instant) {
        let mut responses = self.responses();
        responses.retain(|response| response.strong_count() > 0);
        let current: Vec<_> = responses.iter().filter_map(Weak::upgrade).collect();
        drop(responses);
        for response in current {
            response.judge(timeouts.write, now);
        }
    }

    fn phase(&self) -> Phase {
        let read = self.read.load(Relaxed);
        if self.in_flight.load(Relaxed) > 0 {
            Phase::Busy
        } else if read == 0 {
            Phase::Silent
        } else if self.http2.load(Relaxed) {
            // Frames that are no request (pings, windows) come between requests too.
            Phase::Idle
        } else if read > self.read_before.load(Relaxed) {
            Phase::Head
        } else {
            Phase::Idle
        }
    }
}

/// A connection that can be ended so that the peer sees an error.
pub(crate) trait Reset {
    /// Makes the close that follows a reset (RFC 9293, section 3.10.7).
    fn reset(&self);

    /// Whether the peer sends nothing any more, whatever it sent before.
    fn is_closed(&self) -> bool;
}

impl Reset for TcpStream {
    fn reset(&self) {
        // What cannot be reset is closed as ever.
        let _ = self.set_zero_linger();
    }

    fn is_closed(&self) -> bool {
        let mut nobody = Context::from_waker(Waker::noop());
        let ready = pin!(self.ready(Interest::READABLE)).poll(&mut nobody);
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

/// A connection that counts.
pub(crate) struct Watched<I: Reset> {
    io: I,
    activity: Arc<ConnectionActivity>,
}

impl<I: Reset> Drop for Watched<I> {
    fn drop(&mut self) {
        if self.activity.owing.load(Relaxed) {
            self.io.reset();
        }
    }
}

impl<I: Reset> Watched<I> {
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

impl<I: AsyncRead + Reset + Unpin> AsyncRead for Watched<I> {
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
            // The preface of HTTP/2 (RFC 9113, section 3.4) is no method of HTTP/1.
            if read == 0 && new.starts_with(b"PRI") {
                self.activity.http2.store(true, Relaxed);
            }
        }
        poll
    }
}

impl<I: AsyncWrite + Reset + Unpin> AsyncWrite for Watched<I> {
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
        if activity.waits.load(Relaxed)
            && activity.waits.swap(false, Relaxed)
            && !activity.http2.load(Relaxed)
            && self.io.is_closed()
        {
            activity.gone.notify_one();
        }
        poll
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
