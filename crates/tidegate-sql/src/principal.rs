//! As whom a statement runs.

use std::fmt;
use std::sync::Arc;

/// The name of a PostgreSQL database, which is what a tenant is.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatabaseName(Arc<str>);

/// The name of a PostgreSQL login role.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoleName(Arc<str>);

macro_rules! name {
    ($name:ident) => {
        impl $name {
            /// Takes the name as PostgreSQL spells it; nothing is folded or checked.
            pub fn new(name: impl AsRef<str>) -> Self {
                Self(Arc::from(name.as_ref()))
            }

            /// The name as PostgreSQL spells it.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&*self.0, f)
            }
        }
    };
}

name!(DatabaseName);
name!(RoleName);

/// Who runs a statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// A user: the statement runs on a connection that logged in as this role.
    Role(Login),
    /// The service itself in its control database.
    Control,
    /// The service itself reading `pg_catalog` of a database, and nothing else there.
    Catalog(DatabaseName),
}

impl Principal {
    /// The database in which the statement runs, where the caller chose one.
    pub fn database(&self) -> Option<&DatabaseName> {
        match self {
            Self::Role(login) => Some(&login.database),
            Self::Catalog(database) => Some(database),
            Self::Control => None,
        }
    }
}

/// A login role of a database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Login {
    /// The tenant's database.
    pub database: DatabaseName,
    /// The role that logs in.
    pub role: RoleName,
    /// Who else uses the role.
    pub sharing: Sharing,
}

/// Who shares a role, which decides how a session is reset between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sharing {
    /// Strangers share the role (the default user): nothing survives a request.
    Strangers,
    /// One user has the role; the number identifies the token's session.
    One(u128),
    /// The connections carry only text of Tidegate's and of the tenant's owner, for all callers in
    /// turn: statements stay prepared, and plain reads are not followed by a reset.
    Trusted {
        /// Whether the role is one that strangers share: what it has set for itself must not reach
        /// its sessions.
        strangers: bool,
    },
}

impl Sharing {
    /// Whether strangers share the role.
    pub fn has_strangers(self) -> bool {
        matches!(self, Self::Strangers | Self::Trusted { strangers: true })
    }

    /// Whether only text of Tidegate's and of the tenant's owner runs there.
    pub fn is_trusted(self) -> bool {
        matches!(self, Self::Trusted { .. })
    }
}
