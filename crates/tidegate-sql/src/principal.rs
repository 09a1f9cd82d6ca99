//! The principal of a statement: its database, and the role that runs it.

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
            /// A name exactly as PostgreSQL stores it; case is not folded.
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
    /// A user. The statement runs as this role of the user's database.
    Role(Login),
    /// The service itself, in its control database.
    Control,
    /// The service itself, in a tenant's database. It reads `pg_catalog`, and writes only its
    /// decision about shared connections.
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

/// A role that runs statements in a tenant's database.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Login {
    /// The tenant's database.
    pub database: DatabaseName,
    /// The role that runs the statements.
    pub role: RoleName,
    /// The callers that share the role.
    pub role_use: RoleUse,
}

/// The callers that share a role. They determine how a session is reset between requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RoleUse {
    /// The role of the default user, which anonymous callers share. No session state survives a
    /// request.
    Anonymous,
    /// The role of one user. The number identifies the OAuth session of the user's token.
    User(u128),
    /// The role of a group, in a request of one of its members. As for [`Self::Anonymous`], no
    /// session state survives a request.
    Member(Arc<Member>),
    /// The role is used on a shared connection. The connection serves one caller after the other,
    /// and runs only statements that Tidegate or the tenant's owner wrote. Statements remain
    /// prepared, and a read without side effects needs no reset.
    Trusted(SharedBy),
}

/// The callers of a shared connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SharedBy {
    /// The tenant's owner, or the users of an authenticator.
    Users,
    /// Anonymous callers, as the default user.
    Anonymous,
    /// The members of a group. A reset follows every statement except a read without side effects.
    /// The reset checks that no code of one member has replaced the prepared statement that seals
    /// claims. A replacement could read the token with which the claims of the next member are
    /// sealed.
    Members,
}

impl RoleUse {
    /// Whether the role's sessions must start with fixed settings instead of those that the role
    /// has set for itself. This is true if callers without a role of their own share the role:
    /// anonymous callers, or the members of a group.
    pub fn needs_fixed_settings(&self) -> bool {
        !matches!(self, Self::User(_) | Self::Trusted(SharedBy::Users))
    }

    /// Whether the role runs only statements that Tidegate or the tenant's owner wrote.
    pub fn is_trusted(&self) -> bool {
        matches!(self, Self::Trusted(_))
    }

    /// Whether a session is reset completely after each request. No session state survives, not
    /// even prepared statements.
    pub fn is_reset_fully(&self) -> bool {
        matches!(self, Self::Anonymous | Self::Member(_))
    }
}

/// A member: a person of a group, without a role of its own. All members of a group share the
/// group's role, and are distinguished by their claims.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Member {
    id: Box<str>,
    claims: Box<str>,
}

impl Member {
    /// The maximum length of an id in bytes.
    pub const LONGEST_ID: usize = 255;
    /// The maximum length of the claims in bytes. PostgreSQL hashes and parses the claims in each
    /// call of `tidegate.claims()`.
    pub const LONGEST_CLAIMS: usize = 4096;

    /// A member. `id` is the value that `tidegate.user_id()` returns, and `claims` the JSON object
    /// that `tidegate.claims()` returns.
    ///
    /// # Errors
    ///
    /// [`InvalidMember`] if the id or the claims break a limit.
    pub fn new(id: &str, claims: &str) -> Result<Self, InvalidMember> {
        if id.is_empty() || id.len() > Self::LONGEST_ID || id.chars().any(char::is_control) {
            return Err(InvalidMember::Id);
        }
        if claims.len() > Self::LONGEST_CLAIMS {
            return Err(InvalidMember::TooManyClaims);
        }
        let is_object =
            serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(claims).is_ok();
        if !is_object || has_nul(claims) {
            return Err(InvalidMember::Claims);
        }
        Ok(Self {
            id: id.into(),
            claims: claims.into(),
        })
    }

    /// The value that `tidegate.user_id()` returns.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The JSON object that `tidegate.claims()` returns.
    pub fn claims(&self) -> &str {
        &self.claims
    }

