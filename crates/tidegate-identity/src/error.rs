//! The errors of this crate.

mod store_error;

use std::time::Duration;

use crate::{OutboundError, RoleError};

pub use store_error::StoreError;

/// A result with the error of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// All errors of this crate. The enum is exhaustive, so the server must handle each new variant.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value of the request or of the settings is malformed.
    #[error("malformed {part}, expected {expected}")]
    Malformed {
        /// The part that is malformed.
        part: &'static str,
        /// The form that was expected.
        expected: &'static str,
    },
    /// The second factor was not verified in this browser.
    #[error("the second factor was not verified in this browser")]
    SecondFactorRequired,
    /// The second-factor code is wrong or was used already.
    #[error("wrong second-factor code")]
    WrongSecondFactor,
    /// The passkey is unknown or was not verified. The response does not distinguish the two cases.
    #[error("the passkey was not accepted")]
    WrongPasskey,
    /// The action requires a recent sign-in.
    #[error("a recent sign-in is required")]
    ReauthenticationRequired,
    /// The user's only credential cannot be removed.
    #[error("the only credential cannot be removed")]
    LastCredential,
    /// The email link or login state is forged, expired or used.
    #[error("invalid link")]
    InvalidLink,
    /// The person or the identity provider denied the login.
    #[error("the login was denied")]
    LoginDenied,
    /// The user does not exist or the password is wrong. The response does not distinguish the two
    /// cases.
    #[error("wrong user name or password")]
    WrongCredentials,
    /// A rate limit refuses the attempt.
    #[error("too many attempts")]
    TooManyAttempts {
        /// The time after which to retry.
        retry_after: Duration,
    },
    /// All hashing threads are busy and their queue is full.
    #[error("the password hashing queue is full")]
    Busy {
        /// The time after which to retry.
        retry_after: Duration,
    },
    /// A field of a record has an invalid value.
    #[error("invalid {field}, expected {expected}")]
    InvalidField {
        /// The name of the field.
        field: &'static str,
        /// The values that are allowed.
        expected: &'static str,
    },
    /// An element of a field of a record has an invalid value.
    #[error("invalid {field}[{index}], expected {expected}")]
    InvalidElement {
        /// The name of the field.
        field: &'static str,
        /// The index of the element.
        index: usize,
        /// The values that are allowed.
        expected: &'static str,
    },
    /// The name of a new record is taken. The text names the kind of the record.
    #[error("the {0} already exists")]
    Taken(&'static str),
    /// The id of a new user is taken, but its name is not. The id of a user with a role is its
    /// name.
    #[error("the id already belongs to a user")]
    IdTaken,
    /// The tenant has a default user already.
    #[error("the tenant has another default user")]
    DefaultUserTaken,
    /// There is no such record. The text names the kind of the record.
    #[error("{0} not found")]
    NotFound(&'static str),
    /// A stored secret cannot be decrypted or is malformed.
    #[error("a stored secret is damaged")]
    DamagedSecret,
    /// The random source failed.
    #[error("the random source failed")]
    NoRandomness,
    /// The hashing threads have ended, or a hash cannot be computed.
    #[error("the password hasher failed")]
    HasherFailed,
    /// An email server or identity provider failed.
    #[error(transparent)]
    Outbound(#[from] OutboundError),
    /// A PostgreSQL role could not be changed.
    #[error(transparent)]
    Role(#[from] RoleError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
