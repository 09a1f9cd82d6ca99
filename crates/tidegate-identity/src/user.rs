//! User records.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use crate::Timestamp;

/// Identifies a user; names are unique within a tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserKey {
    /// The tenant's database.
    pub database: String,
    /// The user's name. The owner of a tenant has the name of the database.
    pub name: String,
}

impl UserKey {
    /// The user `name` of the tenant `database`.
    pub fn new(database: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            database: database.into(),
            name: name.into(),
        }
    }

    /// The owner of the tenant `database`.
    pub fn owner(database: &str) -> Self {
        Self::new(database, database)
    }

    /// Whether the user is the tenant's owner.
    pub fn is_owner(&self) -> bool {
        self.database == self.name
    }
}

impl fmt::Display for UserKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_owner() {
            f.write_str(&self.database)
        } else {
            write!(f, "{}/{}", self.database, self.name)
        }
    }
}

/// The kind of a user: with a PostgreSQL role of its own, or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UserKind {
    /// A user with a role.
    Role,
    /// A user without a role. Its statements run as the role of its group, with the claims of the
    /// user.
    Member,
}

impl UserKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Role, Self::Member];

    /// The name of the kind in requests, tokens and the store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Role => "role",
            Self::Member => "member",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The record of a user: a person or program, with a PostgreSQL role or as a member of a group.
#[derive(Clone, PartialEq)]
pub struct User {
    /// The tenant's database and the user's name.
    pub key: UserKey,
    /// The PostgreSQL LOGIN role that the user's statements run as: the database's name for an
    /// owner, `database/name` for others. The owner of an adopted database may have another role.
    /// `None` for a member.
    pub role: Option<String>,
    /// The value that `tidegate.user_id()` returns for the user; `None` if it returns the user's
    /// name. A member always has an id.
    pub id: Option<String>,
    /// The hash of the password, computed by this service or imported (see
    /// [`PasswordHash`](crate::PasswordHash)); `None` without a password.
    pub password_hash: Option<String>,
    /// The email address.
    pub email: Option<String>,
    /// The email address that the user most recently confirmed, which may differ from `email`.
    pub confirmed_email: Option<String>,
    /// A JSON object that is included in the user's tokens as a claim.
    pub properties: Option<Map<String, Value>>,
    /// The groups that the user belongs to. A member has exactly one.
    pub user_groups: Vec<String>,
    /// Whether anonymous callers run as this user. A tenant has at most one such user, which is
    /// neither the owner nor a member.
    pub default_user: bool,
    /// Whether the user may neither sign in nor send requests. The owner and the default user are
    /// never disabled.
    pub disabled: bool,
    /// When the user was created.
    pub created_at: Timestamp,
}

impl User {
    /// The kind of the user: [`UserKind::Role`] if it has a role.
    pub fn kind(&self) -> UserKind {
        match self.role {
            Some(_) => UserKind::Role,
            None => UserKind::Member,
        }
    }

    /// Whether the user has no role.
    pub fn is_member(&self) -> bool {
        self.role.is_none()
    }

    /// The value that `tidegate.user_id()` returns for the user.
    pub fn user_id(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.key.name)
    }

    /// The value that `tidegate.user_id()` returns for the user's requests; `None` for the default
    /// user, because all anonymous callers share its role.
    pub fn own_id(&self) -> Option<&str> {
        (!self.default_user).then(|| self.user_id())
    }

    /// The email address, if the user has confirmed that it receives messages at this address.
    pub fn verified_email(&self) -> Option<&str> {
        let email = self.email.as_deref();
        email.filter(|_| self.email == self.confirmed_email)
    }

    /// The user's name in access tokens, which is unique in the cluster: the role, or for a member
    /// `database/name`.
    pub fn subject(&self) -> Cow<'_, str> {
        match &self.role {
            Some(role) => Cow::Borrowed(role),
            None => Cow::Owned(self.key.to_string()),
        }
    }
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("key", &self.key)
            .field("role", &self.role)
            .field("has_password", &self.password_hash.is_some())
            .field("user_groups", &self.user_groups)
            .field("default_user", &self.default_user)
            .field("disabled", &self.disabled)
            .field("created_at", &self.created_at)
            .finish_non_exhaustive()
    }
}
