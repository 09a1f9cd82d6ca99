//! User records: who may sign in, and as which PostgreSQL role.

use std::fmt;

use serde_json::{Map, Value};

use crate::Timestamp;

/// What identifies a user: a name means something only within its tenant.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserKey {
    /// The tenant's database.
    pub database: String,
    /// The user's name in it; the owner's is the database's name.
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

    /// Whether this is the tenant's owner.
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

/// A person or program that may sign in.
#[derive(Clone, PartialEq)]
pub struct User {
    /// Who it is.
    pub key: UserKey,
    /// The PostgreSQL LOGIN role that its statements run as: the database's name for an owner,
    /// `database/name` for others, something else for an adopted tenant whose operator chose so.
    pub role: String,
    /// The Argon2id hash of the password in PHC form; none for a user that has no password.
    pub password_hash: Option<String>,
    /// The e-mail address.
    pub email: Option<String>,
    /// A JSON object that goes into the user's tokens.
    pub properties: Option<Map<String, Value>>,
    /// The groups that the user belongs to.
    pub user_groups: Vec<String>,
    /// Whether this is the user that strangers run as. At most one per tenant, never the owner.
    pub default_user: bool,
    /// When it was created.
    pub created_at: Timestamp,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("key", &self.key)
            .field("role", &self.role)
            .field("has_password", &self.password_hash.is_some())
            .field("user_groups", &self.user_groups)
            .field("default_user", &self.default_user)
            .field("created_at", &self.created_at)
            .finish_non_exhaustive()
    }
}
