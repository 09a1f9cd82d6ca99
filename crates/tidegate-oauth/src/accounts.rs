//! Users with their roles: the one way to create, change and drop a user, for a command line and
//! for a management API.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use tokio::sync::{Mutex, MutexGuard};

use crate::directory::refuse_owner;
use crate::{Directory, GroupTurn, NewUser, Result, RoleAdmin, User, UserChange, UserKey};

/// The users of tenants: their records in a [`Directory`] and their roles in PostgreSQL.
#[derive(Clone)]
pub struct Accounts {
    directory: Directory,
    roles: Arc<dyn RoleAdmin>,
    /// Of the changes of groups on this node one at a time waits for its turn among the nodes,
    /// because waiting takes a connection.
    next: Arc<Mutex<()>>,
}

impl Accounts {
    /// The users whose records are in `directory` and whose roles `roles` keeps.
    pub fn new(directory: Directory, roles: Arc<dyn RoleAdmin>) -> Self {
        Self {
            directory,
            roles,
            next: Arc::default(),
        }
    }

    /// The same, where the audit log says that `actor` did it, from `address`.
    pub fn acting_as(&self, actor: &str, address: Option<IpAddr>) -> Self {
        Self {
            directory: self.directory.acting_as(actor, address),
            roles: self.roles.clone(),
            next: self.next.clone(),
        }
    }

    /// The records of users and clients.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Creates a user: its record, which reserves the name, then its role. When the role cannot be
    /// made the record goes too.
    ///
    /// Errors as [`Directory::create_user`], and [`Error::Role`](crate::Error::Role).
    pub async fn create(&self, new: NewUser) -> Result<User> {
        let joins = !new.user_groups.is_empty();
        let _turn = self.turn(joins, new.database.as_str()).await?;
        let user = self.directory.create_user(new).await?;
        if let Err(error) = self.roles.create_role(&user).await {
            self.directory.drop_user(&user.key).await?;
            return Err(error.into());
        }
        Ok(user)
    }

    /// Changes a user. A role that becomes the default user's is bounded before the record says so,
    /// one that ceases to be is free of the bounds behind it.
    ///
    /// A change of the group is the role's first and the record's then: should the
    /// node die between the two, the record does not claim that rights are gone which the role still
    /// has, and the same change once more mends it. When the record cannot be changed the role goes
    /// back. Changes of groups in a tenant happen one after another, so that record and role agree.
    ///
    /// Errors as [`Directory::change_user`], and [`Error::Role`](crate::Error::Role).
    pub async fn change(&self, key: &UserKey, change: UserChange) -> Result<User> {
        let groups = change.user_groups.is_some();
        let _turn = self.turn(groups, &key.database).await?;
        let (before, after) = self.directory.checked_change(key, &change).await?;
        if change.default_user == Some(true) {
            self.roles.limit_role(&after).await?;
        }
        if groups {
            self.roles.set_groups(&after).await?;
        }
        let default_user = change.default_user;
        let changed = self.directory.change_user(key, change).await;
        if changed.is_err() && groups {
            self.roles.set_groups(&before).await?;
        }
        match (default_user, &changed) {
            (Some(false), Ok(user)) => self.roles.limit_role(user).await?,
            (Some(true), Err(_)) => self.roles.limit_role(&before).await?,
            _ => {}
        }
        changed
    }

    /// The turn of a change of groups, here and among the nodes; none for any other change.
    async fn turn(
        &self,
        of_groups: bool,
        database: &str,
    ) -> Result<Option<(GroupTurn, MutexGuard<'_, ()>)>> {
        if !of_groups {
            return Ok(None);
        }
        let here = self.next.lock().await;
        let everywhere = self.roles.turn_for_groups(database).await?;
        Ok(Some((everywhere, here)))
    }

    /// Refuses what [`Accounts::drop`] would refuse, so that of several users all are dropped or
    /// none. Errors are the same.
    pub async fn may_drop(&self, key: &UserKey, reassign: bool) -> Result<()> {
        refuse_owner(key)?;
        let user = self.directory.user(key).await?;
        let owner = self.directory.user(&UserKey::owner(&key.database)).await?;
        let may = self.roles.may_drop_role(&user, &owner.role, reassign);
        Ok(may.await?)
    }

    /// Drops a sub-user: its role, then its record, so that an attempt that failed half way can be
    /// repeated. With `reassign` the tenant's owner gets what the role owns.
    ///
    /// Errors as [`Directory::drop_user`], and [`Error::Role`](crate::Error::Role) when the role
    /// owns something and `reassign` is not set, or is used in other databases.
    pub async fn drop(&self, key: &UserKey, reassign: bool) -> Result<()> {
        refuse_owner(key)?;
        let user = self.directory.user(key).await?;
        let owner = self.directory.user(&UserKey::owner(&key.database)).await?;
        self.roles.drop_role(&user, &owner.role, reassign).await?;
        self.directory.drop_user(key).await
    }
}

impl fmt::Debug for Accounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Accounts")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}
