//! The port of writers that generate a text in steps.

/// Generates a text in steps.
pub(crate) trait ChunkedWriter {
    /// Appends text until `out` has at least `bytes` bytes; returns `true` if more text follows.
    fn write_chunk(&mut self, out: &mut String, bytes: usize) -> bool;
}
