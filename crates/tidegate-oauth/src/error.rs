//! Errors, their codes on the wire, and their kinds.

mod code;
mod description;
mod token_error;

use std::time::Duration;

use tidegate_identity::{Error as IdentityError, RoleError, StoreError};

pub use code::ErrorKind;
pub use token_error::TokenError;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// All errors of this crate. Exhaustive, so that the server must handle each new one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A required parameter is absent or empty.
    #[error("the parameter {0} is missing")]
    MissingParameter(&'static str),
    /// A parameter is given more than once (RFC 6749, section 3.2). The name has letters, digits
    /// and `_-.` only; any other name is replaced by a description.
    #[error("the parameter {0} is given more than once")]
    DuplicateParameter(String),
    /// A member of a JSON body that must be a string is not.
    #[error("the parameter {0} is not a string")]
    ParameterNotText(&'static str),
    /// Client credentials in both the header and the body, or two different ids (RFC 6749, section
    /// 2.3).
    #[error("client credentials are given twice")]
    TwoCredentials,
    /// An unknown grant type.
    #[error("unknown grant type")]
    UnsupportedGrantType,
    /// A response type other than `code` (RFC 6749, section 3.1.1).
    #[error("unknown response type")]
    UnsupportedResponseType,
    /// The redirect URI is not registered for the client.
    #[error("the redirect address is not registered")]
    UnregisteredRedirect,
    /// The authorization code is unknown, used, expired, or was issued for another client, redirect
    /// URI or challenge. The answer does not say which.
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
    /// No device waits with this user code.
    #[error("unknown user code")]
    UnknownUserCode,
    /// This client requires a second factor, which the grant cannot carry.
    #[error("the client requires a second factor")]
    SecondFactorNeeded,
    /// This user has a second factor, which the grant cannot carry.
    #[error("the user has a second factor")]
    SecondFactorMissing,
    /// This client does not allow sign-up.
    #[error("sign-up is not allowed through this client")]
    SignUpClosed,
    /// The client may not use this grant.
    #[error("the grant is not enabled for the client")]
    GrantNotAllowed,
    /// The client belongs to another tenant.
    #[error("the client belongs to another database")]
    ForeignDatabase,
    /// The token to revoke was issued to another client (RFC 7009, section 2.1).
    #[error("the token belongs to another client")]
    ForeignToken,
    /// No such client.
    #[error("unknown client")]
    UnknownClient,
    /// No such client, at the guest endpoint, which reports it with another code.
    #[error("unknown client")]
    UnknownGuestClient,
    /// The secret of a confidential client is wrong or missing, or a public client asks for
    /// something that requires a secret.
    #[error("client authentication failed")]
    ClientNotAuthenticated,
    /// The refresh token is forged, expired, revoked, superseded, or was issued to another client.
    #[error("invalid refresh token")]
    InvalidRefreshToken,
    /// The database does not exist or has no default user.
    #[error("no default user")]
    NoDefaultUser,
    /// An invalid bearer token (RFC 6750, section 3.1).
    #[error("invalid token, {0}")]
    InvalidToken(TokenError),
    /// A user may not act as another one; the reason.
    #[error("{0}")]
    ImpersonationRefused(&'static str),
    /// The store belongs to another master key.
    #[error("the store belongs to another master key")]
    WrongMasterKey,
    /// The next key has not been published for long enough.
    #[error("the next key has not been published for long enough")]
    KeyTooYoung {
        /// How much longer to wait.
        wait: Duration,
    },
    /// The user could not be authenticated or managed, or a port failed.
    #[error(transparent)]
    Identity(#[from] IdentityError),
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::Identity(error.into())
    }
}

/// When to retry after an outage.
const OUTAGE_RETRY: Duration = Duration::from_secs(1);

impl Error {
    /// When to retry, in whole seconds rounded up, at least one; for [`ErrorKind::Throttled`] and
    /// [`ErrorKind::Unavailable`].
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
