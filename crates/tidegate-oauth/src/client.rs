//! Client records (RFC 6749, section 2).

use tidegate_identity::{Secret, SecretHash, SignUpUser, Timestamp};

/// A registered OAuth client. It belongs to one tenant, unless it is built in.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the flags of the wire"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The `client_id`, unique over all tenants.
    pub id: String,
    /// The database of the client's tenant. `None` for a built-in client, which belongs to no
    /// tenant: users of all tenants sign in through it.
    pub database: Option<String>,
    /// The name shown to users.
    pub name: String,
    /// The registered redirect URIs; compared byte by byte.
    pub redirect_uris: Vec<String>,
    /// The application's home page.
    pub homepage: Option<String>,
    /// A description of the application.
    pub description: Option<String>,
    /// Whether the client is public or confidential, with the secrets of a confidential client.
    pub authentication: ClientAuthentication,
    /// Whether users are asked for consent before the client gets a code.
    pub confirm: bool,
    /// Whether signing in through this client requires a second factor.
    pub two_factor: bool,
    /// Whether users may sign up through this client.
    pub allow_signup: bool,
    /// Whether users may sign up through this client with an identity provider.
    pub social_signup: bool,
    /// The kind and the group of the users who sign up through this client.
    pub signup: SignUpUser,
    /// The grants that the client may use.
    pub grants: GrantSet,
    /// A user of the client's tenant. With the grant `client_credentials`, a confidential client
    /// acts as this user.
    pub service_user: Option<String>,
    /// When the client was registered.
    pub created_at: Timestamp,
}

impl Client {
    /// Whether users of `database` may sign in through the client.
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
    /// A public client. It has no secret, because it could not keep a secret confidential.
    Public,
    /// A confidential client. After a rotation the previous secret works for another day.
    Confidential {
        /// The current secret.
        current: SecretHash,
        /// The secret before the most recent rotation; `None` if the secret was never rotated.
        previous: Option<ExpiringSecret>,
    },
}

impl ClientAuthentication {
    /// Whether one of `secrets` is valid at `now`. Always `true` for a public client, which needs
    /// no secret.
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
        // Each secret is compared with both stored secrets, so that the duration does not reveal
        // which stored secret matched.
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
    /// When the secret expires.
    pub expires_at: Timestamp,
}

/// A grant: the way in which a client gets a token and opens a session.
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
    /// The client's own credentials (RFC 6749, section 4.4). The client acts as its
    /// [`service_user`](Client::service_user).
    ClientCredentials,
    /// A personal access token. It is a session of its own, and not a grant of the token endpoint.
    PersonalToken,
    /// An owner acts as a user of its tenant. Impersonation opens sessions, but is not a grant of
    /// the token endpoint.
    Impersonation,
}

impl GrantKind {
    /// All kinds that a client may use.
    pub const ALL: [Self; 6] = [
        Self::Password,
        Self::RefreshToken,
        Self::AuthorizationCode,
        Self::DeviceCode,
        Self::Guest,
        Self::ClientCredentials,
    ];

    /// The standard name of the device grant (RFC 8628, section 3.4).
    pub const DEVICE_URN: &str = "urn:ietf:params:oauth:grant-type:device_code";

    /// The name of the grant in requests and in a store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::RefreshToken => "refresh_token",
            Self::AuthorizationCode => "authorization_code",
            Self::DeviceCode => "device_code",
            Self::Guest => "guest",
            Self::ClientCredentials => "client_credentials",
            Self::PersonalToken => "personal_token",
            Self::Impersonation => "impersonation",
        }
    }

    /// The grant that opened a session, by the grant's name in a store.
    pub fn of_session(name: &str) -> Option<Self> {
        let others = [Self::Impersonation, Self::PersonalToken];
        let other = others.into_iter().find(|kind| kind.name() == name);
        other.or_else(|| Self::from_name(name))
    }

    /// The grant with this name, among those that a client may use. The device grant has two names.
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
    /// Only the listed grants.
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
