//! The port of writers that generate a text in steps.

/// Generates a text in steps.
pub(crate) trait ChunkedWriter {
    /// Appends text until `out` has at least this many bytes; `true` while there is more.
    fn write_chunk(&mut self, out: &mut String, bytes: usize) -> bool;
}
