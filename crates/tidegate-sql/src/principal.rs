//! The principal of a statement: its database and role.

use std::fmt;
use std::sync::Arc;

/// The name of a PostgreSQL database. Each tenant has one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatabaseName(Arc<str>);

/// The name of a PostgreSQL login role.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RoleName(Arc<str>);

macro_rules! name {
    ($name:ident) => {
        impl $name {
            /// Takes the name exactly as PostgreSQL stores it; case is not folded.
            pub fn new(name: impl AsRef<str>) -> Self {
                Self(Arc::from(name.as_ref()))
            }

            /// The name as PostgreSQL stores it.
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

/// The principal that runs a statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// A user: the statement runs on a connection that logged in as this role.
    Role(Login),
    /// The service itself, in its control database.
    Control,
    /// The service itself, reading `pg_catalog` of a database and nothing else.
    Catalog(DatabaseName),
}

impl Principal {
    /// The database of the statement; `None` for the control database.
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
    /// Who uses the role.
    pub role_use: RoleUse,
}

/// Who uses a role. Decides how a session is reset between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RoleUse {
    /// The default user's role, which anonymous callers share: no session state survives a request.
    Anonymous,
    /// The role of one user. The number identifies the session of the user's token.
    User(u128),
    /// A shared connection: it runs only statements that Tidegate or the tenant's owner wrote, for
    /// one caller after the other. Statements stay prepared, and a plain read needs no reset.
    Trusted {
        /// Whether anonymous callers share the role. Settings that the role made for itself must
        /// then not reach its sessions.
        anonymous: bool,
    },
}

impl RoleUse {
    /// Whether anonymous callers share the role.
    pub fn is_anonymous(self) -> bool {
        matches!(self, Self::Anonymous | Self::Trusted { anonymous: true })
    }

    /// Whether only statements that Tidegate or the tenant's owner wrote run there.
    pub fn is_trusted(self) -> bool {
        matches!(self, Self::Trusted { .. })
    }
}
