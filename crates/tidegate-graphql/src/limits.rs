//! Limits on requests.

/// Limits on requests, checked before anything runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The deepest nesting of selection sets, without introspection.
    pub depth: usize,
    /// The most fields of an operation, with its fragments expanded.
    pub fields: usize,
    /// The most root fields of an operation.
    pub roots: usize,
    /// The most bytes of a document.
    pub document: usize,
    /// Rows and bytes of a response.
    pub rows: tidegate_plan::Limits,
}

/// Limits for the requests of one role, which replace the general ones.
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
    /// The general limits with those of the role in their place.
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
