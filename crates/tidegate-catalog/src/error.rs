//! Errors of this crate.

/// A result with the error of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The reason why schemas or privileges cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A statement that reads the catalog or changes privileges failed. The source shows whether
    /// the caller, PostgreSQL or the service is at fault.
    #[error("the catalog cannot be read")]
    Sql(#[from] tidegate_sql::Error),
    /// A JSON document is not a valid description of a schema.
    #[error("the schema document cannot be read: {0}")]
    Malformed(String),
    /// A catalog query returned rows of an unexpected form. This is an internal error.
    #[error("the catalog query gave no document")]
    UnexpectedResult,
    /// The table does not exist.
    #[error("the table does not exist")]
    NoTable,
    /// The role owns the table, so it could restore all privileges that were revoked.
    #[error("the role owns the table")]
    OwnsTable,
    /// None of the roles that the service can run as may grant the privilege.
    #[error("no user of the tenant may grant {what}; {owner} owns it")]
    NoGrantor {
        /// The privilege that is to be granted, with its table or schema.
        what: String,
        /// The owner of the table or schema, who may grant the privilege.
        owner: String,
    },
    /// The role would keep a privilege that is to be revoked.
    #[error("the role has {privilege} {from}")]
    NotRevocable {
        /// The privilege that would be kept.
        privilege: String,
        /// The source of the privilege, as text. It is `through` with the name of a group or
        /// PUBLIC, or `from` with the name of another grantor.
        from: String,
    },
}