    /// The value that `tidegate.claim(name)` returns.
    pub fn claim(&self, name: &str) -> ClaimText {
        let claims: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(&self.claims).unwrap_or_default();
        match claims.get(name) {
            None | Some(serde_json::Value::Null) => ClaimText::Null,
            Some(serde_json::Value::String(text)) => ClaimText::Text(text.as_str().into()),
            Some(serde_json::Value::Bool(value)) => ClaimText::Text(value.to_string().into()),
            Some(serde_json::Value::Number(number)) => match number.as_i64() {
                Some(number) => ClaimText::Text(number.to_string().into()),
                None => ClaimText::Other,
            },
            Some(_) => ClaimText::Other,
        }
    }
}

/// Whether a JSON text has a string with the character NUL, which PostgreSQL's `jsonb` cannot
/// store. In JSON text, this character can only be written as the escape `\u0000`. After an escaped
/// backslash, the characters `u0000` are ordinary text.
pub fn has_nul(json: &str) -> bool {
    let mut parts = json.split(r"\\");
    parts.any(|part| part.contains(r"\u0000"))
}

/// The result of `tidegate.claim()` for a member.
#[derive(Clone, PartialEq, Eq)]
pub enum ClaimText {
    /// NULL: the claim is missing or null.
    Null,
    /// The text of a string, a boolean or an integer.
    Text(Box<str>),
    /// The claim has another value, such as an object. Only PostgreSQL can convert it to text.
    Other,
}

impl fmt::Debug for ClaimText {
    /// Omits the text, because claims are personal data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Null => "Null",
            Self::Text(_) => "Text",
            Self::Other => "Other",
        })
    }
}

impl fmt::Debug for Member {
    /// Shows only the id, because claims are personal data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// The reason why [`Member::new`] refuses an id or claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMember {
    /// The id is empty, longer than [`Member::LONGEST_ID`], or has control characters.
    #[error("the id of a member must have 1 to 255 bytes and no control characters")]
    Id,
    /// The claims are no JSON object, or contain the character NUL, which PostgreSQL cannot store.
    #[error("the claims of a member must be a JSON object without the character NUL")]
    Claims,
    /// The claims are longer than [`Member::LONGEST_CLAIMS`].
    #[error("the claims of a member are longer than 4,096 bytes")]
    TooManyClaims,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_a_short_id_and_claims_that_postgresql_can_read() {
        let long_id = "x".repeat(256);
        let long_claims = format!("{{\"a\":\"{}\"}}", "x".repeat(4096));
        let cases = [
            ("m7", "{}", None),
            ("o'x\"\\ü😀|", r#"{"org":"acme","roles":["a"]}"#, None),
            ("", "{}", Some(InvalidMember::Id)),
            (&long_id, "{}", Some(InvalidMember::Id)),
            ("a\nb", "{}", Some(InvalidMember::Id)),
            ("a\0", "{}", Some(InvalidMember::Id)),
            ("m7", "", Some(InvalidMember::Claims)),
            ("m7", "[]", Some(InvalidMember::Claims)),
            ("m7", "null", Some(InvalidMember::Claims)),
            ("m7", "{} {}", Some(InvalidMember::Claims)),
            ("m7", r#"{"a":"\u0000"}"#, Some(InvalidMember::Claims)),
            ("m7", r#"{"a":"\\\u0000"}"#, Some(InvalidMember::Claims)),
            ("m7", r#"{"a\u0000":1}"#, Some(InvalidMember::Claims)),
            ("m7", r#"{"a":"\\u0000","b":"\\\\u0000"}"#, None),
            ("m7", &long_claims, Some(InvalidMember::TooManyClaims)),
        ];
        for (id, claims, wrong) in cases {
            assert_eq!(Member::new(id, claims).err(), wrong, "{id} {claims}");
        }
    }

    #[test]
    fn the_claims_of_a_member_are_not_printed() {
        let member = Member::new("m7", r#"{"secret":1}"#).unwrap();
        let role_use = RoleUse::Member(Arc::new(member));
        assert_eq!(
            format!("{role_use:?}"),
            r#"Member(Member { id: "m7", .. })"#
        );
    }
}
