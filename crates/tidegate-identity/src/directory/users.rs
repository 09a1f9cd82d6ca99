//! Users: create, list, change, drop.

use serde_json::{Map, Value};

use super::UserDirectory;
use super::check::{check, check_groups};
use crate::{
    AuditKind, EndReason, Error, PasswordHash, Result, Secret, StoreError, TenantName, User,
    UserKey, UserKind, UserName, UserQuery, WriteOutcome, rate_limit,
};

/// A change is attempted at most this many times. A concurrent change makes an attempt fail.
const MAX_TRIES: u32 = 20;

/// The owner of a new tenant.
#[derive(Clone, Debug)]
pub struct NewOwner {
    /// The tenant, whose owner has the same name.
    pub database: TenantName,
    /// The owner's role; `None` if it has the tenant's name.
    pub role: Option<String>,
    /// The password; without a password the owner cannot sign in.
    pub password: Option<Secret>,
}

/// A sub-user to create.
#[derive(Clone, Debug)]
pub struct NewUser {
    /// The tenant to which the user belongs.
    pub database: TenantName,
    /// The user's name.
    pub name: UserName,
    /// The kind of the user: with a role, or a member of a group.
    pub kind: UserKind,
    /// The value that `tidegate.user_id()` returns for a member, of 1 to 255 bytes; `None` for a
    /// random UUID. A user with a role must not have an id.
    pub id: Option<String>,
    /// The password; `None` for a user that cannot sign in with a password, such as the default
    /// user.
    pub password: Option<Secret>,
    /// The hash of the password, if it was computed before or imported; `password` takes
    /// precedence.
    pub password_hash: Option<PasswordHash>,
    /// The email address.
    pub email: Option<String>,
    /// Whether the user has confirmed that it receives messages at the address.
    pub is_email_confirmed: bool,
    /// A JSON object that is included in tokens.
    pub properties: Option<Map<String, Value>>,
    /// The groups that the user joins. A member must have exactly one.
    pub user_groups: Vec<String>,
    /// Whether anonymous callers run as this user.
    pub default_user: bool,
    /// Whether the user registers itself. Its name must then not resemble another user's name.
    pub self_registered: bool,
}

impl NewUser {
    /// A user with a role. All optional fields are empty.
    pub fn new(database: TenantName, name: UserName) -> Self {
        Self {
            database,
            name,
            kind: UserKind::Role,
            id: None,
            password: None,
            password_hash: None,
            email: None,
            is_email_confirmed: false,
            properties: None,
            user_groups: Vec::new(),
            default_user: false,
            self_registered: false,
        }
    }
}

/// Changes to a user; `None` leaves a field unchanged.
#[derive(Clone, Debug, Default)]
pub struct UserChange {
    /// The new email address; `Some(None)` removes it.
    pub email: Option<Option<String>>,
    /// The new properties; `Some(None)` removes them.
    pub properties: Option<Option<Map<String, Value>>>,
    /// The groups that the user is to belong to.
    pub user_groups: Option<Vec<String>>,
    /// Whether anonymous callers are to run as this user.
    pub default_user: Option<bool>,
    /// Whether the user may neither sign in nor send requests.
    pub disabled: Option<bool>,
    /// The new password.
    pub password: Option<Secret>,
    /// The hash of the new password; `password` takes precedence.
    pub password_hash: Option<PasswordHash>,
}

impl UserChange {
    /// The user `before` with the changes applied. A new email address is not confirmed.
    fn of(&self, before: &User) -> User {
        fn or<T: Clone>(value: Option<&T>, before: &T) -> T {
            value.unwrap_or(before).clone()
        }
        let email = or(self.email.as_ref(), &before.email);
        let is_same = email == before.email;
        User {
            confirmed_email: before.confirmed_email.clone().filter(|_| is_same),
            email,
            properties: or(self.properties.as_ref(), &before.properties),
            user_groups: or(self.user_groups.as_ref(), &before.user_groups),
            default_user: self.default_user.unwrap_or(before.default_user),
            disabled: self.disabled.unwrap_or(before.disabled),
            ..before.clone()
        }
    }
}

impl UserDirectory {
    /// Creates the record of a tenant's owner. Errors: [`Error::Taken`], [`Error::InvalidField`].
    pub async fn create_owner(&self, new: NewOwner) -> Result<User> {
        let key = UserKey::owner(new.database.as_str());
        let role = new.role.unwrap_or_else(|| new.database.to_string());
        let user = User {
            key,
            role: Some(role),
            id: None,
            password_hash: self.hash(new.password.as_ref()).await?,
            email: None,
            confirmed_email: None,
            properties: None,
            user_groups: Vec::new(),
            default_user: false,
            disabled: false,
            created_at: self.ports.clock.now(),
        };
        self.insert(user).await
    }

