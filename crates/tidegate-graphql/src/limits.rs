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

/// What the requests of one role may ask for, in place of what those of all others may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleLimits {
    /// The role, as PostgreSQL spells it.
    pub role: Box<str>,
    /// As [`Limits::depth`].
    pub depth: usize,
    /// As [`Limits::fields`].
    pub fields: usize,
    /// As [`Limits::roots`].
    pub roots: usize,
}

impl RoleLimits {
    /// With all that is not the role's own.
    pub(crate) const fn with(&self, others: Limits) -> Limits {
        Limits {
            depth: self.depth,
            fields: self.fields,
            roots: self.roots,
            ..others
        }
    }
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
