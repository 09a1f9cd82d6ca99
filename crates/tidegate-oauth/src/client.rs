//! Client records (RFC 6749, section 2): which applications may ask for tokens, and how.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest;
use subtle::ConstantTimeEq as _;

use crate::{Secret, Timestamp};

/// A registered application. It belongs to one tenant; its id is unique over all tenants.
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are the flags of the wire"
)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// The `client_id`, unique over all tenants.
    pub id: String,
    /// The tenant's database that the client belongs to.
    pub database: String,
    /// The name that people see.
    pub name: String,
    /// Where the browser may be sent back to; compared byte by byte.
    pub redirect_uris: Vec<String>,
    /// The application's own page.
    pub homepage: Option<String>,
    /// What the application is.
    pub description: Option<String>,
    /// Public, or confidential with its secrets.
    pub authentication: ClientAuthentication,
    /// Whether a person is asked to consent.
    pub confirm: bool,
    /// Whether signing in through this client needs a second factor.
    pub two_factor: bool,
    /// Whether people may sign up through this client.
    pub allow_signup: bool,
    /// Whether people may sign up through this client with an account elsewhere.
    pub social_signup: bool,
    /// The grants that the client may use.
    pub grants: GrantSet,
    /// When it was registered.
    pub created_at: Timestamp,
}

/// How a client proves that it is itself (RFC 6749, section 2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientAuthentication {
    /// It cannot keep a secret, so it has none.
    Public,
    /// It has a secret, and for a day after a rotation the one before it too.
    Confidential {
        /// The secret in use.
        current: SecretHash,
        /// The secret that was in use before the last rotation.
        previous: Option<ExpiringSecret>,
    },
}

impl ClientAuthentication {
    /// Whether one of `secrets` works at `now`. A public client needs none.
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
        // Each is compared with both, so that the time tells nothing about which one fits.
        secrets.map(SecretHash::of).fold(false, |accepted, shown| {
            let old = previous.is_some_and(|previous| previous.hash.is(&shown));
            accepted | current.is(&shown) | old
        })
    }
}

/// A secret that works for a while only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpiringSecret {
    /// The secret.
    pub hash: SecretHash,
    /// The first moment at which it works no more.
    pub expires_at: Timestamp,
}

/// The SHA-256 of a secret that we made: a client's, a code, a browser's cookie. It has 80 bits at
/// least, most have 256, so no slow hash is needed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SecretHash([u8; 32]);

impl SecretHash {
    /// The hash of a secret.
    pub(crate) fn of(secret: &Secret) -> Self {
        let hash = digest::digest(&digest::SHA256, secret.expose().as_bytes());
        Self(hash.as_ref().try_into().expect("SHA-256 gives 32 bytes"))
    }

    /// Whether both are of one secret; takes the same time whatever the answer.
    fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }

    /// The hash that a store has kept.
    pub const fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes to keep.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The hash as a name for what the secret opens; tells nothing about the secret.
    pub fn to_base64url(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0)
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash([redacted])")
    }
}

/// A kind of grant, by its name on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GrantKind {
    /// A user name and a password (RFC 6749, section 4.3).
    Password,
    /// A refresh token (RFC 6749, section 6).
    RefreshToken,
    /// A code that a browser brought back (RFC 6749, section 4.1), with PKCE (RFC 7636).
    AuthorizationCode,
    /// A code that a person allowed elsewhere (RFC 8628).
    DeviceCode,
    /// A token for the tenant's default user, for nobody in particular.
    Guest,
}

impl GrantKind {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Password,
        Self::RefreshToken,
        Self::AuthorizationCode,
        Self::DeviceCode,
        Self::Guest,
    ];

    /// The other name of the device grant (RFC 8628, section 3.4).
    pub const DEVICE_URN: &str = "urn:ietf:params:oauth:grant-type:device_code";

    /// The name on the wire and in a store.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::RefreshToken => "refresh_token",
            Self::AuthorizationCode => "authorization_code",
            Self::DeviceCode => "device_code",
            Self::Guest => "guest",
        }
    }

    /// The kind with this name, either of the two for the device grant.
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
    /// Every grant that there is, also those that a later version adds.
    All,
    /// These only.
    Only(Vec<GrantKind>),
}

impl GrantSet {
    /// Whether `kind` is one of them.
    pub fn allows(&self, kind: GrantKind) -> bool {
        match self {
            Self::All => true,
            Self::Only(kinds) => kinds.contains(&kind),
        }
    }
}
