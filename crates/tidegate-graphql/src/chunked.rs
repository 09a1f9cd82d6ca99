//! The interface of writers that generate a text in steps.

/// Generates a text in steps.
pub(crate) trait ChunkedWriter {
    /// Appends text until `out` has at least `bytes` bytes or the text ends. Returns false if the
    /// text has ended; after `true`, more text may follow.
    fn write_chunk(&mut self, out: &mut String, bytes: usize) -> bool;
}
