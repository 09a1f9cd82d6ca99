//! The privileges that adoption changes.

use super::script::Part::{self, Name, Syntax};

/// A right that adoption moves from everybody to each login role.
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
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Connect, Self::Temporary, Self::CreateInPublic];

    /// The name in a store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Temporary => "temporary",
            Self::CreateInPublic => "create_in_public",
        }
    }

    /// The right with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|right| right.name() == name)
    }

    /// The right as SQL, up to the preposition.
    pub(super) fn parts(self, database: &str) -> [Part<'_>; 2] {
        match self {
            Self::Connect => [Syntax("CONNECT ON DATABASE "), Name(database)],
            Self::Temporary => [Syntax("TEMPORARY ON DATABASE "), Name(database)],
            Self::CreateInPublic => [Syntax("CREATE ON SCHEMA "), Name("public")],
        }
    }
}
