//! The privileges that an adoption revokes from PUBLIC and grants to the login roles that exist.

use super::script::SqlPart::{self, Name, Syntax};

/// A privilege that adoption moves from PUBLIC to each login role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Right {
    /// CONNECT on the database.
    Connect,
    /// TEMPORARY on the database.
    Temporary,
    /// CREATE on the schema `public`.
    CreateInPublic,
}

impl Right {
    /// All privileges that adoption moves.
    pub const ALL: [Self; 3] = [Self::Connect, Self::Temporary, Self::CreateInPublic];

    /// The name under which a store records the privilege.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Temporary => "temporary",
            Self::CreateInPublic => "create_in_public",
        }
    }

    /// The privilege with this [`name`](Self::name); `None` if there is none.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.name() == name)
    }

    /// The SQL that follows GRANT or REVOKE: the privilege, and the object.
    pub(super) fn parts(self, database: &str) -> [SqlPart<'_>; 2] {
        match self {
            Self::Connect => [Syntax("CONNECT ON DATABASE "), Name(database)],
            Self::Temporary => [Syntax("TEMPORARY ON DATABASE "), Name(database)],
            Self::CreateInPublic => [Syntax("CREATE ON SCHEMA "), Name("public")],
        }
    }
}
