//! Texts that are generated in chunks because they can be large.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::Sender;

use crate::chunked::ChunkedWriter;
use crate::definition::Types;
use crate::introspection::{self, IntrospectionNode};
use crate::sdl;

/// The maximum size in bytes of a text that is generated as a whole and cached.
const WHOLE: usize = 1 << 20;
/// The size in bytes of a chunk of a larger text. It is large enough that there are few task
/// switches, and small enough to be held in memory for a slow reader.
const CHUNK: usize = 64 << 10;
/// The additional capacity in bytes of the buffer of a chunk. The last step that writes to a chunk
/// may exceed [`CHUNK`].
const OVER: usize = 1 << 10;

/// A text that can be large.
#[derive(Clone, Debug)]
pub(crate) enum LargeText {
    /// The value of `__schema` or `__type`.
    Introspection(Arc<IntrospectionNode>, Arc<Types>),
    /// The schema in the schema definition language (SDL).
    Sdl(Arc<Types>),
}

/// The result of generating a text.
#[derive(Clone, Debug)]
pub(crate) enum GeneratedText {
    /// The whole text.
    Whole(Bytes),
    /// The text is large, and must be generated while it is read.
    Large(LargeText),
}

impl LargeText {
    /// Generates the text if it is smaller than [`WHOLE`]. A larger text is returned as
    /// [`GeneratedText::Large`], to be generated while it is read.
    pub(crate) fn write(self) -> GeneratedText {
        let mut out = String::with_capacity(1 << 14);
        if self.writer().write_chunk(&mut out, WHOLE) {
            return GeneratedText::Large(self);
        }
        GeneratedText::Whole(out.into())
    }

    /// Sends the text in chunks, and an empty chunk at the end. Stops when the receiver is dropped.
    pub(crate) async fn send(self, to: Sender<Bytes>) {
        let mut writer = self.writer();
        let mut more = true;
        while more {
            let mut out = String::with_capacity(CHUNK + OVER);
            more = writer.write_chunk(&mut out, CHUNK);
            if to.send(out.into()).await.is_err() {
                return;
            }
        }
        // Sending fails only if the receiver was dropped. The end need not be reported then.
        let _ = to.send(Bytes::new()).await;
    }

    fn writer(&self) -> Box<dyn ChunkedWriter + Send + '_> {
        match self {
            Self::Introspection(node, types) => {
                Box::new(introspection::IntrospectionWriter::new(node, types))
            }
            Self::Sdl(types) => Box::new(sdl::Printer::new(types)),
        }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_catalog::Schema;
    use tokio::sync::mpsc::channel;

    use super::*;

    /// A text that takes too long to generate in a test.
    fn endless() -> LargeText {
        let schema = Schema::parse(r#"{"name":"s","relations":[]}"#).unwrap();
        let types = Types::of(Arc::new(schema), false);
        LargeText::Introspection(Arc::new(IntrospectionNode::nested(100)), Arc::new(types))
    }

    #[tokio::test]
    async fn who_reads_no_more_ends_the_writing() {
        assert!(matches!(endless().write(), GeneratedText::Large(_)));
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
        // One chunk is in the channel and the next one waits for space, so the writer must yield.
        let polled = std::future::poll_fn(|cx| std::task::Poll::Ready(sending.as_mut().poll(cx)));
        assert!(polled.await.is_pending());
    }
}
