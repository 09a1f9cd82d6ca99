//! The records of issuers, and the port to their storage.

use tidegate_identity::{StoreFuture, Timestamp};

use crate::IssuerSettings;

/// An issuer whose tokens a tenant accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerRecord {
    /// The tenant's database.
    pub database: String,
    /// The name of the issuer, which is unique within the tenant.
    pub name: String,
    /// How its tokens are verified and read.
    pub settings: IssuerSettings,
    /// When the record was created.
    pub created_at: Timestamp,
}

/// What a name in a token stands for in a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedRole {
    /// The user with this name.
    User(String),
    /// A group.
    Group {
        /// The name of the group.
        group: String,
        /// Whether its role can log in already.
        can_log_in: bool,
    },
}

/// The port to the storage of issuers, which all nodes share.
///
/// Every change notifies the nodes, which then call [`IssuerRegistry::reload`].
///
/// [`IssuerRegistry::reload`]: crate::IssuerRegistry::reload
pub trait ExternalIssuerStore: Send + Sync {
    /// A text that differs after every change of any record.
    fn issuers_version(&self) -> StoreFuture<'_, String>;

    /// The issuers of all tenants.
    fn all_issuers(&self) -> StoreFuture<'_, Vec<IssuerRecord>>;

    /// The issuers of a tenant, sorted by name.
    fn issuers<'a>(&'a self, database: &'a str) -> StoreFuture<'a, Vec<IssuerRecord>>;

    /// Adds an issuer; `false` if the tenant has one of this name.
    fn insert_issuer<'a>(&'a self, record: &'a IssuerRecord) -> StoreFuture<'a, bool>;

    /// Replaces the settings of an issuer if they are still those of `read`; `false` if they are
    /// not, or if there is no such issuer.
    fn update_issuer<'a>(
        &'a self,
        read: &'a IssuerRecord,
        record: &'a IssuerRecord,
    ) -> StoreFuture<'a, bool>;

    /// Deletes an issuer; `false` if there is none.
    fn delete_issuer<'a>(&'a self, database: &'a str, name: &'a str) -> StoreFuture<'a, bool>;

    /// The first of these names that is a group or a user of the tenant. The owner and the names of
    /// other roles of PostgreSQL are neither. A name of both is the group.
    fn named_role<'a>(
        &'a self,
        database: &'a str,
        names: &'a [String],
    ) -> StoreFuture<'a, Option<NamedRole>>;
}

/// The port that lets the role of a group log in, for callers that have no role of their own.
pub trait GroupLogins: Send + Sync {
    /// Makes the role of a group able to log in. Creates the group if there is none.
    fn enable<'a>(&'a self, database: &'a str, group: &'a str) -> StoreFuture<'a, ()>;
}
