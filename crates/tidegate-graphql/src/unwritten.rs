//! Texts that can be so large that they are written while they are read.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::Sender;

use crate::definition::Types;
use crate::introspection::{self, Node};
use crate::sdl;

/// Up to this a text is written at once, and kept.
const WHOLE: usize = 1 << 20;
/// What is written at once of a larger one: enough that few wait for each other, and what a slow
/// reader costs.
const CHUNK: usize = 64 << 10;
/// What the last part of a chunk may be longer.
const OVER: usize = 1 << 10;

/// Writes a text piece by piece.
pub(crate) trait Fill {
    /// Appends text until `out` has so many bytes, or a few more; `true` while more is to come.
    fn fill(&mut self, out: &mut String, bytes: usize) -> bool;
}

/// A text that is not written yet.
#[derive(Clone, Debug)]
pub(crate) enum Unwritten {
    /// The value of `__schema` or `__type`.
    Introspection(Arc<Node>, Arc<Types>),
    /// The schema in the schema definition language.
    Sdl(Arc<Types>),
}

/// A text.
#[derive(Clone, Debug)]
pub(crate) enum Written {
    /// All of it.
    Whole(Bytes),
    /// One that is to be written while it is read.
    Large(Unwritten),
}

impl Unwritten {
    /// Writes it, unless it is large.
    pub(crate) fn write(self) -> Written {
        let mut out = String::with_capacity(1 << 14);
        if self.writer().fill(&mut out, WHOLE) {
            return Written::Large(self);
        }
        Written::Whole(out.into())
    }

    /// Writes it in chunks and, last, an empty one; ends when nobody wants more.
    pub(crate) async fn send(self, to: Sender<Bytes>) {
        let mut writer = self.writer();
        let mut more = true;
        while more {
            let mut out = String::with_capacity(CHUNK + OVER);
            more = writer.fill(&mut out, CHUNK);
            if to.send(out.into()).await.is_err() {
                return;
            }
        }
        // Whoever went away needs no end.
        let _ = to.send(Bytes::new()).await;
    }

    fn writer(&self) -> Box<dyn Fill + Send + '_> {
        match self {
            Self::Introspection(node, types) => Box::new(introspection::Writer::new(node, types)),
            Self::Sdl(types) => Box::new(sdl::Printer::new(types)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_catalog::Schema;
    use tokio::sync::mpsc::channel;

    use super::*;

    /// A text without an end in our lifetime.
    fn endless() -> Unwritten {
        let schema = Schema::parse(r#"{"name":"s","relations":[]}"#).unwrap();
        let types = Types::of(Arc::new(schema), false);
        Unwritten::Introspection(Arc::new(Node::nested(100)), Arc::new(types))
    }

    #[tokio::test]
    async fn who_reads_no_more_ends_the_writing() {
        assert!(matches!(endless().write(), Written::Large(_)));
        let (sender, mut receiver) = channel(1);
        let writing = tokio::spawn(endless().send(sender));
        for _ in 0..3 {
            let chunk = receiver.recv().await.unwrap();
            assert!((CHUNK..CHUNK + OVER).contains(&chunk.len()));
        }
        drop(receiver);
        writing.await.unwrap();
    }

    #[tokio::test]
    async fn what_is_written_waits_for_its_reader() {
        let mut sending = Box::pin({
            let (sender, receiver) = channel(1);
            async move {
                endless().send(sender).await;
                drop(receiver);
            }
        });
        // One chunk waits in the channel, the next one before it; then the writer gives way.
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(sending.as_mut().poll(cx)));
        assert!(polled.await.is_pending());
    }
}
