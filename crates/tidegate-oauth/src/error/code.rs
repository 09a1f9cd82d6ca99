//! The code of an error on the wire, and the kind that determines the response status.

use tidegate_identity::{Error as IdentityError, RoleError, StoreError};

use super::Error;

/// The kind of an error, which determines the response status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The request is invalid.
    InvalidRequest,
    /// The client is unknown, or it could not be authenticated.
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

impl Error {
    /// The error code on the wire. The errors of OAuth endpoints and of bearer tokens have the
    /// codes of RFC 6749 (section 5.2) and RFC 6750. The codes of the management API are in upper
    /// snake case.
    pub fn code(&self) -> &'static str {
        self.code_and_kind().0
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.code_and_kind().1
    }

    fn code_and_kind(&self) -> (&'static str, ErrorKind) {
        use ErrorKind::{Client, Conflict, Internal, InvalidRequest, NotFound, Token};
        match self {
            Self::MissingParameter(_)
            | Self::DuplicateParameter(_)
            | Self::ParameterNotText(_)
            | Self::TwoCredentials
            | Self::UnregisteredRedirect
            | Self::UnknownUserCode => ("invalid_request", InvalidRequest),
            Self::InvalidScope => ("invalid_scope", InvalidRequest),
            Self::InvalidTarget => ("invalid_target", InvalidRequest),
            Self::UnsupportedGrantType => ("unsupported_grant_type", InvalidRequest),
            Self::UnsupportedResponseType => ("unsupported_response_type", InvalidRequest),
            Self::UnsupportedParameter("request") => ("request_not_supported", InvalidRequest),
            Self::UnsupportedParameter("registration") => {
                ("registration_not_supported", InvalidRequest)
            }
            Self::UnsupportedParameter(_) => ("request_uri_not_supported", InvalidRequest),
            Self::LoginRequired => ("login_required", InvalidRequest),
            Self::ConsentRequired => ("consent_required", InvalidRequest),
            Self::InteractionRequired => ("interaction_required", InvalidRequest),
            Self::AuthorizationPending => ("authorization_pending", InvalidRequest),
            Self::SlowDown => ("slow_down", InvalidRequest),
            Self::AccessDenied
            | Self::SignUpClosed
            | Self::ImpersonationRefused(_)
            | Self::PersonalTokenRefused(_) => ("access_denied", InvalidRequest),
            Self::TooManyPersonalTokens => ("CONFLICT", Conflict),
            Self::ExpiredDeviceCode => ("expired_token", InvalidRequest),
            Self::GrantNotAllowed
            | Self::NoServiceUser
            | Self::ServiceUserDisabled
            | Self::ForeignDatabase
            | Self::ForeignToken
            | Self::SecondFactorNeeded => ("unauthorized_client", InvalidRequest),
            Self::UnknownClient | Self::ClientNotAuthenticated | Self::PublicClient => {
                ("invalid_client", Client)
            }
            Self::UnknownGuestClient => ("invalid_grant", Client),
            Self::SecondFactorMissing
            | Self::InvalidCode
            | Self::InvalidDeviceCode
            | Self::InvalidRefreshToken => ("invalid_grant", InvalidRequest),
            Self::NoDefaultUser => ("NO_DEFAULT_USER_FOUND", NotFound),
            Self::InvalidToken(_) => ("invalid_token", Token),
            Self::KeyTooYoung { .. } => ("KEY_TOO_YOUNG", Conflict),
            Self::WrongMasterKey => ("server_error", Internal),
            Self::Identity(error) => identity(error),
        }
    }
}

fn identity(error: &IdentityError) -> (&'static str, ErrorKind) {
    use ErrorKind::{Conflict, Internal, InvalidRequest, NotFound, Throttled, Unavailable};
    match error {
        IdentityError::Malformed { .. } => ("invalid_request", InvalidRequest),
        IdentityError::LoginDenied
        | IdentityError::InvalidLink
        | IdentityError::ReauthenticationRequired => ("access_denied", InvalidRequest),
        IdentityError::SecondFactorRequired => ("unauthorized_client", InvalidRequest),
        IdentityError::WrongCredentials
        | IdentityError::WrongPasskey
        | IdentityError::WrongSecondFactor => ("invalid_grant", InvalidRequest),
        IdentityError::InvalidField { .. } | IdentityError::InvalidElement { .. } => {
            ("INPUT_VALIDATION_ERROR", InvalidRequest)
        }
        IdentityError::Taken(_)
        | IdentityError::IdTaken
        | IdentityError::DefaultUserTaken
        | IdentityError::Role(RoleError::Taken(_)) => ("ALREADY_EXISTS", Conflict),
        IdentityError::LastCredential
        | IdentityError::Role(
            RoleError::OwnsObjects { .. }
            | RoleError::CarriesRights(_)
            | RoleError::UsedElsewhere(_)
            | RoleError::StillUsed(_),
        ) => ("CONFLICT", Conflict),
        IdentityError::NotFound(_) => ("NOT_FOUND", NotFound),
        IdentityError::TooManyAttempts { .. } | IdentityError::Busy { .. } => {
            ("temporarily_unavailable", Throttled)
        }
        IdentityError::Outbound(_)
        | IdentityError::Role(RoleError::Unavailable(_))
        | IdentityError::Store(StoreError::Unavailable(_)) => {
            ("temporarily_unavailable", Unavailable)
        }
        IdentityError::DamagedSecret
        | IdentityError::NoRandomness
        | IdentityError::HasherFailed
        | IdentityError::Role(RoleError::Failed(_))
        | IdentityError::Store(StoreError::Failed(_)) => ("server_error", Internal),
    }
}
