//! Errors of this crate.

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why schemas or privileges cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The catalog query failed. The source says who is at fault.
    #[error("the catalog cannot be read")]
    Sql(#[from] tidegate_sql::Error),
    /// A document does not describe a schema.
    #[error("the schema document cannot be read: {0}")]
    Malformed(String),
    /// The catalog query returned no document: an internal error.
    #[error("the catalog query gave no document")]
    Document,
    /// The table does not exist.
    #[error("the table does not exist")]
    NoTable,
    /// The role owns the table; an owner can always restore its own privileges.
    #[error("the role owns the table")]
    OwnsTable,
    /// No role that the service can run as may grant this.
    #[error("no user of the tenant may grant {what}; {owner} owns it")]
    NobodyMayGrant {
        /// The privilege.
        what: String,
        /// A role that may grant it.
        owner: String,
    },
    /// A privilege to revoke would remain.
    #[error("the role has {privilege} {from}")]
    GrantedElsewhere {
        /// The privilege.
        privilege: String,
        /// Where it comes from: `through` a group or PUBLIC, `from` another grantor.
        from: String,
    },
}
