//! What one request may ask for.

/// Limits on requests, before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Selection sets in each other; introspection does not count.
    pub depth: usize,
    /// Fields of an operation, with its fragments put in.
    pub fields: usize,
    /// Root fields of an operation.
    pub roots: usize,
    /// Bytes of a document.
    pub document: usize,
    /// Rows and bytes of a response.
    pub rows: tidegate_plan::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            depth: 15,
            fields: 1_000,
            roots: 20,
            document: 1 << 20,
            rows: tidegate_plan::Limits::default(),
        }
    }
}
