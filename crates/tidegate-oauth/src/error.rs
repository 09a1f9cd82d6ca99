//! Errors, their codes in responses, and their kinds.

mod code;
mod description;
mod token_error;

use std::time::Duration;

use tidegate_identity::{Error as IdentityError, RoleError, StoreError};

pub use code::ErrorKind;
pub use token_error::TokenError;

/// A result with the error of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// All errors of this crate. The enum is exhaustive, so the server must handle each new variant.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A required parameter is absent or empty.
    #[error("the parameter {0} is missing")]
    MissingParameter(&'static str),
    /// A parameter is given more than once (RFC 6749, section 3.2). The name has letters, digits
    /// and `_-.` only; any other name is replaced by a description.
    #[error("the parameter {0} is given more than once")]
    DuplicateParameter(String),
    /// A member of a JSON body that must be a string has another type.
    #[error("the parameter {0} is not a string")]
    ParameterNotText(&'static str),
    /// Client credentials in both the header and the body, or two different ids (RFC 6749, section
    /// 2.3).
    #[error("client credentials are given twice")]
    TwoCredentials,
    /// An unknown grant type.
    #[error("unknown grant type")]
    UnsupportedGrantType,
    /// An unknown scope, or a scope that was not granted (RFC 6749, sections 3.3 and 6).
    #[error("invalid scope")]
    InvalidScope,
    /// A resource other than this service (RFC 8707, section 2).
    #[error("unknown resource")]
    InvalidTarget,
    /// The client is public or names no service user, so it has no grant `client_credentials`.
    #[error("the client has no service user")]
    NoServiceUser,
    /// The service user of the client is disabled, so the client has no grant `client_credentials`.
    #[error("the service user of the client is disabled")]
    ServiceUserDisabled,
    /// The caller may not create personal access tokens; the text is the reason.
    #[error("{0}")]
    PersonalTokenRefused(&'static str),
    /// The user has the maximum number of personal access tokens.
    #[error("too many personal access tokens")]
    TooManyPersonalTokens,
    /// A parameter of OpenID Connect that the authorization endpoint does not support: `request`,
    /// `request_uri` or `registration` (Core 1.0, section 3.1.2.6).
    #[error("the parameter {0} is not supported")]
    UnsupportedParameter(&'static str),
    /// The request has `prompt=none`, so no page may be shown, but the person must sign in.
    #[error("the person must sign in")]
    LoginRequired,
    /// The request has `prompt=none`, so no page may be shown, but consent is needed.
    #[error("the person must be asked for consent")]
    ConsentRequired,
    /// The request has `prompt=none`, so no page may be shown, but a second factor is needed.
    #[error("the person must use a page")]
    InteractionRequired,
    /// A response type other than `code` (RFC 6749, section 3.1.1).
    #[error("unknown response type")]
    UnsupportedResponseType,
    /// The redirect URI is not registered for the client.
    #[error("the redirect address is not registered")]
    UnregisteredRedirect,
    /// The authorization code is unknown, used or expired, or was issued for another client,
    /// redirect URI or challenge. The response does not distinguish these cases.
    #[error("invalid authorization code")]
    InvalidCode,
    /// The person has not decided about the device yet.
    #[error("authorization pending")]
    AuthorizationPending,
    /// The person has not decided yet, and the device polls too often.
    #[error("authorization pending, and the device polls too often")]
    SlowDown,
    /// The person denied the request.
    #[error("the request was denied")]
    AccessDenied,
    /// The device code has expired.
    #[error("expired device code")]
    ExpiredDeviceCode,
    /// The device code is unknown, used, or was issued to another client.
    #[error("invalid device code")]
    InvalidDeviceCode,
    /// No device waits for approval with this user code.
    #[error("unknown user code")]
    UnknownUserCode,
    /// This client requires a second factor, but requests of this grant have no parameter for the
    /// code.
    #[error("the client requires a second factor")]
    SecondFactorNeeded,
    /// This user has a second factor, but requests of this grant have no parameter for the code.
    #[error("the user has a second factor")]
    SecondFactorMissing,
    /// This client does not allow sign-up.
    #[error("sign-up is not allowed through this client")]
    SignUpClosed,
    /// The client may not use this grant.
    #[error("the grant is not enabled for the client")]
    GrantNotAllowed,
    /// The user, or the database that the request names, belongs to a tenant other than the
    /// client's.
    #[error("the client belongs to another database")]
    ForeignDatabase,
    /// The token to revoke was issued to another client (RFC 7009, section 2.1).
    #[error("the token belongs to another client")]
    ForeignToken,
    /// There is no client with this id.
    #[error("unknown client")]
    UnknownClient,
    /// A request to the guest endpoint names an unknown client. The guest endpoint has a separate
    /// error code for this case.
    #[error("unknown client")]
    UnknownGuestClient,
    /// The secret of a confidential client is wrong or missing.
    #[error("client authentication failed")]
    ClientNotAuthenticated,
    /// A public client requests something that requires a secret.
    #[error("the client is public")]
    PublicClient,
    /// The refresh token is forged, expired, revoked, issued to another client, or presented after
    /// a later token of its session.
    #[error("invalid refresh token")]
    InvalidRefreshToken,
    /// The database does not exist or has no default user.
    #[error("no default user")]
    NoDefaultUser,
    /// An invalid bearer token (RFC 6750, section 3.1).
    #[error("invalid token, {0}")]
    InvalidToken(TokenError),
    /// The caller may not act as another user; the text is the reason.
    #[error("{0}")]
    ImpersonationRefused(&'static str),
    /// The data in the store was encrypted with another master key.
    #[error("the store belongs to another master key")]
    WrongMasterKey,
    /// The next signing key cannot become active yet, because it was published too recently.
    #[error("the next key has not been published for long enough")]
    KeyTooYoung {
        /// How long to wait until the key can become active.
        wait: Duration,
    },
    /// An error of `tidegate-identity` or of a port, such as a wrong password or an unavailable
    /// store.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Identity(error.into())
    }
}

/// The time that `Retry-After` reports while a dependency is unavailable.
const OUTAGE_RETRY: Duration = Duration::from_secs(1);

impl Error {
    /// The seconds until a retry makes sense, rounded up, at least one. `None` unless the kind is
    /// [`ErrorKind::Throttled`] or [`ErrorKind::Unavailable`].
    pub fn retry_after(&self) -> Option<u64> {
        let Self::Identity(error) = self else {
            return None;
        };
        let wait = match error {
            IdentityError::TooManyAttempts { retry_after }
            | IdentityError::Busy { retry_after } => *retry_after,
            IdentityError::Outbound(_)
            | IdentityError::Role(RoleError::Unavailable(_))
            | IdentityError::Store(StoreError::Unavailable(_)) => OUTAGE_RETRY,
            _ => return None,
        };
        let started = u64::from(wait.subsec_nanos() > 0);
        Some(wait.as_secs().saturating_add(started).max(1))
    }
}
