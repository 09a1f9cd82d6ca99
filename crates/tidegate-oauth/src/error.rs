//! What can go wrong, in the words of the wire, and whose fault it is.

mod description;
mod token_fault;

use std::time::Duration;

use crate::{OutboundError, RoleError, StoreError};

pub use token_fault::TokenFault;

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Every way to fail. Exhaustive, so that a new one is a decision at the edge too.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A body or header that does not have its form.
    #[error("malformed {part}, expected {expected}")]
    Malformed {
        /// What it is.
        part: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A required parameter is absent or empty.
    #[error("the parameter {0} is missing")]
    MissingParameter(&'static str),
    /// A parameter stands there twice (RFC 6749, section 3.2); its name, made of letters, digits and
    /// `_-.`, or what it is called instead.
    #[error("the parameter {0} is given more than once")]
    DuplicateParameter(String),
    /// A member of a JSON body that must be a string is something else.
    #[error("the parameter {0} is not a string")]
    ParameterNotText(&'static str),
    /// Client credentials by Basic and in the body, or two different ids (RFC 6749, section 2.3).
    #[error("client credentials are given twice")]
    TwoCredentials,
    /// A grant that there is not.
    #[error("unknown grant type")]
    UnsupportedGrantType,
    /// Another way to answer than by a code (RFC 6749, section 3.1.1).
    #[error("unknown response type")]
    UnsupportedResponseType,
    /// The address to return to is none of the client's.
    #[error("the redirect address is not registered")]
    UnregisteredRedirect,
    /// The code is no code of ours, used, expired, another client's or for another address, or the
    /// verifier is not the one of its challenge; nobody can tell which.
    #[error("dead authorization code")]
    DeadCode,
    /// Nobody has decided about the device yet.
    #[error("nobody has decided yet")]
    AuthorizationPending,
    /// Nobody has decided yet, and the device asks too often.
    #[error("nobody has decided yet, and the device asks too often")]
    SlowDown,
    /// A person said no.
    #[error("the request was denied")]
    AccessDenied,
    /// The device code's time is over.
    #[error("expired device code")]
    ExpiredDeviceCode,
    /// The device code is no code of ours, used up or another client's.
    #[error("dead device code")]
    DeadDeviceCode,
    /// No device waits with this user code.
    #[error("unknown user code")]
    UnknownUserCode,
    /// A password alone is not enough for this client.
    #[error("a second factor is needed")]
    SecondFactorNeeded,
    /// A password alone is not enough for this user, who has a second factor.
    #[error("the user has a second factor")]
    SecondFactorMissing,
    /// The code of the second factor is wrong or was used.
    #[error("wrong code of the second factor")]
    WrongSecondFactor,
    /// Nobody may make an account through this client.
    #[error("no sign-up through this client")]
    SignUpClosed,
    /// The person signed in too long ago for what is asked.
    #[error("the sign-in is too old")]
    StaleSignIn,
    /// Nobody could sign in as the user any more.
    #[error("the last way to sign in")]
    LastWayIn,
    /// The link of a letter is none of ours, too old, or was used.
    #[error("dead link")]
    DeadLink,
    /// The client may not use this grant.
    #[error("the grant is not enabled for the client")]
    GrantNotAllowed,
    /// The client belongs to another tenant.
    #[error("the client belongs to another database")]
    ForeignDatabase,
    /// The token to revoke was given to another client (RFC 7009, section 2.1).
    #[error("the token belongs to another client")]
    ForeignToken,
    /// No such client.
    #[error("unknown client")]
    UnknownClient,
    /// No such client, at the guest endpoint, which has its own word for it.
    #[error("unknown client of a guest")]
    UnknownGuestClient,
    /// The secret of a confidential client is wrong or missing, or a public client asks for what
    /// needs a secret.
    #[error("the client did not prove itself")]
    ClientNotAuthenticated,
    /// The user does not exist or the password is wrong; nobody can tell which.
    #[error("wrong user name or password")]
    WrongCredentials,
    /// The refresh token is no token of ours, expired, revoked, used up or another client's.
    #[error("dead refresh token")]
    DeadRefreshToken,
    /// The database does not exist or has no default user.
    #[error("no default user")]
    NoDefaultUser,
    /// Too many attempts.
    #[error("too many attempts")]
    TooManyAttempts {
        /// When to come again.
        retry_after: Duration,
    },
    /// All hashers are busy and the queue before them is full.
    #[error("too many passwords to hash")]
    Busy {
        /// When to come again.
        retry_after: Duration,
    },
    /// A bearer token that is not accepted (RFC 6750, section 3.1).
    #[error("invalid token, {0}")]
    InvalidToken(TokenFault),
    /// A member of a record has no allowed value.
    #[error("invalid {member}, expected {expected}")]
    InvalidMember {
        /// Its name.
        member: &'static str,
        /// What is allowed.
        expected: &'static str,
    },
    /// The name of a new user or client is taken.
    #[error("the {0} exists already")]
    Taken(&'static str),
    /// The tenant has a default user already.
    #[error("another user is the default user")]
    DefaultUserTaken,
    /// No such user or client.
    #[error("there is no such {0}")]
    NotFound(&'static str),
    /// The store was made with another master key.
    #[error("the master key is not the one that this installation was made with")]
    WrongMasterKey,
    /// A sealed key cannot be opened or is no key.
    #[error("a stored signing key is damaged")]
    DamagedKey,
    /// The next key has not been published for long enough.
    #[error("the next key is too young to sign")]
    KeyTooYoung {
        /// How much longer it needs.
        wait: Duration,
    },
    /// The random source failed.
    #[error("no randomness")]
    NoRandomness,
    /// The pool of hashers is gone or a hash cannot be computed.
    #[error("the password hasher failed")]
    HasherFailed,
    /// A service outside failed.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    /// The PostgreSQL role of a user is not as it should be.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The store did.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whose fault an error is, and so how the edge answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is wrong as it stands.
    Request,
    /// The client did not say, or not prove, who it is.
    Client,
    /// The bearer token is not accepted.
    Token,
    /// What it names is not there.
    Missing,
    /// It clashes with what is there.
    Conflict,
    /// Too much at once; see [`Error::retry_after`].
    Throttled,
    /// The store is away; see [`Error::retry_after`].
    Unavailable,
    /// Ours.
    Internal,
}

const STORE_RETRY: Duration = Duration::from_secs(1);

impl Error {
    /// The name on the wire: RFC 6749 (section 5.2) and RFC 6750 names for what the OAuth endpoints
    /// and bearers meet, upper-snake names for the rest.
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
            Self::AccessDenied | Self::SignUpClosed | Self::DeadLink | Self::StaleSignIn => {
                "access_denied"
            }
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
            | Self::DeadCode
            | Self::DeadDeviceCode
            | Self::DeadRefreshToken => "invalid_grant",
            Self::NoDefaultUser => "NO_DEFAULT_USER_FOUND",
            Self::InvalidToken(_) => "invalid_token",
            Self::InvalidMember { .. } => "INPUT_VALIDATION_ERROR",
            Self::Taken(_) | Self::DefaultUserTaken | Self::Role(RoleError::Taken(_)) => {
                "ALREADY_EXISTS"
            }
            Self::LastWayIn
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

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
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
            | Self::DeadRefreshToken
            | Self::UnsupportedResponseType
            | Self::UnregisteredRedirect
            | Self::DeadCode
            | Self::AuthorizationPending
            | Self::SlowDown
            | Self::AccessDenied
            | Self::ExpiredDeviceCode
            | Self::DeadDeviceCode
            | Self::UnknownUserCode
            | Self::SecondFactorNeeded
            | Self::SecondFactorMissing
            | Self::WrongSecondFactor
            | Self::SignUpClosed
            | Self::DeadLink
            | Self::StaleSignIn
            | Self::InvalidMember { .. } => Fault::Request,
            Self::UnknownClient | Self::UnknownGuestClient | Self::ClientNotAuthenticated => {
                Fault::Client
            }
            Self::InvalidToken(_) => Fault::Token,
            Self::NoDefaultUser | Self::NotFound(_) => Fault::Missing,
            Self::Taken(_)
            | Self::DefaultUserTaken
            | Self::LastWayIn
            | Self::Role(
                RoleError::Taken(_)
                | RoleError::OwnsObjects { .. }
                | RoleError::CarriesRights(_)
                | RoleError::UsedElsewhere(_)
                | RoleError::StillUsed(_),
            )
            | Self::KeyTooYoung { .. } => Fault::Conflict,
            Self::TooManyAttempts { .. } | Self::Busy { .. } => Fault::Throttled,
            Self::Outbound(_)
            | Self::Role(RoleError::Unavailable(_))
            | Self::Store(StoreError::Unavailable(_)) => Fault::Unavailable,
            Self::WrongMasterKey
            | Self::DamagedKey
            | Self::NoRandomness
            | Self::HasherFailed
            | Self::Role(RoleError::Failed(_))
            | Self::Store(StoreError::Failed(_)) => Fault::Internal,
        }
    }

    /// When to come again, in whole seconds rounded up, for [`Fault::Throttled`] and
    /// [`Fault::Unavailable`]; at least one.
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
