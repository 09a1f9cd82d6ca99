//! Members, which are users without a role: their creation, the roles of their groups, and the
//! conversion of users from one kind to the other.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::Accounts;
use crate::directory::{check, check_groups};
use crate::name::role_name;
use crate::{EndReason, Error, Result, Timestamp, User, UserChange, UserKey, UserKind};

/// A conversion of a user: the new kind and groups.
#[derive(Clone, Debug)]
pub struct Conversion {
    /// The new kind.
    pub kind: UserKind,
    /// The groups after the conversion; `None` to keep the groups. A member must have exactly one
    /// group.
    pub user_groups: Option<Vec<String>>,
    /// For a user that becomes a member: whether the tenant's owner gets the objects that the
    /// dropped role owns.
    pub reassign: bool,
}

/// The time after which this node checks again that the role of a group can log in.
const PROVIDED: Duration = Duration::from_secs(10);

/// For each database and group, the time at which this node most recently checked that the role of
/// the group can log in. The times are stored because sign-ups are frequent, and each check needs a
/// connection.
#[derive(Default)]
pub(super) struct ProvidedGroups(Mutex<HashMap<(String, String), Timestamp>>);

impl ProvidedGroups {
    fn has(&self, database: &str, group: &str, now: Timestamp) -> bool {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|_, at| now < at.plus(PROVIDED));
        groups.contains_key(&(database.to_owned(), group.to_owned()))
    }

    fn add(&self, database: &str, group: &str, now: Timestamp) {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        groups.insert((database.to_owned(), group.to_owned()), now);
    }
}

impl Accounts {
    /// Stores the record of a new member. The role of its group is created if missing.
    pub(super) async fn insert_member(&self, member: User) -> Result<User> {
        let stored = self.insert_members(vec![member]).await;
        let mut members = stored.map_err(|(_, error)| error)?;
        members.pop().ok_or(Error::NotFound("user"))
    }

    /// Stores the records of new members of one tenant, all or none. The roles of their groups are
    /// created if missing.
    ///
    /// Errors, with the index of the member in `members`: [`Error::Taken`],
    /// [`Error::IdTaken`], [`Error::Role`].
    pub(super) async fn insert_members(
        &self,
        members: Vec<User>,
    ) -> Result<Vec<User>, (usize, Error)> {
        for (index, member) in members.iter().enumerate() {
            let earlier = &members[..index];
            if (earlier.iter()).all(|earlier| earlier.user_groups != member.user_groups) {
                let provided = self.lock_and_provide_group(member).await;
                provided.map_err(|error| (index, error))?;
            }
        }
        self.directory.create_members(members).await
    }

    /// Locks the tenant's groups and calls [`Self::provide_group`]. Does nothing if this node
    /// already provided the member's groups less than [`PROVIDED`] ago.
    async fn lock_and_provide_group(&self, member: &User) -> Result<()> {
        let (database, now) = (&member.key.database, self.directory.now());
        let mut groups = member.user_groups.iter();
        if groups.all(|group| self.provided.has(database, group, now)) {
            return Ok(());
        }
        let _lock = self.lock_groups(true, database).await?;
        self.provide_group(member).await
    }

    /// Makes sure that the role of a member's group exists and can log in. The calling function
    /// must hold the lock of the tenant's groups.
    pub(super) async fn provide_group(&self, member: &User) -> Result<()> {
        let database = &member.key.database;
        for group in &member.user_groups {
            self.roles.provide_group(database, group).await?;
            self.provided.add(database, group, self.directory.now());
        }
        Ok(())
    }

    /// Makes sure that the role of each group with members can log in. After a restore without
    /// roles, these roles are missing or cannot log in. `able` has the groups whose roles can
    /// already log in; these groups are skipped.
    ///
    /// Errors: [`Error::Role`].
    pub async fn provide_member_groups(&self, database: &str, able: &[String]) -> Result<()> {
        let groups = self.directory.member_groups(database).await?;
        for group in groups.iter().filter(|group| !able.contains(group)) {
            let _lock = self.lock_groups(true, database).await?;
            self.roles.provide_group(database, group).await?;
        }
        Ok(())
    }