    /// Creates the record of a sub-user. Its role is `database/name`; a member has none.
    ///
    /// Errors: [`Error::InvalidField`] with the name of the invalid field, [`Error::Taken`],
    /// [`Error::IdTaken`], [`Error::DefaultUserTaken`].
    pub async fn create_user(&self, new: NewUser) -> Result<User> {
        let user = self.prepare(&new).await?;
        self.insert(user).await
    }

    /// A tenant's users with a role, sorted by name.
    pub async fn users_with_role(&self, database: &str) -> Result<Vec<User>> {
        Ok(self.ports.store.users_with_role(database).await?)
    }

    /// A page of a tenant's users, sorted by name.
    pub async fn user_page(&self, database: &str, query: &UserQuery) -> Result<Vec<User>> {
        Ok(self.ports.store.user_page(database, query).await?)
    }

    /// The user with this key; [`Error::NotFound`] if there is none.
    pub async fn user(&self, key: &UserKey) -> Result<User> {
        let user = self.ports.store.user(key).await?;
        user.ok_or(Error::NotFound("user"))
    }

    /// Changes a user. The user's sessions end if the change sets a password or disables the user.
    /// They also end if the user becomes or stops being the default user, because only tokens of
    /// the default user have the claim `shared`. A member's sessions also end if its group or
    /// properties change, because tokens contain both.
    ///
    /// Errors: [`Error::NotFound`], [`Error::InvalidField`], [`Error::DefaultUserTaken`],
    /// [`Error::Busy`].
    pub async fn change_user(&self, key: &UserKey, change: UserChange) -> Result<User> {
        let made_default = change.default_user == Some(true);
        let (before, after) = self.check_change(key, &change).await?;
        // Sessions are ended before the change too. If the node dies after the change, a repeated
        // request finds nothing to change, and so ends no session.
        if after.is_member() && !has_same_claims(&before, &after) {
            self.end_sessions(key, EndReason::UserChanged).await?;
        }
        let hash = self.hash(change.password.as_ref()).await?;
        let given = change.password_hash.clone().map(PasswordHash::into_text);
        let (before, after) = self.write_change(key, &change).await?;
        // Sessions are ended even if the user was already disabled or already the default user.
        // Therefore repeating such a change also completes an attempt that failed half-way.
        let ends = after.default_user != before.default_user || made_default;
        if change.disabled == Some(true) {
            self.end_sessions(key, EndReason::UserDisabled).await?;
        } else if ends || after.is_member() && !has_same_claims(&before, &after) {
            self.end_sessions(key, EndReason::UserChanged).await?;
        }
        self.audit_user(AuditKind::UserChanged, key).await;
        if let Some(hash) = hash.or(given) {
            self.replace_password(key, &hash).await?;
        }
        Ok(after)
    }

    /// Validates a change without writing it. Returns the user before and after the change.
    pub(crate) async fn check_change(
        &self,
        key: &UserKey,
        change: &UserChange,
    ) -> Result<(User, User)> {
        if let Some(groups) = &change.user_groups {
            check_groups(&key.database, groups)?;
        }
        let before = self.user(key).await?;
        let after = change.of(&before);
        check(&after)?;
        Ok((before, after))
    }

    /// Writes a change, and retries after concurrent changes, so that no change undoes another.
    /// Returns the user before and after the change.
    async fn write_change(&self, key: &UserKey, change: &UserChange) -> Result<(User, User)> {
        for _ in 0..MAX_TRIES {
            let before = self.user(key).await?;
            let after = change.of(&before);
            check(&after)?;
            match self.ports.store.update_user(&before, &after).await? {
                WriteOutcome::Missing => {}
                outcome => return written(outcome).map(|()| (before, after)),
            }
        }
        let reason = "too many concurrent changes of the user";
        Err(StoreError::Unavailable(reason.into()).into())
    }

    /// Sets a user's password, ends the user's sessions and clears the counter of wrong passwords.
    ///
    /// Errors: [`Error::NotFound`]; [`Error::InvalidField`] unless the password has 8 to 256
    /// bytes.
    pub async fn set_password(&self, key: &UserKey, password: &Secret) -> Result<()> {
        self.user(key).await?;
        let hash = self.hash_password(password).await?;
        self.replace_password(key, &hash).await
    }

