//! Limits on requests.

/// Limits on requests. All except `rows` are checked before any statement runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The deepest nesting of selection sets. Introspection does not count.
    pub depth: usize,
    /// The largest number of fields in an operation, with its fragments expanded.
    pub fields: usize,
    /// The largest number of root fields in an operation.
    pub roots: usize,
    /// The largest size of a document, in bytes.
    pub document: usize,
    /// The limits on the rows and bytes of a response.
    pub rows: tidegate_plan::Limits,
}

/// Limits on the requests of one role, which replace the general limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleLimits {
    /// The name of the role in PostgreSQL.
    pub role: Box<str>,
    /// The limit that replaces [`Limits::depth`].
    pub depth: usize,
    /// The limit that replaces [`Limits::fields`].
    pub fields: usize,
    /// The limit that replaces [`Limits::roots`].
    pub roots: usize,
}

impl RoleLimits {
    /// The general limits `others`, but with the role's own `depth`, `fields` and `roots`.
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
