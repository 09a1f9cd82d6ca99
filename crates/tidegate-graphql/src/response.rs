//! Builds the JSON text of responses (GraphQL, section 7). Large parts of a text are generated
//! while it is read.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::{BufMut, Bytes, BytesMut};
use serde::Serialize;
use tidegate_plan::PlanOutcome;
use tokio::sync::mpsc::{Receiver, channel};

use crate::error::{Code, Error, ErrorSummary, FieldErrors, ResponsePath};
use crate::large_text::{GeneratedText, LargeText};

/// A complete GraphQL response.
#[derive(Clone, Debug)]
pub struct GraphqlResponse {
    /// The JSON text of the response.
    pub body: ResponseText,
    /// Whether the operation was executed. If so, the response has the member `data`.
    pub executed: bool,
    /// A summary of the response's errors, for the log and the metrics.
    pub errors: ErrorSummary,
}

impl GraphqlResponse {
    /// The response to a request that was not executed.
    pub fn refused(errors: &[Error]) -> Self {
        Self::without_data(b"{", errors, false)
    }

    /// The response to an operation that failed as a whole. Its `data` is null.
    pub(crate) fn failed(errors: &[Error]) -> Self {
        Self::without_data(b"{\"data\":null,", errors, true)
    }

    fn without_data(begin: &[u8], errors: &[Error], executed: bool) -> Self {
        let mut body = BytesMut::with_capacity(256);
        body.put_slice(begin);
        write_errors(errors, &mut body);
        body.put_slice(b"}");
        Self {
            body: body.into(),
            executed,
            errors: ErrorSummary::of(errors),
        }
    }

    /// Generates the whole text of the response in memory, for transports that cannot send chunks.
    /// A text that is already in memory has no limit. If parts must be generated and the text has
    /// more than `most` bytes, returns a response with the error `TOO_COMPLEX`. If generating
    /// fails, returns a response with an internal error.
    pub async fn collect(self, most: u64) -> Self {
        let body = match self.body.into_bytes() {
            Ok(bytes) => Ok(Ok(bytes)),
            Err(text) => text.read().collect(most).await,
        };
        match body {
            Ok(Ok(bytes)) => Self {
                body: bytes.into(),
                ..self
            },
            Ok(Err(_)) => Self::failed(&[Error::new(Code::Internal, "internal error")]),
            Err(error) => Self::failed(&[Error::new(Code::TooComplex, error.to_string())]),
        }
    }
}

/// The start of a response that has data.
pub(crate) const BEGIN: &[u8] = b"{\"data\":";

/// Completes a response whose `body` ends with the data. Adds the errors of the root fields that
/// failed (`failed`). From `outcome` it adds the errors of single values and the paths of truncated
/// lists, and inserts the introspection texts at their insertion points.
pub(crate) fn end(
    mut body: BytesMut,
    outcome: &PlanOutcome,
    failed: &FieldErrors,
    introspections: Vec<LargeText>,
) -> GraphqlResponse {
    let mut errors: Vec<_> = failed.values().cloned().collect();
    errors.extend(outcome.field_errors.iter().map(|field_error| Error {
        path: field_error.path.clone(),
        ..Error::new(Code::BadUserInput, field_error.problem)
    }));
    if !errors.is_empty() {
        body.put_slice(b",");
        write_errors(&errors, &mut body);
    }
    if !outcome.truncated.is_empty() {
        let paths: Vec<_> = outcome
            .truncated
            .iter()
            .map(|path| ResponsePath(path))
            .collect();
        body.put_slice(b",\"extensions\":{\"truncated\":");
        put(&paths, &mut body);
        body.put_slice(b"}");
    }
    body.put_slice(b"}");
    let insertions = outcome.insertion_points.iter().copied().zip(introspections);
    GraphqlResponse {
        body: ResponseText::with(body.freeze(), insertions),
        executed: true,
        errors: ErrorSummary::of(&errors),
    }
}

fn write_errors(errors: &[Error], body: &mut BytesMut) {
    body.put_slice(b"\"errors\":");
    put(&errors, body);
}

/// Appends a value as JSON.
fn put(value: &impl Serialize, body: &mut BytesMut) {
    // Neither the serialisation of strings and numbers nor writing to memory can fail.
    let _ = serde_json::to_writer(body.writer(), value);
}

/// The text of a response. It consists of bytes in memory and, between them, large parts that are
/// generated while the text is read.
#[derive(Clone, Debug, Default)]
pub struct ResponseText {
    /// The first bytes, which are usually the whole text.
    head: Bytes,
    rest: VecDeque<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Bytes(Bytes),
    LargeText(LargeText),
}

/// The task that generates a part of the text panicked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text ends before its end")]
pub struct WriterFailed;

