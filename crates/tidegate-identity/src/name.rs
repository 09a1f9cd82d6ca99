//! Names of tenants and users, and of their roles.

use std::fmt;

use crate::{Error, Result, UserKey};

/// The maximum length of an identifier in bytes. PostgreSQL truncates longer identifiers
/// ("Identifiers and Key Words", `NAMEDATALEN`).
const IDENTIFIER_BYTES: usize = 63;
const TENANT_BYTES: usize = 30;
const USER_CHARACTERS: usize = 32;

/// The name of a tenant, of its database and of its owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TenantName(String);

impl TenantName {
    /// Checks a name for a new tenant: `[a-z_][a-z0-9_]*`, at most 30 bytes, not starting with
    /// `pg_`.
    pub fn parse(name: &str) -> Result<Self> {
        let first = name
            .bytes()
            .next()
            .is_some_and(|b| b.is_ascii_lowercase() || b == b'_');
        let rest = name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
        if first && rest && name.len() <= TENANT_BYTES && !name.starts_with("pg_") {
            return Ok(Self(name.to_owned()));
        }
        Err(Error::InvalidField {
            field: "database",
            expected: "[a-z_][a-z0-9_]*, at most 30 bytes, not starting with pg_",
        })
    }

    /// Checks the name of an existing database that becomes a tenant: any name that PostgreSQL
    /// allows, but without control characters and without a slash. In role names, a slash separates
    /// tenant and user.
    pub fn adopted(name: &str) -> Result<Self> {
        let allowed = name.chars().all(|c| c != '/' && !c.is_control());
        if allowed && !name.is_empty() && name.len() <= IDENTIFIER_BYTES {
            return Ok(Self(name.to_owned()));
        }
        Err(Error::InvalidField {
            field: "database",
            expected: "1 to 63 bytes without a slash or control characters",
        })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TenantName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the name is a dot segment, which clients remove from URLs (RFC 3986, section 5.2.4).
fn is_dot_segment(name: &str) -> bool {
    matches!(name, "." | "..")
}

/// The name of a sub-user: 1 to 32 characters of `[A-Za-z0-9_.@+-]`, but not `.` or `..`. Its case
/// is preserved.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserName(String);

impl UserName {
    /// Checks the name; [`Error::InvalidField`] if it is not allowed.
    pub fn parse(name: &str) -> Result<Self> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"_.@+-".contains(&b);
        let length = 1..=USER_CHARACTERS;
        if length.contains(&name.len()) && name.bytes().all(allowed) && !is_dot_segment(name) {
            return Ok(Self(name.to_owned()));
        }
        Err(Error::InvalidField {
            field: "name",
            expected: "1 to 32 characters of A-Z a-z 0-9 _ . @ + - (. and .. alone are no names)",
        })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UserName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether the name suggests the operator of the service or of the database.
pub(crate) fn is_official(name: &str) -> bool {
    const OFFICIAL: [&str; 8] = [
        "admin",
        "administrator",
        "owner",
        "postgres",
        "root",
        "superuser",
        "system",
        "tidegate",
    ];
    let name = name.to_ascii_lowercase();
    name.starts_with("pg_") || OFFICIAL.contains(&name.as_str())
}

/// The role of a group: `database/group/name`. No user can have this role, because user names have
/// no slash.
///
/// Errors: [`Error::InvalidField`] unless the name is a valid [`UserName`] and the role has at
/// most 63 bytes.
pub fn group_role(database: &str, group: &str) -> Result<String> {
    let role = format!("{database}/group/{group}");
    if UserName::parse(group).is_ok() && role.len() <= IDENTIFIER_BYTES {
        return Ok(role);
    }
    Err(Error::InvalidField {
        field: "user_group",
        expected: "1 to 32 characters of A-Z a-z 0-9 _ . @ + -, not . or .., at most 63 bytes \
                   together with the database's name and /group/",
    })
}

/// The role of a user: the database's name for the owner, and `database/name` for other users. A
/// role of more than 63 bytes is an error, because PostgreSQL would truncate it and two users could
/// share a role.
pub(crate) fn role_name(key: &UserKey) -> Result<String> {
    let role = key.to_string();
    if role.len() <= IDENTIFIER_BYTES {
        return Ok(role);
    }
    Err(Error::InvalidField {
        field: "name",
        expected: "at most 63 bytes together with the database's name and a slash",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_names_are_recognised_in_any_case() {
        for name in [
            "postgres",
            "Admin",
            "ROOT",
            "pg_monitor",
            "PG_x",
            "Tidegate",
        ] {
            assert!(is_official(name), "{name}");
        }
        for name in ["alice", "pgx", "administrators", "my_pg_x"] {
            assert!(!is_official(name), "{name}");
        }
    }
}
