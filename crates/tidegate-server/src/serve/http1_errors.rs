//! An answer with a body and a request id to what is no HTTP/1.
//!
//! hyper's parser refuses such a head by itself and writes a bare status, which no layer of ours
//! sees. Its bytes are the only ones that come while no request is in flight and after everything
//! that was answered has been flushed, so they can be told apart where they are written, and an
//! answer as to every other mistake takes their place. The status stays hyper's.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::ConnectionActivity;
use tidegate_http::app::App;
use tidegate_http::error::Failure;
use tidegate_http::report::{Errors, Protocol};

/// The field by which hyper's own answer is known: every one of ours has a request id and most a
/// body.
const BARE: &str = "content-length: 0";

/// A connection that explains hyper's own refusals.
pub(crate) struct Explained<I> {
    io: I,
    app: App,
    activity: Arc<ConnectionActivity>,
    /// How many requests had begun when everything was answered and flushed.
    settled: Option<u64>,
    replacement: Option<Replacement>,
}

/// What is written instead of hyper's bytes.
struct Replacement {
    bytes: Vec<u8>,
    written: usize,
    /// How many bytes hyper believes to write.
    replaced: usize,
}

impl<I> Explained<I> {
    pub(crate) fn new(io: I, app: App, activity: Arc<ConnectionActivity>) -> Self {
        Self {
            io,
            app,
            activity,
            settled: Some(0),
            replacement: None,
        }
    }

    /// Finds a refusal of hyper's in what is about to be written.
    fn notice(&mut self, bytes: &[u8]) {
        let settled = self.activity.settled();
        if self.replacement.is_some() || settled.is_none() || settled != self.settled {
            return;
        }
        let Some((status, fields)) = refusal(bytes) else {
            return;
        };
        self.replacement = Some(Replacement {
            bytes: explain(&self.app, status, fields),
            written: 0,
            replaced: bytes.len(),
        });
    }
}

impl<I: AsyncWrite + Unpin> Explained<I> {
    /// Writes the replacement to its end, and then says what hyper expects to hear.
    fn poll_replacement(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<usize>>> {
        let Some(replacement) = &mut self.replacement else {
            return Poll::Ready(None);
        };
        while let rest @ [_, ..] = &replacement.bytes[replacement.written..] {
            match ready!(Pin::new(&mut self.io).poll_write(cx, rest)) {
                Ok(0) => return Poll::Ready(Some(Ok(0))),
                Ok(size) => replacement.written += size,
                Err(error) => return Poll::Ready(Some(Err(error))),
            }
        }
        let replaced = replacement.replaced;
        self.replacement = None;
        Poll::Ready(Some(Ok(replaced)))
    }
}

/// The status and the fields of an answer that hyper wrote by itself, which has no body.
fn refusal(bytes: &[u8]) -> Option<(StatusCode, &str)> {
    let head = std::str::from_utf8(bytes).ok()?.strip_suffix("\r\n\r\n")?;
    let (line, fields) = head.split_once("\r\n")?;
    let status = line.strip_prefix("HTTP/1.")?.get(2..5)?;
    let status = StatusCode::from_bytes(status.as_bytes()).ok()?;
    let bare = fields.split("\r\n").any(|field| field == BARE);
    (status.is_client_error() && bare).then_some((status, fields))
}

/// The whole answer; hyper's fields are kept but for the length.
fn explain(app: &App, status: StatusCode, fields: &str) -> Vec<u8> {
    let message = match status {
        StatusCode::URI_TOO_LONG | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            "the head is too large, expected at most 64 KiB in 100 fields"
        }
        _ => "the head is not valid HTTP/1.1, expected a request line and fields as in RFC 9112",
    };
    answer(app, (status, message), fields)
}

/// The answer to plain HTTP where HTTPS is spoken.
pub(crate) fn plain(app: &App) -> Vec<u8> {
    let message = "this port speaks HTTPS; use https:// in the address";
    answer(app, (StatusCode::BAD_REQUEST, message), "connection: close")
}

fn answer(app: &App, (status, message): (StatusCode, &'static str), fields: &str) -> Vec<u8> {
    let failure = Failure::new(status, "INPUT_VALIDATION_ERROR", message);
    app.metrics()
        .errors(&Errors::of_failure(Protocol::Rest, &failure));
    let id = app.request_id();
    let id = id.to_str().unwrap_or_default();
    tracing::info!(
        target: "tidegate::access",
        request_id = id,
        status = status.as_u16(),
        error = failure.code,
        "malformed HTTP request"
    );
    let body = failure.rest_body();
    let mut answer = format!("HTTP/1.1 {status}\r\nx-request-id: {id}\r\n");
    let kept = fields.split("\r\n").filter(|field| *field != BARE);
    answer.extend(kept.flat_map(|field| [field, "\r\n"]));
    let length = body.len();
    let rest = format!(
        "content-type: application/json; charset=utf-8\r\ncache-control: no-store\r\n\
         content-length: {length}\r\n\r\n"
    );
    answer.push_str(&rest);
    let mut answer = answer.into_bytes();
    answer.extend(body);
    answer
}

impl<I: AsyncRead + Unpin> AsyncRead for Explained<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Explained<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.notice(buf);
        match ready!(self.poll_replacement(cx)) {
            Some(done) => Poll::Ready(done),
            None => Pin::new(&mut self.io).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // A refusal is one piece.
        if let [buf] = bufs {
            self.notice(buf);
        }
        match ready!(self.poll_replacement(cx)) {
            Some(done) => Poll::Ready(done),
            None => Pin::new(&mut self.io).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(Pin::new(&mut self.io).poll_flush(cx))?;
        self.settled = self.activity.settled();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