    /// Gives a member a role, or makes a user with a role a member. `tidegate.user_id()` returns
    /// the same value as before. Ends the user's sessions before the record changes, and again
    /// after the change. Repeating an interrupted conversion completes it.
    ///
    /// Errors: [`Error::InvalidField`] for the owner, the default user, a member without exactly
    /// one group, and a name that is too long for a role; [`Error::NotFound`] if the user does not
    /// exist or was changed concurrently; [`Error::Role`] when the role owns something and
    /// `reassign` is not set.
    pub async fn convert(&self, key: &UserKey, to: &Conversion) -> Result<User> {
        let user = self.directory.user(key).await?;
        if user.kind() == to.kind {
            return self.keep_kind(user, to).await;
        }
        let converted = converted(&user, to)?;
        let _lock = self.lock_groups(true, &key.database).await?;
        match to.kind {
            UserKind::Member => self.make_member(&user, &converted, to.reassign).await?,
            UserKind::Role => self.give_role(&user, &converted).await?,
        }
        Ok(converted)
    }

    /// Runs the checks of [`Self::convert`] and changes nothing. Returns the stored user.
    ///
    /// Errors: those of [`Self::convert`].
    pub async fn check_convert(&self, key: &UserKey, to: &Conversion) -> Result<User> {
        let user = self.directory.user(key).await?;
        if user.kind() != to.kind {
            converted(&user, to)?;
            // For a member, who has no role, this call does nothing.
            self.check_drop_role(&user, to.reassign).await?;
        }
        Ok(user)
    }

    /// Completes a conversion to the kind that the user already has: drops the role that an
    /// interrupted conversion left behind, and changes the groups if `to` has other groups.
    async fn keep_kind(&self, user: User, to: &Conversion) -> Result<User> {
        // A member whose name is too long for a role never had a role that could be left behind.
        let role = role_name(&user.key).ok().filter(|_| user.is_member());
        if role.is_some() {
            let left_behind = User {
                role,
                ..user.clone()
            };
            self.drop_role(&left_behind, to.reassign).await?;
        }
        let groups = to.user_groups.clone();
        let Some(user_groups) = groups.filter(|groups| *groups != user.user_groups) else {
            return Ok(user);
        };
        let change = UserChange {
            user_groups: Some(user_groups),
            ..UserChange::default()
        };
        self.change(&user.key, change).await
    }

    /// Makes a user with a role a member. `user` is the record before the change, and `member` the
    /// record after it. The record is changed before the role is dropped. If the node dies between
    /// the two steps, a role remains that no user can use.
    async fn make_member(&self, user: &User, member: &User, reassign: bool) -> Result<()> {
        self.check_drop_role(user, reassign).await?;
        self.provide_group(member).await?;
        self.directory
            .end_sessions(&user.key, EndReason::UserChanged)
            .await?;
        self.directory.replace(user, member).await?;
        self.directory.end_converted(&user.key).await?;
        self.drop_role(user, reassign).await
    }

    /// Gives a member a role. `member` is the record before the change, and `user` the record after
    /// it. The role is complete before the record names it. If the record was not changed, the role
    /// is dropped again. If it is not known whether the record was changed, the role is not
    /// dropped.
    async fn give_role(&self, member: &User, user: &User) -> Result<()> {
        self.directory
            .end_sessions(&user.key, EndReason::UserChanged)
            .await?;
        self.roles.create_role(user).await?;
        if let Err(error) = self.roles.set_claims(user).await {
            self.drop_role(user, false).await?;
            return Err(error.into());
        }
        match self.directory.replace(member, user).await {
            Err(error @ (Error::NotFound(_) | Error::Taken(_))) => {
                self.drop_role(user, false).await?;
                return Err(error);
            }
            replaced => replaced?,
        }
        self.directory.end_converted(&user.key).await
    }
}

/// The user after a conversion to another kind.
fn converted(user: &User, to: &Conversion) -> Result<User> {
    let key = &user.key;
    if key.is_owner() {
        return refused("role for the owner of the database");
    }
    if user.default_user {
        return refused("role for the default user");
    }
    let groups = to.user_groups.clone();
    let user_groups = groups.unwrap_or_else(|| user.user_groups.clone());
    let (role, id) = match to.kind {
        UserKind::Member => (None, Some(user.user_id().to_owned())),
        UserKind::Role => {
            let id = user.id.clone().filter(|id| *id != key.name);
            (Some(role_name(key)?), id)
        }
    };
    let converted = User {
        role,
        id,
        user_groups,
        ..user.clone()
    };
    check(&converted)?;
    check_groups(&key.database, &converted.user_groups)?;
    Ok(converted)
}

fn refused<T>(expected: &'static str) -> Result<T> {
    Err(Error::InvalidField {
        field: "kind",
        expected,
    })
}
