//! Creation of users with a role, and of users of both kinds together.

use super::Accounts;
use crate::{Error, NewUser, Result, User};

impl Accounts {
    /// Creates several users of one tenant, all or none, for the tenant's owner or the operator.
    /// First, all users are validated, and their passwords are hashed in parallel. Then the users
    /// with a role are created one after the other, and finally the members in one statement.
    ///
    /// Errors: those of [`Accounts::create`], with the index in `new` of the user that was refused.
    pub async fn create_all(&self, new: &[NewUser]) -> Result<(), (usize, Error)> {
        let users = self.directory.prepare_all(new).await?;
        let users = users.into_iter().enumerate();
        let (members, others): (Vec<_>, Vec<_>) = users.partition(|(_, user)| user.is_member());
        let mut made = Vec::with_capacity(others.len());
        for (index, user) in others {
            match self.insert_with_role(user).await {
                Ok(user) => made.push(user),
                Err(error) => return Err((index, self.undo(&made, error).await)),
            }
        }
        let (indexes, members): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        if let Err((position, error)) = self.insert_members(members).await {
            let index = indexes.get(position).copied().unwrap_or_default();
            return Err((index, self.undo(&made, error).await));
        }
        Ok(())
    }

    /// Stores the record of a new user with a role, and creates the role. After an error the role
    /// and the record are dropped.
    pub(super) async fn insert_with_role(&self, user: User) -> Result<User> {
        let joins = !user.user_groups.is_empty();
        let _lock = self.lock_groups(joins, &user.key.database).await?;
        let user = self.directory.insert(user).await?;
        if let Err(error) = self.roles.create_role(&user).await {
            self.directory.drop_user(&user.key).await?;
            return Err(error.into());
        }
        if (user.properties.is_some() || user.default_user)
            && let Err(error) = self.write_claims(&user.key).await
        {
            self.drop_new(&user).await?;
            return Err(error);
        }
        Ok(user)
    }

    /// Drops users that were just created, because `error` occurred. Returns `error`; if a user
    /// cannot be dropped, returns the error of the drop instead.
    async fn undo(&self, made: &[User], error: Error) -> Error {
        for user in made {
            if let Err(error) = self.drop_new(user).await {
                return error;
            }
        }
        error
    }

    /// Drops a user that was just created and was never used. Unlike [`Accounts::drop`], does not
    /// reserve the user's id, because no policy and no application can refer to the user yet.
    pub(crate) async fn drop_new(&self, user: &User) -> Result<()> {
        self.drop_role(user, false).await?;
        self.directory.drop_user(&user.key).await
    }
}
