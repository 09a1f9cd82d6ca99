//! Why a schema cannot be described.

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a schema cannot be described.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The catalog query failed; the cause says whose fault it is.
    #[error("the catalog cannot be read")]
    Sql(#[from] tidegate_sql::Error),
    /// A document is not one that describes a schema.
    #[error("the schema document cannot be read: {0}")]
    Malformed(String),
    /// The catalog query gave no document, which is our fault.
    #[error("the catalog query gave no document")]
    Document,
}
