//! The records of new users: validated, with hashed passwords, not yet stored.

use super::UserDirectory;
use super::check::{check, check_groups};
use crate::name::{is_official, role_name};
use crate::password::check_length;
use crate::{Error, NewUser, PasswordHash, Result, User, UserKey, UserKind};

impl UserDirectory {
    /// The validated record of a new user with the hash of its password. Nothing is stored.
    ///
    /// Errors: those of [`Self::create_user`]. The name is compared with the names of other
    /// sub-users only if the new user registers itself. Otherwise a taken name is refused when the
    /// record is stored.
    pub(crate) async fn prepare(&self, new: &NewUser) -> Result<User> {
        let mut user = self.record(new)?;
        if let Some(password) = &new.password {
            user.password_hash = Some(self.hash_password(password).await?);
        }
        // The name is checked after the hashing, so that the response takes equally long whether
        // the name is taken or free.
        if new.self_registered {
            self.require_distinct_name(new).await?;
        }
        Ok(user)
    }

    /// The validated records of new users with the hashes of their passwords. All records are
    /// validated before the first password is hashed. Nothing is stored.
    ///
    /// Errors: those of [`Self::prepare`], with the index in `new` of the first user that was
    /// refused.
    pub(crate) async fn prepare_all(&self, new: &[NewUser]) -> Result<Vec<User>, (usize, Error)> {
        let mut users = Vec::with_capacity(new.len());
        for (index, new) in new.iter().enumerate() {
            users.push(self.record(new).map_err(|error| (index, error))?);
        }
        let passwords = new.iter().enumerate();
        let passwords = passwords.filter_map(|(index, new)| Some((index, new.password.as_ref()?)));
        let passwords: Vec<_> = passwords.collect();
        let hasher = &self.ports.hasher;
        for (index, hash) in hasher.hash_all(&passwords, &*self.ports.random).await? {
            users[index].password_hash = Some(hash);
        }
        Ok(users)
    }

    /// The validated record of a new user. It has the imported hash, if one is given; the password
    /// is checked, but not hashed.
    fn record(&self, new: &NewUser) -> Result<User> {
        let key = UserKey::new(new.database.as_str(), new.name.as_str());
        if key.is_owner() {
            return Err(Error::Taken("user"));
        }
        if new.kind == UserKind::Role && new.id.is_some() {
            return Err(Error::InvalidField {
                field: "id",
                expected: "no id for a user with a role, whose id is its name",
            });
        }
        let (role, id) = match new.kind {
            UserKind::Role => (Some(role_name(&key)?), None),
            UserKind::Member => (None, Some(self.member_id(new.id.as_ref())?)),
        };
        let user = User {
            key,
            role,
            id,
            password_hash: new.password_hash.clone().map(PasswordHash::into_text),
            email: new.email.clone(),
            confirmed_email: new.email.clone().filter(|_| new.is_email_confirmed),
            properties: new.properties.clone(),
            user_groups: new.user_groups.clone(),
            default_user: new.default_user,
            disabled: false,
            created_at: self.ports.clock.now(),
        };
        check(&user)?;
        check_groups(&user.key.database, &user.user_groups)?;
        if let Some(password) = &new.password {
            check_length(password)?;
        }
        Ok(user)
    }

    /// Fails with [`Error::Taken`] if the new user's name is reserved, is the tenant's name, equals
    /// another user's name without regard to case, or was the id of a dropped user.
    async fn require_distinct_name(&self, new: &NewUser) -> Result<()> {
        let (database, name) = (new.database.as_str(), new.name.as_str());
        let similar = is_official(name)
            || name.eq_ignore_ascii_case(database)
            || self.ports.store.has_similar_user(database, name).await?;
        if similar {
            return Err(Error::Taken("user"));
        }
        Ok(())
    }
}
