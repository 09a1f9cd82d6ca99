//! The text of a response. Large parts of the text are generated while it is read.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc::{Receiver, channel};

use crate::large_text::{GeneratedText, LargeText};

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
#[error("the answer is larger than {0} bytes")]
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

    /// A text that consists of `bytes` and of parts that are inserted into it. Each part has an
    /// offset in `bytes`, in ascending order, and is generated when the text is read.
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
    /// [`TooLong`] for more than `most` bytes; the rest is not generated.
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
