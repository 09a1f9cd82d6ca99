//! The records of issuers, and the port to their storage.

use async_trait::async_trait;
use tidegate_identity::{StoreResult, Timestamp};

use crate::IssuerSettings;

/// An issuer whose tokens a tenant accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuerRecord {
    /// The tenant's database.
    pub database: String,
    /// The name of the issuer, which is unique within the tenant.
    pub name: String,
    /// The settings for verifying and reading the issuer's tokens.
    pub settings: IssuerSettings,
    /// When the record was created.
    pub created_at: Timestamp,
}

/// The user or group of a tenant that a name in a token refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedRole {
    /// The user with this name.
    User(String),
    /// The group with this name.
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
#[async_trait]
pub trait ExternalIssuerStore: Send + Sync {
    /// The version of the records: a text that changes whenever a record is changed.
    async fn issuers_version(&self) -> StoreResult<String>;

    /// The issuers of all tenants, the oldest first, except issuers whose settings this release
    /// cannot read.
    async fn all_issuers(&self) -> StoreResult<Vec<IssuerRecord>>;

    /// The issuers of a tenant, sorted by name. Issuers whose settings this release of the program
    /// cannot read are left out.
    async fn issuers(&self, database: &str) -> StoreResult<Vec<IssuerRecord>>;

    /// The names of all issuers of a tenant, sorted. The list includes issuers that a later release
    /// has stored and whose settings this release cannot read.
    async fn issuer_names(&self, database: &str) -> StoreResult<Vec<String>>;

    /// Adds an issuer; `false` if the tenant has an issuer of this name.
    async fn insert_issuer(&self, record: &IssuerRecord) -> StoreResult<bool>;

    /// Replaces the settings of an issuer if they still equal the settings in `read`. Returns
    /// `false` if they differ or if there is no such issuer.
    async fn update_issuer(&self, read: &IssuerRecord, record: &IssuerRecord) -> StoreResult<bool>;

    /// Deletes an issuer; `false` if there is none.
    async fn delete_issuer(&self, database: &str, name: &str) -> StoreResult<bool>;

    /// The user or group that the first matching name in `names` refers to; `None` if no name
    /// matches. Names of the owner and of other PostgreSQL roles do not match. If a user and a
    /// group have the same name, the group is returned.
    async fn named_role(&self, database: &str, names: &[String]) -> StoreResult<Option<NamedRole>>;
}

/// The port that enables the roles of groups to log in. Callers without a role of their own use the
/// role of a group.
#[async_trait]
pub trait GroupLogins: Send + Sync {
    /// Enables the role of a group to log in. Creates the group if it does not exist.
    async fn enable(&self, database: &str, group: &str) -> StoreResult<()>;
}