    /// The hash of a new password.
    ///
    /// Errors: [`Error::InvalidField`] unless the password has 8 to 256 bytes.
    pub(crate) async fn hash_password(&self, password: &Secret) -> Result<String> {
        let hasher = &self.ports.hasher;
        hasher.hash(password, &*self.ports.random).await
    }

    /// Sets the hash of a user's password, with the same effects as [`Self::set_password`].
    pub(crate) async fn replace_password(&self, key: &UserKey, hash: &str) -> Result<()> {
        let store = &self.ports.store;
        if !store.set_password_hash(key, None, hash).await? {
            return Err(Error::NotFound("user"));
        }
        self.end_sessions(key, EndReason::PasswordChanged).await?;
        store.clear_attempts(&rate_limit::account(key)).await?;
        self.audit_user(AuditKind::PasswordChanged, key).await;
        Ok(())
    }

    /// Drops a sub-user's record and ends its sessions. The owner can only be dropped with its
    /// tenant.
    ///
    /// Errors: [`Error::NotFound`]; [`Error::InvalidField`] for the owner.
    pub async fn drop_user(&self, key: &UserKey) -> Result<()> {
        refuse_owner(key)?;
        if !self
            .ports
            .store
            .delete_user(key, self.ports.clock.now())
            .await?
        {
            return Err(Error::NotFound("user"));
        }
        // The deletion ended the sessions. They are ended again, because a sign-in may have read
        // the record before the deletion.
        self.end_sessions(key, EndReason::UserDropped).await?;
        self.audit_user(AuditKind::UserDropped, key).await;
        Ok(())
    }

    /// Deletes all records of a tenant, and ends its sessions.
    pub async fn drop_tenant(&self, database: &str) -> Result<()> {
        let (store, owner) = (&self.ports.store, UserKey::owner(database));
        let existed = store.user(&owner).await?.is_some();
        store
            .delete_tenant(database, self.ports.clock.now())
            .await?;
        // A tenant exists if its owner exists. The adoption of a database also calls this function,
        // to delete records that an interrupted adoption may have left. If there was no tenant, no
        // audit event is written.
        if existed {
            self.audit_user(AuditKind::UserDropped, &owner).await;
        }
        Ok(())
    }

    /// Writes an audit event about a privilege of a user on a table.
    pub async fn audit_privilege(&self, key: &UserKey, privilege: &str, table: &str) {
        let event = self.event(AuditKind::PrivilegeSet, &key.database);
        let event = event.with_detail(&format!("{privilege} on {table}"));
        self.ports.audit(event.with_user(&key.name)).await;
    }

    async fn hash(&self, password: Option<&Secret>) -> Result<Option<String>> {
        let Some(password) = password else {
            return Ok(None);
        };
        self.hash_password(password).await.map(Some)
    }

    /// Stores a new record. Errors: [`Error::Taken`]; [`Error::IdTaken`] if the name is free but
    /// another user has the id ([`User::user_id`]); [`Error::DefaultUserTaken`].
    pub(crate) async fn insert(&self, user: User) -> Result<User> {
        let store = &self.ports.store;
        let outcome = store.insert_user(&user).await?;
        if outcome == WriteOutcome::Taken && store.user(&user.key).await?.is_none() {
            let (database, id) = (&user.key.database, user.user_id());
            if store.user_with_id(database, id).await?.is_some() {
                return Err(Error::IdTaken);
            }
        }
        written(outcome)?;
        self.audit_user(AuditKind::UserCreated, &user.key).await;
        Ok(user)
    }

    pub(crate) async fn audit_user(&self, kind: AuditKind, key: &UserKey) {
        self.ports
            .audit(self.event(kind, &key.database).with_user(&key.name))
            .await;
    }
}

/// Fails with [`Error::InvalidField`] if the user is the owner of a tenant, who cannot be dropped.
pub(crate) fn refuse_owner(key: &UserKey) -> Result<()> {
    if !key.is_owner() {
        return Ok(());
    }
    Err(Error::InvalidField {
        field: "name",
        expected: "a sub-user; the owner is dropped with its tenant",
    })
}

pub(super) fn written(written: WriteOutcome) -> Result<()> {
    match written {
        WriteOutcome::Done => Ok(()),
        WriteOutcome::Missing => Err(Error::NotFound("user")),
        WriteOutcome::Taken => Err(Error::Taken("user")),
        WriteOutcome::DefaultUserTaken => Err(Error::DefaultUserTaken),
    }
}

/// Whether tokens of a member have the same claims for both records.
fn has_same_claims(one: &User, other: &User) -> bool {
    one.user_groups == other.user_groups && one.properties == other.properties
}
