//! The body of an answer: nothing, bytes that are there, or rows that come while the peer reads.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::compress::Compressed;
use crate::memory::Share;
use crate::metrics::{Observation, Subject};
use crate::serve::attention::Attention;
use crate::serve::stall::StallGuard;
use crate::serve::vitals::InFlight;

/// Why an answer stops before its end. The connection is then ended abnormally, so that nobody
/// takes the part for the whole; the cause has been logged where it was met.
#[derive(Debug, thiserror::Error)]
#[error("the answer was cut off by an error after its first byte")]
pub struct Interrupted;

/// A source of bytes that come while the peer reads them.
///
/// Dropping it ends whatever makes the bytes.
pub(crate) trait Source: Send {
    /// Whether a statement makes them, which is to end when the peer leaves.
    fn is_statement(&self) -> bool {
        false
    }

    /// The next bytes; `None` is the end.
    fn poll_next(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Interrupted>>>;
}

/// The body of an answer.
pub struct Body {
    content: Content,
    /// What the answer is about, for the log.
    pub(crate) subject: Subject,
    // The fields below do their work when they are dropped, which is when the answer has gone.
    observation: Option<Observation>,
    in_flight: Option<InFlight>,
    /// Whether the peer is still there, while a statement has no rows for it.
    attention: Option<Attention>,
}

/// What a body holds.
pub(crate) enum Content {
    /// Nothing (any more).
    Empty,
    /// Bytes in one piece.
    Whole(Bytes),
    /// Bytes in several pieces.
    Pieces {
        /// The pieces that are left.
        pieces: VecDeque<Bytes>,
        /// How many bytes they are.
        size: u64,
        /// What pays for them until they have gone.
        share: Option<Share>,
    },
    /// Bytes that come.
    Streamed(Pin<Box<dyn Source>>),
    /// Any of the above, compressed on the way.
    Compressed(Box<Compressed>),
    /// Any of the above, for as long as the peer takes it.
    Guarded(Arc<StallGuard>),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Content::Empty.into()
    }

    pub(crate) fn observe(&mut self, mut observation: Observation) {
        if self.exact_size() == Some(0) {
            observation.complete();
        }
        self.observation = Some(observation);
    }

    /// Holds the request in flight until the answer has gone.
    pub(crate) fn keep(&mut self, in_flight: InFlight) {
        // Of a connection with one answer at a time the connection itself tells that it stalls.
        if in_flight.is_multiplexed() && self.exact_size() != Some(0) {
            self.content = Content::Guarded(in_flight.guard(self.content.take()));
        } else {
            self.attention = self.content.is_statement().then(Attention::default);
            self.in_flight = Some(in_flight);
        }
    }

    pub(crate) fn content_mut(&mut self) -> &mut Content {
        &mut self.content
    }

    /// How many bytes are left, where that is known.
    pub(crate) fn exact_size(&self) -> Option<u64> {
        self.content.exact_size()
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
            observation: None,
            in_flight: None,
            attention: None,
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
    pub(crate) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Empty)
    }

    /// All bytes of an answer that is there, and what pays for them.
    pub(crate) fn into_bytes(self) -> (Bytes, Option<Share>) {
        match self {
            Self::Whole(bytes) => (bytes, None),
            Self::Pieces { pieces, share, .. } => {
                let pieces: Vec<_> = pieces.into();
                (pieces.concat().into(), share)
            }
            Self::Empty | Self::Streamed(_) | Self::Compressed(_) | Self::Guarded(_) => {
                (Bytes::new(), None)
            }
        }
    }

    pub(crate) fn exact_size(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Whole(bytes) => Some(bytes.len() as u64),
            Self::Pieces { size, .. } => Some(*size),
            Self::Streamed(_) | Self::Compressed(_) => None,
            Self::Guarded(guard) => guard.exact_size(),
        }
    }

    fn is_statement(&self) -> bool {
        match self {
            Self::Streamed(source) => source.is_statement(),
            Self::Compressed(compressed) => compressed.inner().is_statement(),
            Self::Empty | Self::Whole(_) | Self::Pieces { .. } | Self::Guarded(_) => false,
        }
    }

    pub(crate) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, Interrupted>>> {
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
            Self::Compressed(compressed) => ready!(compressed.poll_next(cx)),
            Self::Guarded(guard) => ready!(guard.poll_next(cx)),
        };
        // What makes the bytes is over with the last of them, and lets go of what it holds.
        if !matches!(next, Some(Ok(_))) {
            *self = Self::Empty;
        }
        Poll::Ready(next)
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Interrupted;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Interrupted>>> {
        let body = self.get_mut();
        let Poll::Ready(next) = body.content.poll_next(cx) else {
            if let (Some(attention), Some(in_flight)) = (&mut body.attention, &body.in_flight) {
                attention.wait(in_flight, cx);
            }
            return Poll::Pending;
        };
        // Nobody asks again when nothing is left.
        if !matches!(next, Some(Err(_))) && body.content.exact_size() == Some(0) {
            if let Some(observation) = &mut body.observation {
                observation.complete();
            }
            if let Some(in_flight) = &body.in_flight {
                in_flight.settle();
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
