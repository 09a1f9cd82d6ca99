//! The body of a response: empty, bytes, or rows that are produced while the client reads.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::memory::Reservation;
use crate::report::Subject;

/// The error of a response that was aborted after its first byte. The connection is closed
/// abnormally, so that the client does not take the sent part for a complete response. The cause
/// was logged where it occurred.
#[derive(Debug, thiserror::Error)]
#[error("the response was aborted by an error after its first byte")]
pub struct BodyAborted;

/// A source of bytes that are produced while the client reads them.
///
/// Once the source is dropped, no more bytes are produced.
pub trait BodySource: Send {
    /// Whether a running statement produces the bytes. If so, the statement is cancelled when the
    /// client disconnects.
    fn is_statement(&self) -> bool {
        false
    }

    /// The number of remaining bytes, if known.
    fn exact_size(&self) -> Option<u64> {
        None
    }

    /// Polls for the next bytes; `None` is the end.
    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BodyAborted>>>;
}

/// Observes a response until it has been sent. A response owns its watchers: if the response is
/// dropped before its end, the watchers are dropped without a call of `complete`.
pub trait Watcher: Send {
    /// Called when the connection polls for more bytes but none are ready.
    fn pending(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    /// Called when all bytes have been handed to the connection.
    fn complete(&mut self);
}

/// The body of a response.
pub struct Body {
    content: Content,
    /// The data about the response for the log and the metrics.
    pub subject: Subject,
    /// The watcher of the access log and the watcher of the connection.
    watchers: [Option<Box<dyn Watcher>>; 2],
}

/// The content of a response body.
pub enum Content {
    /// There are no bytes, or all bytes have been taken.
    Empty,
    /// Bytes in one piece.
    Whole(Bytes),
    /// Bytes in several pieces.
    Pieces {
        /// The remaining pieces.
        pieces: VecDeque<Bytes>,
        /// The number of remaining bytes in all pieces.
        size: u64,
        /// The reservation in the memory budget for the pieces, held until they have been sent.
        reservation: Option<Reservation>,
    },
    /// Bytes that are produced while the client reads.
    Streamed(Pin<Box<dyn BodySource>>),
}

impl Body {
    /// A body without bytes.
    pub fn empty() -> Self {
        Content::Empty.into()
    }

    /// Adds a watcher. The access log adds the first watcher, the connection the second. If the
    /// body has no bytes, `watch` calls the watcher's `complete`.
    ///
    /// # Panics
    ///
    /// Panics at the third watcher.
    pub fn watch(&mut self, mut watcher: Box<dyn Watcher>) {
        if self.exact_size() == Some(0) {
            watcher.complete();
        }
        let free = self.watchers.iter_mut().find(|place| place.is_none());
        *free.expect("a response has at most two watchers") = Some(watcher);
    }

    /// The content.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The content, for replacing it or taking it out.
    pub fn content_mut(&mut self) -> &mut Content {
        &mut self.content
    }

    /// The number of remaining bytes, if known.
    pub fn exact_size(&self) -> Option<u64> {
        self.content.exact_size()
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("exact_size", &self.exact_size())
            .finish_non_exhaustive()
    }
}

impl From<Content> for Body {
    fn from(content: Content) -> Self {
        Self {
            content,
            subject: Subject::default(),
            watchers: [None, None],
        }
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        if bytes.is_empty() {
            Self::empty()
        } else {
            Content::Whole(bytes).into()
        }
    }
}

impl Content {
    /// Takes the content and leaves [`Content::Empty`].
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Empty)
    }

    /// The bytes of a collected response, with their reservation in the memory budget. Empty for a
    /// streamed response.
    pub fn into_bytes(self) -> (Bytes, Option<Reservation>) {
        match self {
            Self::Whole(bytes) => (bytes, None),
            Self::Pieces {
                pieces,
                reservation,
                ..
            } => {
                let pieces: Vec<_> = pieces.into();
                (pieces.concat().into(), reservation)
            }
            Self::Empty | Self::Streamed(_) => (Bytes::new(), None),
        }
    }

    /// The number of remaining bytes, if known.
    pub fn exact_size(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Whole(bytes) => Some(bytes.len() as u64),
            Self::Pieces { size, .. } => Some(*size),
            Self::Streamed(source) => source.exact_size(),
        }
    }

    /// Whether a running statement produces the bytes.
    pub fn is_statement(&self) -> bool {
        matches!(self, Self::Streamed(source) if source.is_statement())
    }

    /// Polls for the next bytes; `None` is the end.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BodyAborted>>> {
        let next = match self {
            Self::Empty => None,
            Self::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                *self = Self::Empty;
                Some(Ok(bytes))
            }
            Self::Pieces { pieces, size, .. } => pieces.pop_front().map(|piece| {
                *size -= piece.len() as u64;
                Ok(piece)
            }),
            Self::Streamed(source) => ready!(source.as_mut().poll_next(cx)),
        };
        // The content has ended or failed. It is dropped here to release what it holds, such as a
        // reservation.
        if !matches!(next, Some(Ok(_))) {
            *self = Self::Empty;
        }
        Poll::Ready(next)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content")
            .field("exact_size", &self.exact_size())
            .finish_non_exhaustive()
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BodyAborted;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyAborted>>> {
        let body = self.get_mut();
        let Poll::Ready(next) = body.content.poll_next(cx) else {
            for watcher in body.watchers.iter_mut().flatten() {
                watcher.pending(cx);
            }
            return Poll::Pending;
        };
        // hyper does not poll again when no bytes remain, so the watchers are notified with the
        // last bytes.
        if !matches!(next, Some(Err(_))) && body.content.exact_size() == Some(0) {
            for watcher in body.watchers.iter_mut().flatten() {
                watcher.complete();
            }
        }
        Poll::Ready(next.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.exact_size() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.exact_size()
            .map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
