//! Scopes (RFC 6749, section 3.3): the operations and the claims that a token gives access to.

use std::fmt;

use crate::{Error, Result};

/// A scope that narrows a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Read rows: GraphQL queries, subscriptions, the description of schemas.
    Read,
    /// Change rows: GraphQL mutations.
    Write,
    /// Call methods and list them.
    Methods,
    /// Run any SQL.
    Sql,
    /// Manage the tenant: users, clients, sessions, tokens, settings, definitions of methods.
    Admin,
}

impl Scope {
    /// All scopes that narrow a token.
    pub const ALL: [Self; 5] = [
        Self::Read,
        Self::Write,
        Self::Methods,
        Self::Sql,
        Self::Admin,
    ];

    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        NAMES[self as usize]
    }

    const fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// The names in the order of their bits: first the scopes of [`Scope`], then the scopes of OpenID
/// Connect (Core 1.0, sections 3.1.2.1, 5.4 and 11), which do not narrow a token.
const NAMES: [&str; 11] = [
    "read",
    "write",
    "methods",
    "sql",
    "admin",
    "openid",
    "profile",
    "email",
    "address",
    "phone",
    "offline_access",
];

/// The bits of the scopes that narrow a token.
const NARROWING: u16 = (1 << Scope::ALL.len()) - 1;

/// A set of scopes. If none of its scopes narrows a token, the token has all rights of the
/// user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scopes(u16);

impl Scopes {
    /// The empty set, with which a token has all rights of the user.
    pub const UNRESTRICTED: Self = Self(0);

    /// Parses a list that is separated by spaces. A repeated name counts once.
    ///
    /// Errors: [`Error::InvalidScope`] for an unknown name.
    pub fn parse(text: &str) -> Result<Self> {
        let mut bits = 0;
        for name in text.split(' ').filter(|name| !name.is_empty()) {
            let index = NAMES.iter().position(|known| *known == name);
            bits |= 1 << index.ok_or(Error::InvalidScope)?;
        }
        Ok(Self(bits))
    }

    /// The set of these scopes.
    pub fn of(scopes: &[Scope]) -> Self {
        Self(scopes.iter().fold(0, |bits, scope| bits | scope.bit()))
    }

    /// Whether a token with this set may be used for `scope`.
    pub const fn allows(self, scope: Scope) -> bool {
        !self.narrows() || self.0 & scope.bit() != 0
    }

    /// Whether the set allows less than all rights of the user.
    pub const fn narrows(self) -> bool {
        self.0 & NARROWING != 0
    }

    /// Whether the set has the scope with this name.
    pub fn has(self, name: &str) -> bool {
        let index = NAMES.iter().position(|known| *known == name);
        index.is_some_and(|index| self.0 & (1 << index) != 0)
    }

    /// Whether a token with this set may be used for everything that `asked` allows.
    pub const fn covers(self, asked: Self) -> bool {
        let narrowing = asked.0 & NARROWING;
        let identity = asked.0 & !NARROWING;
        identity & !self.0 == 0 && (!self.narrows() || (narrowing != 0 && narrowing & !self.0 == 0))
    }

    /// The scopes of a new token that is requested with the scopes `asked` by a session or token
    /// with the scopes `self`: an access token after a refresh (RFC 6749, section 6), or a personal
    /// access token. The new token has all scopes of `self` if `asked` is empty, otherwise only the
    /// scopes of `asked`. If `asked` has no narrowing scope, the narrowing scopes of `self` are
    /// added, because the token would otherwise have all rights.
    ///
    /// Errors: [`Error::InvalidScope`] if `asked` has a scope that `self` lacks.
    pub fn narrowed_to(self, asked: Self) -> Result<Self> {
        if asked.0 == 0 {
            return Ok(self);
        }
        let narrowing = match asked.0 & NARROWING {
            0 => self.0 & NARROWING,
            narrowing => narrowing,
        };
        let narrowed = Self(narrowing | (asked.0 & !NARROWING));
        if self.covers(narrowed) {
            Ok(narrowed)
        } else {
            Err(Error::InvalidScope)
        }
    }

    /// The smallest set that covers both sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        let both = self.0 | other.0;
        if self.narrows() && other.narrows() {
            Self(both)
        } else {
            Self(both & !NARROWING)
        }
    }

    /// The names of the scopes in the set.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let indexed = NAMES.into_iter().enumerate();
        indexed
            .filter(move |(index, _)| self.0 & (1 << index) != 0)
            .map(|(_, name)| name)
    }

    /// The names of the scopes that narrow a token, for metadata documents.
    pub fn narrowing() -> &'static [&'static str] {
        &NAMES[..Scope::ALL.len()]
    }
}

impl fmt::Display for Scopes {
    /// Writes the form that [`Scopes::parse`] reads; nothing for an empty set.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, name) in self.names().enumerate() {
            f.write_str(if index > 0 { " " } else { "" })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes(text: &str) -> Scopes {
        Scopes::parse(text).unwrap()
    }

    #[test]
    fn no_scope_and_scopes_of_openid_connect_allow_everything() {
        for text in ["", "openid", "openid profile email offline_access"] {
            for scope in Scope::ALL {
                assert!(scopes(text).allows(scope), "{text} {scope:?}");
            }
        }
    }

    #[test]
    fn a_scope_allows_only_itself() {
        for one in Scope::ALL {
            for other in Scope::ALL {
                let set = scopes(&format!("openid {}", one.name()));
                assert_eq!(set.allows(other), one == other, "{one:?} {other:?}");
            }
        }
    }

    #[test]
    fn an_unknown_name_is_refused_and_a_known_one_is_written_back() {
        for text in ["root", "read root", "Read", "read,write", "read\twrite"] {
            assert!(
                matches!(Scopes::parse(text), Err(Error::InvalidScope)),
                "{text}"
            );
        }
        let set = scopes("write  read read openid");
        assert_eq!(set.to_string(), "read write openid");
        assert_eq!(scopes(&set.to_string()), set);
        assert_eq!(Scopes::narrowing(), Scope::ALL.map(Scope::name));
    }

    #[test]
    fn a_refresh_narrows_and_never_widens() {
        let narrowed = |from: &str, asked: &str| {
            let narrowed = scopes(from).narrowed_to(scopes(asked));
            narrowed.map(|set| set.to_string()).ok()
        };
        for (from, asked, granted) in [
            ("", "", Some("")),
            ("", "read", Some("read")),
            ("read write", "", Some("read write")),
            ("read write", "read", Some("read")),
            ("read openid", "openid", Some("read openid")),
            ("read openid", "read", Some("read")),
            ("read", "write", None),
            ("read", "read write", None),
            ("read", "openid", None),
            ("read write methods sql", "admin", None),
        ] {
            assert_eq!(
                narrowed(from, asked).as_deref(),
                granted,
                "{from} > {asked}"
            );
        }
    }

    #[test]
    fn a_set_covers_what_it_allows() {
        for (set, asked, covered) in [
            ("", "", true),
            ("", "read", true),
            ("read", "", false),
            ("read", "read", true),
            ("read", "read write", false),
            ("openid", "read", true),
            ("read", "openid", false),
            ("read openid", "openid", false),
        ] {
            assert_eq!(
                scopes(set).covers(scopes(asked)),
                covered,
                "{set} > {asked}"
            );
            let union = scopes(set).union(scopes(asked));
            assert!(union.covers(scopes(set)) && union.covers(scopes(asked)));
        }
    }
}
