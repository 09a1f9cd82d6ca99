//! URLs of PostgreSQL as settings.

use std::fmt;

use super::{Element, Kind, TomlType};

/// A connection string of PostgreSQL (PostgreSQL, "Connection URIs").
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct DatabaseUrl(pub(crate) String);

kind!(
    DatabaseUrl,
    Text,
    "an address such as postgresql://user@host:5432/postgres",
    |text| {
        let known = text.starts_with("postgres://") || text.starts_with("postgresql://");
        known.then(|| Self(text.to_owned()))
    }
);

impl Element for DatabaseUrl {
    const EXPECTED_LIST: &'static str =
        "a list of addresses such as postgresql://user@host:5432/postgres";
}

/// Accepts any text, because clap's own error would quote an invalid address together with its
/// password.
impl std::str::FromStr for DatabaseUrl {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DatabaseUrl([redacted])")
    }
}
