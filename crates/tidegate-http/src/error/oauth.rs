//! The error body of the OAuth endpoints (RFC 6749, section 5.2).

use std::borrow::Cow;
use std::time::Duration;

use http::header::{HeaderValue, PRAGMA};
use http::{Response, StatusCode};
use serde::Serialize;
use tidegate_identity::Error as IdentityError;
use tidegate_oauth as oauth;

use super::{ApiError, Challenge};
use crate::body::Body;
use crate::report::{Context, Protocol};

#[derive(Serialize)]
struct OAuthError<'a> {
    error: &'static str,
    error_description: &'a str,
    #[serde(flatten)]
    rest: Option<RestMembers<'a>>,
}

/// The members that the guest endpoint adds to the members of an OAuth error.
#[derive(Serialize)]
struct RestMembers<'a> {
    success: bool,
    message: &'a str,
    code: u16,
    #[serde(rename = "errorCode")]
    error_code: &'static str,
}

impl ApiError {
    /// The error for a failure of the issuer at an OAuth endpoint. If `by_basic` is true, the
    /// client authenticated with HTTP Basic, and a 401 has `WWW-Authenticate: Basic`.
    pub fn from_oauth(error: impl Into<oauth::Error>, by_basic: bool) -> Self {
        let error = error.into();
        let status = match error.kind() {
            oauth::ErrorKind::Client => StatusCode::UNAUTHORIZED,
            oauth::ErrorKind::NotFound => StatusCode::NOT_FOUND,
            oauth::ErrorKind::Throttled => throttled(&error),
            oauth::ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            oauth::ErrorKind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
            oauth::ErrorKind::InvalidRequest
            | oauth::ErrorKind::Token
            | oauth::ErrorKind::Conflict => StatusCode::BAD_REQUEST,
        };
        let mut failure = Self::new(status, error.code(), error.description());
        if let Some(after) = error.retry_after() {
            failure = failure.retrying_after(Duration::from_secs(after));
        }
        if by_basic && status == StatusCode::UNAUTHORIZED {
            failure = failure.with_challenge(Challenge::Basic);
        }
        if status.is_server_error() {
            failure.with_cause(Some(error.into()))
        } else {
            failure
        }
    }

    /// The error for a bearer token that the issuer refused or could not check.
    pub fn from_bearer(error: impl Into<oauth::Error>) -> Self {
        let error = error.into();
        match error.kind() {
            oauth::ErrorKind::Throttled | oauth::ErrorKind::Unavailable => {
                let after = Duration::from_secs(error.retry_after().unwrap_or(1));
                let text = "the service cannot check the token now";
                Self::unavailable("DATABASE_UNAVAILABLE", text, after)
                    .with_cause(Some(error.into()))
            }
            oauth::ErrorKind::Internal => Self::internal(error),
            _ => Self::invalid_token(error.description()),
        }
    }

    /// Logs the error and returns the response of an OAuth endpoint. If `guest` is true, the body
    /// also has the members that the guest endpoint adds.
    #[expect(
        clippy::missing_panics_doc,
        reason = "strings and numbers can be written"
    )]
    pub fn into_oauth(mut self, guest: bool, context: &Context<'_>) -> Response<Body> {
        self.code = self.oauth_name();
        self.log(context);
        // An existing client program splits the text at a colon followed by a space, so the text
        // must not contain these two characters.
        let message: Cow<'_, str> = if self.message.contains(": ") {
            self.message.replace(": ", ", ").into()
        } else {
            Cow::Borrowed(&self.message)
        };
        let body = OAuthError {
            error: self.code,
            error_description: &message,
            rest: guest.then(|| RestMembers {
                success: false,
                message: &message,
                code: self.status.as_u16(),
                error_code: self.code,
            }),
        };
        let body = serde_json::to_vec(&body).expect("strings and numbers can be written");
        let mut response = self.response(body, Protocol::OAuth);
        response
            .headers_mut()
            .insert(PRAGMA, HeaderValue::from_static("no-cache"));
        response
    }

    /// The value of `error`. Codes of the REST endpoints, which OAuth does not define, are replaced
    /// by codes of OAuth.
    fn oauth_name(&self) -> &'static str {
        match self.code {
            "INPUT_VALIDATION_ERROR"
            | "INVALID_JSON"
            | "PAYLOAD_TOO_LARGE"
            | "REQUEST_TIMEOUT"
            | "UNSUPPORTED_MEDIA_TYPE" => "invalid_request",
            "INTERNAL_ERROR" => "server_error",
            name => name,
        }
    }
}

/// The status of a refused attempt: 429 if there were too many attempts, 503 if the service is busy
/// with other attempts.
fn throttled(error: &oauth::Error) -> StatusCode {
    match error {
        oauth::Error::Identity(IdentityError::Busy { .. }) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::TOO_MANY_REQUESTS,
    }
}
