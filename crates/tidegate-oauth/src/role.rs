//! The port to PostgreSQL's roles: a user's record is worth nothing without the role that it runs
//! as.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;

use crate::User;

/// What a [`RoleAdmin`]'s methods return.
pub type RoleFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, RoleError>> + Send + 'a>>;

/// Nobody else changes members of the tenant's groups while this is there.
pub type GroupTurn = Box<dyn Send>;

/// Makes, groups and drops the roles of users.
pub trait RoleAdmin: Send + Sync {
    /// Makes the LOGIN role of a user, a member of the user's groups.
    fn create_role<'a>(&'a self, user: &'a User) -> RoleFuture<'a, ()>;

    /// Waits for its turn to change members of the tenant's groups, on any node: the turn ends when
    /// what is returned is dropped.
    fn turn_for_groups<'a>(&'a self, database: &'a str) -> RoleFuture<'a, GroupTurn>;

    /// Makes the role a member of the roles of `user.user_groups`, which are made if there are none,
    /// and of no other group of the tenant.
    fn set_groups<'a>(&'a self, user: &'a User) -> RoleFuture<'a, ()>;

    /// Bounds what sessions of a default user's role may use, and takes the bounds off the role of
    /// any other user.
    fn limit_role<'a>(&'a self, user: &'a User) -> RoleFuture<'a, ()>;

    /// Refuses a role that [`Self::drop_role`] would refuse, with the same errors.
    fn may_drop_role<'a>(
        &'a self,
        user: &'a User,
        owner: &'a str,
        reassign: bool,
    ) -> RoleFuture<'a, ()>;

    /// Ends the role's connections and drops it. What it owns goes to the tenant's owner, whose
    /// role is `owner`, unless that would give others its rights ([`RoleError::CarriesRights`]);
    /// without `reassign` owning anything is [`RoleError::OwnsObjects`]. Rights or
    /// objects in other databases are [`RoleError::UsedElsewhere`]. A role that is gone is no
    /// error, and one that is refused keeps what it has.
    fn drop_role<'a>(
        &'a self,
        user: &'a User,
        owner: &'a str,
        reassign: bool,
    ) -> RoleFuture<'a, ()>;
}

/// Why a role is not as it was asked to be.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// A role of this name is there, and it is not ours.
    #[error("the role {0} is there already, and Tidegate did not make it; choose another name")]
    Taken(String),
    /// The role owns objects of the database.
    #[error("the role owns {count} objects of the database, such as {example}")]
    OwnsObjects {
        /// How many.
        count: i64,
        /// One of them, as PostgreSQL describes it.
        example: String,
    },
    /// The role owns what would let others act with the rights of the owner that gets it.
    #[error("the role owns what would run with the new owner's rights: {}", .0.join(", "))]
    CarriesRights(Vec<String>),
    /// The role has rights or objects in other databases, which go with it only there.
    #[error("the role has rights or objects elsewhere: {}", .0.join(", "))]
    UsedElsewhere(Vec<String>),
    /// The role has rights that the administrator may not take back, as PostgreSQL describes them.
    #[error("the role is still used: {0}")]
    StillUsed(String),
    /// PostgreSQL cannot be reached now; the same call may succeed later.
    #[error("PostgreSQL cannot be reached")]
    Unavailable(#[source] Box<dyn StdError + Send + Sync>),
    /// PostgreSQL refused: a right is missing, or it is a defect of ours.
    #[error("the role could not be changed")]
    Failed(#[source] Box<dyn StdError + Send + Sync>),
}
