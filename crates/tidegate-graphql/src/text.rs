//! The text of an answer, whose large parts are written while they are read.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc::{Receiver, channel};

use crate::unwritten::{Unwritten, Written};

/// The text of an answer: bytes, and between them parts so large that they are written while they
/// are read.
#[derive(Clone, Debug, Default)]
pub struct Text {
    /// All of it, most of the time.
    head: Bytes,
    rest: VecDeque<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Bytes(Bytes),
    Unwritten(Unwritten),
}

/// What writes the text has died.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the text ends before its end")]
pub struct Broken;

/// The text has more bytes than the reader takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is larger than {0} bytes")]
pub struct TooLong(pub u64);

impl Text {
    /// All bytes, of a text whose bytes are all there; else the text itself.
    ///
    /// # Errors
    ///
    /// The text, when parts of it are not written yet.
    pub fn into_bytes(self) -> Result<Bytes, Self> {
        if self.rest.is_empty() {
            Ok(self.head)
        } else {
            Err(self)
        }
    }

    /// How many bytes are there already.
    pub fn held(&self) -> u64 {
        let rest = self.rest.iter().map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.len(),
            Piece::Unwritten(_) => 0,
        });
        rest.fold(self.head.len(), usize::saturating_add) as u64
    }

    /// Appends another one.
    pub fn append(&mut self, other: impl Into<Self>) {
        let other = other.into();
        if self.held() == 0 && self.rest.is_empty() {
            *self = other;
            return;
        }
        self.rest.push_back(Piece::Bytes(other.head));
        self.rest.extend(other.rest);
    }

    /// A text with parts at places of its bytes, which are in order.
    pub(crate) fn with(mut bytes: Bytes, parts: impl Iterator<Item = (usize, Unwritten)>) -> Self {
        let mut text = Self::default();
        let mut begin = 0;
        for (at, part) in parts {
            text.append(bytes.split_to(at - begin));
            text.rest.push_back(Piece::Unwritten(part));
            begin = at;
        }
        text.append(bytes);
        text
    }

    /// Reads it from its beginning.
    pub fn read(mut self) -> Reader {
        self.rest.push_front(Piece::Bytes(self.head));
        Reader {
            pieces: self.rest,
            chunks: None,
        }
    }
}

impl From<Bytes> for Text {
    fn from(bytes: Bytes) -> Self {
        Self {
            head: bytes,
            rest: VecDeque::new(),
        }
    }
}

impl From<Written> for Text {
    fn from(written: Written) -> Self {
        match written {
            Written::Whole(bytes) => bytes.into(),
            Written::Large(part) => Self {
                head: Bytes::new(),
                rest: VecDeque::from([Piece::Unwritten(part)]),
            },
        }
    }
}

impl From<BytesMut> for Text {
    fn from(bytes: BytesMut) -> Self {
        bytes.freeze().into()
    }
}

/// Reads a text. What has not been written yet is written by a task of the runtime, which is
/// never more than two chunks ahead and ends with the reader.
#[derive(Debug)]
pub struct Reader {
    pieces: VecDeque<Piece>,
    chunks: Option<Receiver<Bytes>>,
}

impl Reader {
    /// The next bytes, never none; `None` is the end.
    ///
    /// # Errors
    ///
    /// [`Broken`] when what writes the text has died.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        loop {
            if let Some(chunks) = &mut self.chunks {
                match ready!(chunks.poll_recv(cx)) {
                    None => return Poll::Ready(Some(Err(Broken))),
                    Some(chunk) if chunk.is_empty() => self.chunks = None,
                    Some(chunk) => return Poll::Ready(Some(Ok(chunk))),
                }
            }
            match self.pieces.pop_front() {
                None => return Poll::Ready(None),
                Some(Piece::Bytes(bytes)) if bytes.is_empty() => {}
                Some(Piece::Bytes(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Some(Piece::Unwritten(part)) => {
                    let (sender, receiver) = channel(1);
                    tokio::spawn(part.send(sender));
                    self.chunks = Some(receiver);
                }
            }
        }
    }

    /// As [`Reader::poll_next`].
    ///
    /// # Errors
    ///
    /// As [`Reader::poll_next`].
    pub async fn next(&mut self) -> Option<Result<Bytes, Broken>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// All bytes that are left, for a reader that cannot take them one after the other.
    ///
    /// # Errors
    ///
    /// [`TooLong`] for more than `most` bytes; the rest is not written then.
    pub async fn collect(mut self, most: u64) -> Result<Result<Bytes, Broken>, TooLong> {
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
