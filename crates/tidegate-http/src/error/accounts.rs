//! Errors of managing users, OAuth clients and roles at the REST endpoints.

use std::time::Duration;

use http::StatusCode;
use tidegate_identity::Error as IdentityError;
use tidegate_oauth::{Error, ErrorKind};

use super::ApiError;

impl ApiError {
    /// Converts an error of managing users, OAuth clients or their roles.
    pub fn from_accounts(error: impl Into<Error>) -> Self {
        let error = error.into();
        let after = Duration::from_secs(error.retry_after().unwrap_or(1));
        match (error.kind(), &error) {
            (_, Error::Identity(IdentityError::InvalidField { field, expected })) => {
                Self::input(format!("`{field}`: expected {expected}"))
            }
            (
                _,
                Error::Identity(IdentityError::InvalidElement {
                    field,
                    index,
                    expected,
                }),
            ) => Self::input(format!("`{field}[{index}]`: expected {expected}")),
            (_, Error::ImpersonationRefused(reason) | Error::PersonalTokenRefused(reason)) => {
                Self::insufficient_privileges(*reason)
            }
            (_, Error::InvalidScope) => Self::new(
                StatusCode::BAD_REQUEST,
                "INPUT_VALIDATION_ERROR",
                "`scopes`: expected scopes that your own token has",
            ),
            (_, Error::Identity(IdentityError::DefaultUserTaken)) => Self::new(
                StatusCode::CONFLICT,
                error.code(),
                "`default_user`: the tenant has a default user already; take it from that one first",
            ),
            (ErrorKind::Conflict, _) => {
                Self::new(StatusCode::CONFLICT, error.code(), error.description())
            }
            (ErrorKind::NotFound, _) => Self::not_found(error.description()),
            (ErrorKind::Throttled, _) => {
                let text = "too many passwords are being hashed now";
                Self::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS", text)
                    .retrying_after(after)
            }
            (ErrorKind::Unavailable, _) => {
                let text = "the database is not available";
                Self::unavailable("DATABASE_UNAVAILABLE", text, after)
                    .with_cause(Some(error.into()))
            }
            (
                ErrorKind::Internal
                | ErrorKind::Client
                | ErrorKind::Token
                | ErrorKind::InvalidRequest,
                _,
            ) => Self::internal(error),
        }
    }
}
