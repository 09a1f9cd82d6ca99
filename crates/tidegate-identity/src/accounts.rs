//! Users with their PostgreSQL roles. The command line and the management API create, change and
//! drop users only through [`Accounts`].

mod create;
mod members;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};

use crate::directory::refuse_owner;
use crate::{
    Error, GroupLock, NewUser, Result, RoleAdmin, User, UserChange, UserDirectory, UserKey,
};

pub use members::Conversion;
use members::ProvidedGroups;

/// The users of tenants: their records in a [`UserDirectory`] and their PostgreSQL roles.
#[derive(Clone)]
pub struct Accounts {
    directory: UserDirectory,
    roles: Arc<dyn RoleAdmin>,
    /// Serialises group changes on this node. A change takes this lock before the cluster-wide
    /// lock. Therefore at most one change of this node waits for the cluster-wide lock, and such a
    /// wait occupies a connection.
    group_changes: Arc<Mutex<()>>,
    provided: Arc<ProvidedGroups>,
}

impl Accounts {
    /// Manages the records in `directory` and the roles that `roles` creates and drops.
    pub fn new(directory: UserDirectory, roles: Arc<dyn RoleAdmin>) -> Self {
        Self {
            directory,
            roles,
            group_changes: Arc::default(),
            provided: Arc::default(),
        }
    }

    /// The same accounts, but their audit events name the user `actor` and the `address` of the
    /// request instead of the operator.
    pub fn acting_as(&self, actor: &str, address: Option<IpAddr>) -> Self {
        Self {
            directory: self.directory.acting_as(actor, address),
            roles: self.roles.clone(),
            group_changes: self.group_changes.clone(),
            provided: self.provided.clone(),
        }
    }

    /// The directory of the users' records.
    pub fn directory(&self) -> &UserDirectory {
        &self.directory
    }

    /// Creates a user. The record is created first, to reserve the name, and then the role. Last,
    /// if the user has properties or is the default user, the claims for policies are written.
    /// After an error the role and the record are dropped again. For a member, only a record is
    /// created, and the role of its group if the role is missing.
    ///
    /// Errors: those of [`UserDirectory::create_user`], and [`Error::Role`](crate::Error::Role).
    pub async fn create(&self, new: NewUser) -> Result<User> {
        let user = self.directory.prepare(&new).await?;
        if user.is_member() {
            self.insert_member(user).await
        } else {
            self.insert_with_role(user).await
        }
    }

    /// Changes a user. If the user is a member, only the record changes, and the role of a new
    /// group is created if it is missing.
    ///
    /// If the user becomes the default user, resource limits are set on its role before the record
    /// is written. If the user stops being the default user, these limits are removed after the
    /// record was written.
    ///
    /// Group changes alter the role first, then the record. Therefore the record never shows a
    /// right as revoked while the role still has the right. If the node dies between the two steps,
    /// repeating the change completes it. If the record cannot be written, the role is changed
    /// back. Group changes of a tenant are serialised, so that records and roles agree.
    ///
    /// Errors: those of [`UserDirectory::change_user`], and [`Error::Role`](crate::Error::Role).
    pub async fn change(&self, key: &UserKey, change: UserChange) -> Result<User> {
        let groups = change.user_groups.is_some();
        let _lock = self.lock_groups(groups, &key.database).await?;
        let (before, after) = self.directory.check_change(key, &change).await?;
        if after.is_member() {
            if groups {
                self.provide_group(&after).await?;
            }
            return self.directory.change_user(key, change).await;
        }
        if change.default_user == Some(true) {
            self.roles.limit_role(&after).await?;
        }
        if groups {
            self.roles.set_groups(&after).await?;
        }
        let default_user = change.default_user;
        let claims = change.properties.is_some() || default_user.is_some();
        let changed = self.directory.change_user(key, change).await;
        if changed.is_err() && groups {
            self.roles.set_groups(&before).await?;
        }
        match (default_user, &changed) {
            (Some(false), Ok(user)) => self.roles.limit_role(user).await?,
            (Some(true), Err(_)) => self.roles.limit_role(&before).await?,
            _ => {}
        }
        if claims && changed.is_ok() {
            self.write_claims(key).await?;
        }
        changed
    }

    /// Writes the values that `tidegate.user_id()` and `tidegate.claims()` return for a user with a
    /// role. Writes them again if the record has changed since it was read. So after concurrent
    /// changes, the database has the claims of the final record. Does nothing for a member, and for
    /// a user that does not exist any more.
    ///
    /// Errors: [`Error::Role`](crate::Error::Role).
    pub async fn write_claims(&self, key: &UserKey) -> Result<()> {
        let mut written = None;
        loop {
            let user = match self.directory.user(key).await {
                Err(Error::NotFound(_)) => return Ok(()),
                user => user?,
            };
            if user.is_member() {
                return Ok(());
            }
            let claims = Some((user.properties.clone(), user.default_user));
            if written == claims {
                return Ok(());
            }
            self.roles.set_claims(&user).await?;
            written = claims;
        }
    }

    /// Locks the groups of a tenant, on this node and in the cluster. Takes no lock and returns
    /// `None` if `changes_groups` is false.
    async fn lock_groups(
        &self,
        changes_groups: bool,
        database: &str,
    ) -> Result<Option<(GroupLock, MutexGuard<'_, ()>)>> {
        if !changes_groups {
            return Ok(None);
        }
        let here = self.group_changes.lock().await;
        let everywhere = self.roles.lock_groups(database).await?;
        Ok(Some((everywhere, here)))
    }

    /// Fails if [`Accounts::drop`] would refuse the user, with the same error. Changes nothing. A
    /// request to drop several users checks all of them before it drops the first. Some errors
    /// occur only in the drop, such as rights of the role that the administrator cannot revoke.
    pub async fn check_drop(&self, key: &UserKey, reassign: bool) -> Result<()> {
        refuse_owner(key)?;
        let user = self.directory.user(key).await?;
        self.check_drop_role(&user, reassign).await
    }

    /// Drops a sub-user. Drops the role before the record, so that a failed attempt can be
    /// repeated. With `reassign`, the tenant's owner gets the objects that the role owns.
    ///
    /// Errors: those of [`UserDirectory::drop_user`], and [`Error::Role`](crate::Error::Role) when
    /// the role is used in other databases, or when it owns something and `reassign` is not set.
    pub async fn drop(&self, key: &UserKey, reassign: bool) -> Result<()> {
        refuse_owner(key)?;
        let user = self.directory.user(key).await?;
        self.drop_role(&user, reassign).await?;
        self.directory.reserve_id(&user).await?;
        self.directory.drop_user(key).await
    }

    async fn check_drop_role(&self, user: &User, reassign: bool) -> Result<()> {
        if user.is_member() {
            return Ok(());
        }
        let owner = self.owner_role(user).await?;
        let may = self.roles.check_drop_role(user, &owner, reassign);
        Ok(may.await?)
    }

    async fn drop_role(&self, user: &User, reassign: bool) -> Result<()> {
        if user.is_member() {
            return Ok(());
        }
        let owner = self.owner_role(user).await?;
        Ok(self.roles.drop_role(user, &owner, reassign).await?)
    }

    /// The role of the owner of the user's tenant.
    async fn owner_role(&self, user: &User) -> Result<String> {
        let key = UserKey::owner(&user.key.database);
        let owner = self.directory.user(&key).await?;
        owner.role.ok_or(Error::NotFound("owner"))
    }
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accounts")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}
