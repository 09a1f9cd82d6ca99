//! Client records (RFC 6749, section 2).

use tidegate_identity::{Secret, SecretHash, Timestamp};

/// An application. It belongs to one tenant, unless it is built in.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the flags of the wire"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The `client_id`, unique over all tenants.
    pub id: String,
    /// The tenant's database that the client belongs to; `None` for a built-in client, through
    /// which users of all tenants sign in.
    pub database: Option<String>,
    /// The name shown to users.
    pub name: String,
    /// The registered redirect URIs; compared byte by byte.
    pub redirect_uris: Vec<String>,
    /// The application's home page.
    pub homepage: Option<String>,
    /// A description of the application.
    pub description: Option<String>,
    /// Public, or confidential with its secrets.
    pub authentication: ClientAuthentication,
    /// Whether users are asked for consent.
    pub confirm: bool,
    /// Whether signing in through this client requires a second factor.
    pub two_factor: bool,
    /// Whether users may sign up through this client.
    pub allow_signup: bool,
    /// Whether users may sign up through this client with an identity provider.
    pub social_signup: bool,
    /// The grants that the client may use.
    pub grants: GrantSet,
    /// When it was registered.
    pub created_at: Timestamp,
}

impl Client {
    /// Whether users of this database may sign in through the client.
    pub fn admits(&self, database: &str) -> bool {
        self.database.as_deref().is_none_or(|own| own == database)
    }

    /// Whether the client belongs to the tenant with this database.
    pub fn belongs_to(&self, database: &str) -> bool {
        self.database.as_deref() == Some(database)
    }
}

/// How a client authenticates (RFC 6749, section 2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// A public client, which cannot keep a secret and has none.
    Public,
    /// A confidential client. After a rotation the previous secret works for another day.
    Confidential {
        /// The current secret.
        current: SecretHash,
        /// The secret before the last rotation.
        previous: Option<ExpiringSecret>,
    },
}

impl ClientAuthentication {
    /// Whether one of `secrets` is valid at `now`. A public client needs none.
    pub(crate) fn accepts<'a>(
        &self,
        secrets: impl Iterator<Item = &'a Secret>,
        now: Timestamp,
    ) -> bool {
        let Self::Confidential { current, previous } = self else {
            return true;
        };
        let previous = previous
            .as_ref()
            .filter(|previous| now < previous.expires_at);
        // Compare each secret with both, so that the time does not reveal which one matched.
        secrets.map(SecretHash::of).fold(false, |accepted, shown| {
            let old = previous.is_some_and(|previous| previous.hash.matches(&shown));
            accepted | current.matches(&shown) | old
        })
    }
}

/// A secret with an expiry time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiringSecret {
    /// The secret's hash.
    pub hash: SecretHash,
    /// When it expires.
    pub expires_at: Timestamp,
}

/// The kinds of grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GrantKind {
    /// A user name and a password (RFC 6749, section 4.3).
    Password,
    /// A refresh token (RFC 6749, section 6).
    RefreshToken,
    /// An authorization code (RFC 6749, section 4.1), with PKCE (RFC 7636).
    AuthorizationCode,
    /// A device code (RFC 8628).
    DeviceCode,
    /// A token of the tenant's default user, without credentials of a user.
    Guest,
    /// An owner acts as a user of its tenant. It opens sessions, and is not a grant of the token
    /// endpoint.
    Impersonation,
}

impl GrantKind {
    /// All kinds that a client may use.
    pub const ALL: [Self; 5] = [
        Self::Password,
        Self::RefreshToken,
        Self::AuthorizationCode,
        Self::DeviceCode,
        Self::Guest,
    ];

    /// The standard name of the device grant (RFC 8628, section 3.4).
    pub const DEVICE_URN: &str = "urn:ietf:params:oauth:grant-type:device_code";

    /// The name on the wire and in a store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::RefreshToken => "refresh_token",
            Self::AuthorizationCode => "authorization_code",
            Self::DeviceCode => "device_code",
            Self::Guest => "guest",
            Self::Impersonation => "impersonation",
        }
    }

    /// The kind that opened a session, by its name in a store.
    pub fn of_session(name: &str) -> Option<Self> {
        if name == Self::Impersonation.name() {
            return Some(Self::Impersonation);
        }
        Self::from_name(name)
    }

    /// The kind that a client may use, by its name; the device grant has two names.
    pub fn from_name(name: &str) -> Option<Self> {
        if name == Self::DEVICE_URN {
            return Some(Self::DeviceCode);
        }
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The grants that a client may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrantSet {
    /// All grants, including those that later versions add.
    All,
    /// Only these.
    Only(Vec<GrantKind>),
}

impl GrantSet {
    /// Whether `kind` is allowed.
    pub fn allows(&self, kind: GrantKind) -> bool {
        match self {
            Self::All => true,
            Self::Only(kinds) => kinds.contains(&kind),
        }
    }
}
