//! The descriptions of errors in responses.

use std::borrow::Cow;

use tidegate_identity::{Error as IdentityError, RoleError, StoreError};

use super::Error;

impl Error {
    /// A description for client developers, without values of the request. The text is ASCII and
    /// does not contain `: `, because there is a client program that splits the text at `: `. The
    /// texts of [`RoleError`] may break this rule, because they contain names of objects.
    pub fn description(&self) -> Cow<'static, str> {
        match self {
            Self::MissingParameter(name) => format!("the parameter {name} is missing").into(),
            Self::DuplicateParameter(name) => {
                format!("the parameter {name} is given more than once").into()
            }
            Self::ParameterNotText(name) => format!("the parameter {name} must be a string").into(),
            Self::ImpersonationRefused(reason) | Self::PersonalTokenRefused(reason) => {
                (*reason).into()
            }
            Self::UnsupportedParameter(name) => {
                format!("the parameter {name} is not supported").into()
            }
            Self::InvalidToken(error) => format!("the token is not accepted, {error}").into(),
            Self::Identity(error) => identity(error),
            other => other.fixed_description().into(),
        }
    }

    fn fixed_description(&self) -> &'static str {
        match self {
            Self::TwoCredentials => "use one way to authenticate the client, with one client_id",
            Self::UnsupportedGrantType => {
                "the grant_type is not supported; the grants are password, refresh_token, authorization_code, client_credentials and device_code (or urn:ietf:params:oauth:grant-type:device_code)"
            }
            Self::InvalidScope => {
                "the scope is unknown or was not granted; the scopes are read, write, methods, sql and admin, and those of OpenID Connect; without any, a token has all rights of its user"
            }
            Self::InvalidTarget => {
                "the resource must be the address of this service, which /.well-known/oauth-protected-resource names"
            }
            Self::NoServiceUser => {
                "this grant needs a confidential client with a service_user that exists"
            }
            Self::ServiceUserDisabled => "the service_user of the client is disabled",
            Self::TooManyPersonalTokens => {
                "the user has 100 personal access tokens; revoke one first"
            }
            Self::LoginRequired => "the person must sign in, and prompt is none",
            Self::ConsentRequired => "the person must be asked for consent, and prompt is none",
            Self::InteractionRequired => {
                "the person must use the second factor, and prompt is none"
            }
            Self::UnsupportedResponseType => "the response_type must be code",
            Self::UnregisteredRedirect => "the redirect_uri is not registered for this client",
            Self::InvalidCode => {
                "the code is invalid, expired, used, or was issued for another client, redirect_uri or code_challenge"
            }
            Self::AuthorizationPending => "the person has not decided yet",
            Self::SlowDown => "the person has not decided yet; wait 5 seconds longer between polls",
            Self::AccessDenied => "the person denied the request",
            Self::ExpiredDeviceCode => "the device code has expired",
            Self::InvalidDeviceCode => "the device code is invalid or was used",
            Self::UnknownUserCode => "unknown user code",
            Self::SecondFactorNeeded => {
                "this client requires a second factor, which this grant does not support"
            }
            Self::SecondFactorMissing => {
                "this user has a second factor, which this grant does not support; use the grant authorization_code or device_code"
            }
            Self::SignUpClosed => "this client does not allow sign-up",
            Self::GrantNotAllowed => "this grant is not enabled for the client",
            Self::ForeignDatabase => {
                "the client belongs to another database; name the user's database in the member database"
            }
            Self::ForeignToken => "the token was issued to another client",
            Self::UnknownClient | Self::UnknownGuestClient => {
                "there is no client with this client_id"
            }
            Self::ClientNotAuthenticated => "the client secret is wrong or missing",
            Self::PublicClient => "this needs a confidential client, and the client is public",
            Self::InvalidRefreshToken => "the refresh token is invalid, expired or revoked",
            Self::NoDefaultUser => "No default user found",
            Self::KeyTooYoung { .. } => "the next key has not been published for long enough",
            _ => INTERNAL,
        }
    }
}

const INTERNAL: &str = "internal server error";

fn identity(error: &IdentityError) -> Cow<'static, str> {
    let text = match error {
        IdentityError::Malformed { part, expected } => {
            return format!("the {part} is malformed, expected {expected}").into();
        }
        IdentityError::InvalidField { field, expected } => {
            return format!("the member {field} is not valid, expected {expected}").into();
        }
        IdentityError::InvalidElement {
            field,
            index,
            expected,
        } => {
            return format!("the member {field}[{index}] is not valid, expected {expected}").into();
        }
        // Several clients may have the same name, but each id is unique. So this error is about the
        // id.
        IdentityError::Taken("client") => {
            "a client with this `id` already exists, or the `id` is reserved; choose another `id`"
        }
        IdentityError::Taken(what) => {
            return format!("a {what} with this name already exists").into();
        }
        IdentityError::IdTaken => {
            "another user has this `id`; the id of a user with a role is its name"
        }
        IdentityError::NotFound(what) => return format!("{what} not found").into(),
        IdentityError::Role(error) => return role(error),
        IdentityError::LoginDenied => "the person denied the request",
        IdentityError::SecondFactorRequired => "this requires a sign-in with the second factor",
        IdentityError::WrongPasskey => "the passkey was not accepted",
        IdentityError::WrongSecondFactor => "the code is wrong or was used already",
        IdentityError::InvalidLink => {
            "this link has expired or was used already; request a new one"
        }
        IdentityError::ReauthenticationRequired => "this requires a recent sign-in",
        IdentityError::LastCredential => "the user's only way to sign in cannot be removed",
        IdentityError::WrongCredentials => "wrong user name or password",
        IdentityError::TooManyAttempts { .. } => "too many attempts, try again later",
        IdentityError::Busy { .. } => "too many sign-ins at once, try again shortly",
        IdentityError::DefaultUserTaken => "another user of the database is its default user",
        IdentityError::Store(StoreError::Unavailable(_)) => {
            "the service is temporarily unavailable"
        }
        _ => INTERNAL,
    };
    text.into()
}

fn role(error: &RoleError) -> Cow<'static, str> {
    match error {
        RoleError::OwnsObjects { count, example } => format!(
            "the user owns {count} objects of the database, such as {example}; give them to \
             the owner with reassign=true, or drop them first"
        )
        .into(),
        RoleError::CarriesRights(objects) => format!(
            "the user owns objects that would run with the rights of the database's owner ({}); drop \
             them, or change them as the user (ALTER ROUTINE ... SECURITY INVOKER, ALTER VIEW ... \
             SET (security_invoker = on), REVOKE) before",
            objects.join(", ")
        )
        .into(),
        RoleError::UsedElsewhere(databases) => format!(
            "the user has rights or objects outside of the tenant's database ({}); remove them \
             there first",
            databases.join(", ")
        )
        .into(),
        RoleError::StillUsed(reason) => format!(
            "the user has rights that only their grantors can revoke; {}",
            reason.replace('\n', ", ")
        )
        .into(),
        RoleError::Taken(_) => {
            "PostgreSQL has a role of this name that Tidegate did not create; choose another name"
                .into()
        }
        RoleError::Unavailable(_) | RoleError::Failed(_) => INTERNAL.into(),
    }
}
