//! The port to the PostgreSQL roles of users and of groups. The statements of members run as the
//! role of their group.

use std::error::Error as StdError;

use crate::User;
use async_trait::async_trait;

/// The result of a [`RoleAdmin`]'s methods.
pub type RoleResult<T> = Result<T, RoleError>;

/// A lock on a tenant's groups. While a node holds the lock, no other node changes the members of
/// these groups.
pub type GroupLock = Box<dyn Send>;

/// The port that creates, changes and drops the roles of users.
#[async_trait]
pub trait RoleAdmin: Send + Sync {
    /// Creates the LOGIN role of a user as a member of the user's groups.
    async fn create_role(&self, user: &User) -> RoleResult<()>;

    /// Waits for the cluster-wide lock on the tenant's groups. Dropping the returned value releases
    /// the lock.
    async fn lock_groups(&self, database: &str) -> RoleResult<GroupLock>;

    /// Makes the user's role a member of the roles of `user.user_groups`, and removes it from the
    /// tenant's other groups. Missing roles of `user.user_groups` are created.
    async fn set_groups(&self, user: &User) -> RoleResult<()>;

    /// Makes sure that the role of a group exists and can log in, so that requests of its members
    /// can run as this role. The calling function must hold the lock of the tenant's groups.
    async fn provide_group(&self, database: &str, group: &str) -> RoleResult<()>;

    /// Limits the resources of the user's role if the user is the default user. Otherwise removes
    /// the limits from the role.
    async fn limit_role(&self, user: &User) -> RoleResult<()>;

    /// Stores in the tenant's database the values that `tidegate.user_id()` and `tidegate.claims()`
    /// return for the user's role.
    async fn set_claims(&self, user: &User) -> RoleResult<()>;

    /// Fails if [`Self::drop_role`] would refuse the role, with the same error. Changes nothing.
    /// Does not check for [`RoleError::Taken`] and [`RoleError::StillUsed`].
    async fn check_drop_role(&self, user: &User, owner: &str, reassign: bool) -> RoleResult<()>;

    /// Ends the role's connections and drops the role. With `reassign`, the role `owner` of the
    /// tenant's owner becomes the owner of the role's objects. It is no error if the role does not
    /// exist. After an error the role is unchanged.
    ///
    /// Errors: [`RoleError::OwnsObjects`] if the role owns objects and `reassign` is not set;
    /// [`RoleError::CarriesRights`] if reassigned code would let others act with the owner's
    /// rights; [`RoleError::UsedElsewhere`] for rights or objects in other databases.
    async fn drop_role(&self, user: &User, owner: &str, reassign: bool) -> RoleResult<()>;
}

/// Why a role could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// A role of this name exists and was not created by Tidegate.
    #[error("the role {0} exists already and was not created by Tidegate; choose another name")]
    Taken(String),
    /// The role owns objects of the database.
    #[error("the role owns {count} objects of the database, such as {example}")]
    OwnsObjects {
        /// How many objects the role owns.
        count: i64,
        /// One of the objects, as PostgreSQL describes it.
        example: String,
    },
    /// The role owns these routines or views. If the tenant's owner became their owner, their
    /// callers would act with the owner's rights.
    #[error("the role owns what would run with the new owner's rights: {}", .0.join(", "))]
    CarriesRights(Vec<String>),
    /// The role has rights or objects in these other databases, where they must be removed first.
    #[error("the role has rights or objects in other databases: {}", .0.join(", "))]
    UsedElsewhere(Vec<String>),
    /// The role has rights that the administrator cannot revoke. The text is PostgreSQL's error,
    /// which names the objects.
    #[error("the role is still used: {0}")]
    StillUsed(String),
    /// PostgreSQL cannot be reached now; the same call may succeed later.
    #[error("PostgreSQL cannot be reached")]
    Unavailable(#[source] Box<dyn StdError + Send + Sync>),
    /// PostgreSQL refused the statement: the administrator lacks a right, or Tidegate has a bug.
    #[error("the role could not be changed")]
    Failed(#[source] Box<dyn StdError + Send + Sync>),
}