/// The text has more bytes than this limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the response is larger than {0} bytes")]
pub struct TooLong(pub u64);

impl ResponseText {
    /// The bytes of the text, if it is completely in memory.
    ///
    /// # Errors
    ///
    /// The unchanged text, if it has parts that must be generated.
    pub fn into_bytes(self) -> Result<Bytes, Self> {
        if self.rest.is_empty() {
            Ok(self.head)
        } else {
            Err(self)
        }
    }

    /// The number of bytes of the text that are in memory.
    pub fn held(&self) -> u64 {
        let rest = self.rest.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::LargeText(_) => 0,
        });
        rest.fold(self.head.len(), usize::saturating_add) as u64
    }

    /// Appends another text.
    pub fn append(&mut self, other: impl Into<Self>) {
        let other = other.into();
        if self.held() == 0 && self.rest.is_empty() {
            *self = other;
            return;
        }
        self.rest.push_back(Piece::Bytes(other.head));
        self.rest.extend(other.rest);
    }

    /// A text that consists of `bytes` and of parts that are inserted into it. Each part comes with
    /// its offset in `bytes`, and the offsets are in ascending order. A part is generated when the
    /// text is read.
    pub(crate) fn with(mut bytes: Bytes, parts: impl Iterator<Item = (usize, LargeText)>) -> Self {
        let mut text = Self::default();
        let mut begin = 0;
        for (at, part) in parts {
            text.append(bytes.split_to(at - begin));
            text.rest.push_back(Piece::LargeText(part));
            begin = at;
        }
        text.append(bytes);
        text
    }

    /// A reader at the start of the text.
    pub fn read(mut self) -> ResponseReader {
        self.rest.push_front(Piece::Bytes(self.head));
        ResponseReader {
            pieces: self.rest,
            chunks: None,
        }
    }
}

impl From<Bytes> for ResponseText {
    fn from(bytes: Bytes) -> Self {
        Self {
            head: bytes,
            rest: VecDeque::new(),
        }
    }
}

impl From<GeneratedText> for ResponseText {
    fn from(written: GeneratedText) -> Self {
        match written {
            GeneratedText::Whole(bytes) => bytes.into(),
            GeneratedText::Large(part) => Self {
                head: Bytes::new(),
                rest: VecDeque::from([Piece::LargeText(part)]),
            },
        }
    }
}

impl From<BytesMut> for ResponseText {
    fn from(bytes: BytesMut) -> Self {
        bytes.freeze().into()
    }
}

/// Reads a text. A tokio task generates each large part, at most two chunks ahead of the reader.
/// The task ends when the reader is dropped.
#[derive(Debug)]
pub struct ResponseReader {
    pieces: VecDeque<Piece>,
    chunks: Option<Receiver<Bytes>>,
}

impl ResponseReader {
    /// The next bytes, never empty; `None` at the end.
    ///
    /// # Errors
    ///
    /// [`WriterFailed`] if the task panicked.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, WriterFailed>>> {
        loop {
            if let Some(chunks) = &mut self.chunks {
                match ready!(chunks.poll_recv(cx)) {
                    None => return Poll::Ready(Some(Err(WriterFailed))),
                    Some(chunk) if chunk.is_empty() => self.chunks = None,
                    Some(chunk) => return Poll::Ready(Some(Ok(chunk))),
                }
            }
            match self.pieces.pop_front() {
                None => return Poll::Ready(None),
                Some(Piece::Bytes(bytes)) if bytes.is_empty() => {}
                Some(Piece::Bytes(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Some(Piece::LargeText(part)) => {
                    let (sender, receiver) = channel(1);
                    tokio::spawn(part.send(sender));
                    self.chunks = Some(receiver);
                }
            }
        }
    }

    /// The next bytes, like [`ResponseReader::poll_next`].
    ///
    /// # Errors
    ///
    /// As [`ResponseReader::poll_next`].
    pub async fn next(&mut self) -> Option<Result<Bytes, WriterFailed>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Reads all remaining bytes, for transports that cannot send chunks. The inner result is an
    /// error if generating the text failed.
    ///
    /// # Errors
    ///
    /// [`TooLong`] if there are more than `most` bytes. In this case the rest is not generated.
    pub async fn collect(mut self, most: u64) -> Result<Result<Bytes, WriterFailed>, TooLong> {
        let mut all = BytesMut::new();
        while let Some(bytes) = self.next().await {
            match bytes {
                Ok(bytes) => all.extend_from_slice(&bytes),
                Err(broken) => return Ok(Err(broken)),
            }
            if all.len() as u64 > most {
                return Err(TooLong(most));
            }
        }
        Ok(Ok(all.freeze()))
    }
}
