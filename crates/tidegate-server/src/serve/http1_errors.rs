//! Gives the error responses to malformed HTTP/1 requests a body and a request id.
//!
//! hyper's parser refuses a malformed head by itself and writes a status without a body, past the
//! layers of this service. hyper writes such a response while no request is in progress and all
//! earlier bytes have been flushed. No other response is written in this state. So hyper's response
//! can be recognised, and is replaced by an error response of this service with the same status.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::activity::ConnectionActivity;
use tidegate_http::app::App;
use tidegate_http::error::ApiError;
use tidegate_http::report::{Errors, Protocol};

/// A header field that every error response written by hyper itself has.
const EMPTY_BODY: &str = "content-length: 0";

/// A connection that replaces hyper's own error responses.
pub(crate) struct ErrorRewriter<I> {
    io: I,
    app: App,
    activity: Arc<ConnectionActivity>,
    /// The number of requests that had started at the most recent flush; `None` if a request was in
    /// progress at the flush.
    requests_if_idle: Option<u64>,
    replacement: Option<Replacement>,
}

/// The response that is written instead of the response that hyper wrote.
struct Replacement {
    bytes: Vec<u8>,
    written: usize,
    /// The length in bytes of hyper's own response. `poll_write` reports this length to hyper as
    /// written.
    replaced: usize,
}

impl<I> ErrorRewriter<I> {
    pub(crate) fn new(io: I, app: App, activity: Arc<ConnectionActivity>) -> Self {
        Self {
            io,
            app,
            activity,
            requests_if_idle: Some(0),
            replacement: None,
        }
    }

    /// Sets the replacement if the bytes that hyper is about to write are one of its own error
    /// responses.
    fn detect(&mut self, bytes: &[u8]) {
        let requests_if_idle = self.activity.requests_if_idle();
        if self.replacement.is_some()
            || requests_if_idle.is_none()
            || requests_if_idle != self.requests_if_idle
        {
            return;
        }
        let Some((status, fields)) = bare_error(bytes) else {
            return;
        };
        self.replacement = Some(Replacement {
            bytes: rewrite(&self.app, status, fields),
            written: 0,
            replaced: bytes.len(),
        });
    }
}

impl<I: AsyncWrite + Unpin> ErrorRewriter<I> {
    /// Writes the replacement, and then returns the number of bytes that hyper expects. Returns
    /// `None` if there is no replacement.
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

/// Splits an error response that hyper itself wrote into its status and its header fields; `None`
/// for any other bytes.
fn bare_error(bytes: &[u8]) -> Option<(StatusCode, &str)> {
    let head = std::str::from_utf8(bytes).ok()?.strip_suffix("\r\n\r\n")?;
    let (line, fields) = head.split_once("\r\n")?;
    let status = line.strip_prefix("HTTP/1.")?.get(2..5)?;
    let status = StatusCode::from_bytes(status.as_bytes()).ok()?;
    let bare = fields.split("\r\n").any(|field| field == EMPTY_BODY);
    (status.is_client_error() && bare).then_some((status, fields))
}

/// The response that replaces the response of hyper. It has the same header fields, except for the
/// length.
fn rewrite(app: &App, status: StatusCode, fields: &str) -> Vec<u8> {
    let message = match status {
        StatusCode::URI_TOO_LONG | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            "the head is too large, expected at most 64 KiB in 100 fields"
        }
        _ => "the head is not valid HTTP/1.1, expected a request line and fields as in RFC 9112",
    };
    response(app, (status, message), fields)
}

/// The response to plain HTTP on an HTTPS port.
pub(crate) fn plain(app: &App) -> Vec<u8> {
    let message = "this port speaks HTTPS; use https:// in the address";
    response(app, (StatusCode::BAD_REQUEST, message), "connection: close")
}

fn response(app: &App, (status, message): (StatusCode, &'static str), fields: &str) -> Vec<u8> {
    let failure = ApiError::new(status, "INPUT_VALIDATION_ERROR", message);
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
    let mut reply = format!("HTTP/1.1 {status}\r\nx-request-id: {id}\r\n");
    let kept = fields.split("\r\n").filter(|field| *field != EMPTY_BODY);
    reply.extend(kept.flat_map(|field| [field, "\r\n"]));
    let length = body.len();
    let rest = format!(
        "content-type: application/json; charset=utf-8\r\ncache-control: no-store\r\n\
         content-length: {length}\r\n\r\n"
    );
    reply.push_str(&rest);
    let mut reply = reply.into_bytes();
    reply.extend(body);
    reply
}

impl<I: AsyncRead + Unpin> AsyncRead for ErrorRewriter<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for ErrorRewriter<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.detect(buf);
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
        // Only a single buffer is examined, because hyper writes an error response of its own in
        // one piece.
        if let [buf] = bufs {
            self.detect(buf);
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
        self.requests_if_idle = self.activity.requests_if_idle();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
