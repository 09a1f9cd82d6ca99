//! Errors, their codes on the wire, and their kinds.

mod description;
mod store_error;
mod token_error;

use std::time::Duration;

use crate::{OutboundError, RoleError};

pub use store_error::StoreError;
pub use token_error::TokenError;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// All errors of this crate. Exhaustive, so that the server must handle each new one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A malformed body or header.
    #[error("malformed {part}, expected {expected}")]
    Malformed {
        /// Which part.
        part: &'static str,
        /// What was expected.
        expected: &'static str,
    },
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
    /// The second-factor code is wrong or was used already.
    #[error("wrong second-factor code")]
    WrongSecondFactor,
    /// This client does not allow sign-up.
    #[error("sign-up is not allowed through this client")]
    SignUpClosed,
    /// The action requires a recent sign-in.
    #[error("a recent sign-in is required")]
    ReauthenticationRequired,
    /// The user's only credential cannot be removed.
    #[error("the only credential cannot be removed")]
    LastCredential,
    /// The email link or login state is forged, expired or used.
    #[error("invalid link")]
    InvalidLink,
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
    /// The user does not exist or the password is wrong. The answer does not say which.
    #[error("wrong user name or password")]
    WrongCredentials,
    /// The refresh token is forged, expired, revoked, superseded, or was issued to another client.
    #[error("invalid refresh token")]
    InvalidRefreshToken,
    /// The database does not exist or has no default user.
    #[error("no default user")]
    NoDefaultUser,
    /// Too many attempts.
    #[error("too many attempts")]
    TooManyAttempts {
        /// When to retry.
        retry_after: Duration,
    },
    /// All hashing threads are busy and their queue is full.
    #[error("the password hashing queue is full")]
    Busy {
        /// When to retry.
        retry_after: Duration,
    },
    /// An invalid bearer token (RFC 6750, section 3.1).
    #[error("invalid token, {0}")]
    InvalidToken(TokenError),
    /// A member of a record has an invalid value.
    #[error("invalid {member}, expected {expected}")]
    InvalidMember {
        /// Its name.
        member: &'static str,
        /// What is allowed.
        expected: &'static str,
    },
    /// The name of a new user or client is taken.
    #[error("the {0} already exists")]
    Taken(&'static str),
    /// The tenant has a default user already.
    #[error("the tenant has another default user")]
    DefaultUserTaken,
    /// A user may not act as another one; the reason.
    #[error("{0}")]
    ImpersonationRefused(&'static str),
    /// No such user or client.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// The store belongs to another master key.
    #[error("the store belongs to another master key")]
    WrongMasterKey,
    /// A stored key cannot be decrypted or is malformed.
    #[error("a stored signing key is damaged")]
    DamagedKey,
    /// The next key has not been published for long enough.
    #[error("the next key has not been published for long enough")]
    KeyTooYoung {
        /// How much longer to wait.
        wait: Duration,
    },
    /// The random source failed.
    #[error("the random source failed")]
    NoRandomness,
    /// The hashing threads have ended, or a hash cannot be computed.
    #[error("the password hasher failed")]
    HasherFailed,
    /// An external service failed.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    /// A PostgreSQL role could not be changed.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The kind of an error, which determines the response status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is invalid.
    InvalidRequest,
    /// The client is unknown or not authenticated.
    Client,
    /// The bearer token is not valid.
    Token,
    /// The named object does not exist.
    NotFound,
    /// The request conflicts with existing objects.
    Conflict,
    /// Too many requests; see [`Error::retry_after`].
    Throttled,
    /// A dependency is unavailable; see [`Error::retry_after`].
    Unavailable,
    /// An internal error.
    Internal,
}

const STORE_RETRY: Duration = Duration::from_secs(1);

impl Error {
    /// The error code on the wire: names of RFC 6749 (section 5.2) and RFC 6750 for the OAuth
    /// endpoints and bearer tokens, upper snake case for the management API.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed { .. }
            | Self::MissingParameter(_)
            | Self::DuplicateParameter(_)
            | Self::ParameterNotText(_)
            | Self::TwoCredentials
            | Self::UnregisteredRedirect
            | Self::UnknownUserCode => "invalid_request",
            Self::UnsupportedGrantType => "unsupported_grant_type",
            Self::UnsupportedResponseType => "unsupported_response_type",
            Self::AuthorizationPending => "authorization_pending",
            Self::SlowDown => "slow_down",
            Self::AccessDenied
            | Self::SignUpClosed
            | Self::InvalidLink
            | Self::ImpersonationRefused(_)
            | Self::ReauthenticationRequired => "access_denied",
            Self::ExpiredDeviceCode => "expired_token",
            Self::GrantNotAllowed
            | Self::ForeignDatabase
            | Self::ForeignToken
            | Self::SecondFactorNeeded => "unauthorized_client",
            Self::UnknownClient | Self::ClientNotAuthenticated => "invalid_client",
            Self::UnknownGuestClient
            | Self::WrongCredentials
            | Self::SecondFactorMissing
            | Self::WrongSecondFactor
            | Self::InvalidCode
            | Self::InvalidDeviceCode
            | Self::InvalidRefreshToken => "invalid_grant",
            Self::NoDefaultUser => "NO_DEFAULT_USER_FOUND",
            Self::InvalidToken(_) => "invalid_token",
            Self::InvalidMember { .. } => "INPUT_VALIDATION_ERROR",
            Self::Taken(_) | Self::DefaultUserTaken | Self::Role(RoleError::Taken(_)) => {
                "ALREADY_EXISTS"
            }
            Self::LastCredential
            | Self::Role(
                RoleError::OwnsObjects { .. }
                | RoleError::CarriesRights(_)
                | RoleError::UsedElsewhere(_)
                | RoleError::StillUsed(_),
            ) => "CONFLICT",
            Self::KeyTooYoung { .. } => "KEY_TOO_YOUNG",
            Self::NotFound(_) => "NOT_FOUND",
            Self::TooManyAttempts { .. }
            | Self::Busy { .. }
            | Self::Outbound(_)
            | Self::Role(RoleError::Unavailable(_))
            | Self::Store(StoreError::Unavailable(_)) => "temporarily_unavailable",
            Self::WrongMasterKey
            | Self::DamagedKey
            | Self::NoRandomness
            | Self::HasherFailed
            | Self::Role(RoleError::Failed(_))
            | Self::Store(StoreError::Failed(_)) => "server_error",
        }
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Malformed { .. }
            | Self::MissingParameter(_)
            | Self::DuplicateParameter(_)
            | Self::ParameterNotText(_)
            | Self::TwoCredentials
            | Self::UnsupportedGrantType
            | Self::GrantNotAllowed
            | Self::ForeignDatabase
            | Self::ForeignToken
            | Self::WrongCredentials
            | Self::InvalidRefreshToken
            | Self::UnsupportedResponseType
            | Self::UnregisteredRedirect
            | Self::InvalidCode
            | Self::AuthorizationPending
            | Self::SlowDown
            | Self::AccessDenied
            | Self::ExpiredDeviceCode
            | Self::InvalidDeviceCode
            | Self::UnknownUserCode
            | Self::SecondFactorNeeded
            | Self::SecondFactorMissing
            | Self::WrongSecondFactor
            | Self::SignUpClosed
            | Self::InvalidLink
            | Self::ImpersonationRefused(_)
            | Self::ReauthenticationRequired
            | Self::InvalidMember { .. } => ErrorKind::InvalidRequest,
            Self::UnknownClient | Self::UnknownGuestClient | Self::ClientNotAuthenticated => {
                ErrorKind::Client
            }
            Self::InvalidToken(_) => ErrorKind::Token,
            Self::NoDefaultUser | Self::NotFound(_) => ErrorKind::NotFound,
            Self::Taken(_)
            | Self::DefaultUserTaken
            | Self::LastCredential
            | Self::Role(
                RoleError::Taken(_)
                | RoleError::OwnsObjects { .. }
                | RoleError::CarriesRights(_)
                | RoleError::UsedElsewhere(_)
                | RoleError::StillUsed(_),
            )
            | Self::KeyTooYoung { .. } => ErrorKind::Conflict,
            Self::TooManyAttempts { .. } | Self::Busy { .. } => ErrorKind::Throttled,
            Self::Outbound(_)
            | Self::Role(RoleError::Unavailable(_))
            | Self::Store(StoreError::Unavailable(_)) => ErrorKind::Unavailable,
            Self::WrongMasterKey
            | Self::DamagedKey
            | Self::NoRandomness
            | Self::HasherFailed
            | Self::Role(RoleError::Failed(_))
            | Self::Store(StoreError::Failed(_)) => ErrorKind::Internal,
        }
    }

    /// When to retry, in whole seconds rounded up, at least one; for [`ErrorKind::Throttled`] and
    /// [`ErrorKind::Unavailable`].
    pub fn retry_after(&self) -> Option<u64> {
        let wait = match self {
            Self::TooManyAttempts { retry_after } | Self::Busy { retry_after } => *retry_after,
            Self::Outbound(_)
            | Self::Role(RoleError::Unavailable(_))
            | Self::Store(StoreError::Unavailable(_)) => STORE_RETRY,
            _ => return None,
        };
        let started = u64::from(wait.subsec_nanos() > 0);
        Some(wait.as_secs().saturating_add(started).max(1))
    }
}
