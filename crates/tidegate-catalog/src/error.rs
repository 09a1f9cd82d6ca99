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
    /// There is no such table.
    #[error("there is no such table")]
    NoTable,
    /// The role owns the table, and an owner's rights cannot be taken for good.
    #[error("the role owns the table")]
    OwnsTable,
    /// No role that we can run as may grant this.
    #[error("nobody of the tenant may grant {what}; {owner} owns it")]
    NobodyMayGrant {
        /// What was to be granted.
        what: String,
        /// Who could.
        owner: String,
    },
    /// A privilege that was to be taken would stay.
    #[error("the role has {privilege} {from}")]
    GrantedElsewhere {
        /// The privilege.
        privilege: String,
        /// Whence it has it: `through` a group or PUBLIC, `from` a foreign grantor.
        from: String,
    },
}
