//! Converts errors to HTTP status codes, error codes and texts, with a function for each protocol.
//! No other module does this.
//!
//! This module also logs the cause of each error with a 5xx status and of each aborted response,
//! with the request id, the route, the database and the role. Tokens, parameters and SQL are never
//! logged.

mod accounts;
mod graphql;
mod methods;
mod oauth;
mod rest;
mod sql;
mod sqlstate;
mod summary;

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;
use std::time::Duration;

use http::StatusCode;
use tidegate_oauth::Scope;
use tidegate_sql::DatabaseError;

pub use rest::{JSON, NO_STORE};

use crate::report::Context;

/// An error response, with the cause of the error for the log.
#[derive(Debug)]
pub struct ApiError {
    /// The status of the response.
    pub status: StatusCode,
    /// The error code, which is the value of `errorCode`, or of `error` in an OAuth response.
    pub code: &'static str,
    /// The message for the developer of the client.
    pub message: Cow<'static, str>,
    /// Fields that only some errors have.
    pub details: Option<Box<Details>>,
}

/// Fields that only some errors have.
#[derive(Debug, Default)]
pub struct Details {
    /// The error that PostgreSQL reported; `None` if the error has another cause.
    pub rejection: Option<DatabaseError>,
    /// The time after which a retry may succeed, for `Retry-After`.
    pub retry_after: Option<Duration>,
    /// The methods that the path allows, for `Allow`.
    pub allow: Option<&'static str>,
    /// The value of `WWW-Authenticate`; `None` if the response does not have this header.
    pub challenge: Option<Challenge>,
    /// The cause of the error, for the log.
    pub cause: Option<Box<dyn StdError + Send + Sync>>,
}

/// How the client can authenticate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Challenge {
    /// A token is needed (RFC 6750, section 3).
    Bearer,
    /// The token is not accepted.
    InvalidToken,
    /// The token's scopes do not allow the request (RFC 6750, section 3.1).
    InsufficientScope,
    /// The client's credentials in `Authorization` are not accepted (RFC 6749, section 5.2).
    Basic,
}

impl Challenge {
    /// The value of `WWW-Authenticate`.
    pub const fn header(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::InvalidToken => "Bearer error=\"invalid_token\"",
            Self::InsufficientScope => "Bearer error=\"insufficient_scope\"",
            Self::Basic => "Basic realm=\"tidegate\", charset=\"UTF-8\"",
        }
    }
}

/// The code for a token whose scopes do not allow the request.
pub(crate) const INSUFFICIENT_SCOPE: &str = "INSUFFICIENT_SCOPE";

/// Logs a failure. This is a macro and not a function, because the level of a `tracing` event must
/// be a constant.
macro_rules! failed {
    ($level:ident, $failure:ident, $context:ident, $cause:ident) => {
        tracing::$level!(
            request_id = $context.request_id,
            route = $context.route,
            database = $context.database,
            role = $context.role,
            status = $failure.status.as_u16(),
            code = $failure.code,
            cause = %Chain(&**$cause),
            "request failed"
        )
    };
}

impl ApiError {
    /// An error without details.
    pub fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            details: None,
        }
    }

    /// 400: the input is invalid. The message must name the invalid member and describe the
    /// expected value.
    pub fn input(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INPUT_VALIDATION_ERROR", message)
    }

    /// 400: the body is not valid JSON.
    pub fn invalid_json(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_JSON", message)
    }

    /// 401: a token is required.
    pub fn missing_token(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "MISSING_TOKEN", message)
            .with_challenge(Challenge::Bearer)
    }

    /// 401: the token is invalid.
    pub fn invalid_token(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "INVALID_TOKEN", message)
            .with_challenge(Challenge::InvalidToken)
    }

    /// 403: the user lacks a privilege.
    pub fn insufficient_privileges(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "INSUFFICIENT_PRIVILEGES", message)
    }

    /// 403: the request needs one of these scopes, and the token has none of them.
    pub fn insufficient_scope(needed: &[Scope]) -> Self {
        let names: Vec<_> = needed.iter().map(|scope| scope.name()).collect();
        Self::scope_missing(&names.join(" or "))
    }

    /// 403: the request needs the scope `openid`, and the token does not have it.
    pub fn openid_scope_missing() -> Self {
        Self::scope_missing("openid")
    }

    fn scope_missing(needed: &str) -> Self {
        let text = format!("the token has no scope for this request; it needs {needed}");
        Self::new(StatusCode::FORBIDDEN, INSUFFICIENT_SCOPE, text)
            .with_challenge(Challenge::InsufficientScope)
    }

    /// 409: the request conflicts with the current state.
    pub fn conflict(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, "CONFLICT", message)
    }

    /// 409: the name is in use.
    pub fn already_exists(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::CONFLICT, "ALREADY_EXISTS", message)
    }

    /// 403: another site sent the form, or the form's token does not belong to the browser's
    /// current cookie.
    pub fn stale_form() -> Self {
        let text = "This form is out of date, or your browser keeps no cookies for this site. Go \
                    back, load the page again and repeat it.";
        Self::new(StatusCode::FORBIDDEN, "STALE_FORM", text)
    }

    /// 403: sign-up is not allowed.
    pub fn sign_up_closed() -> Self {
        let text = "Accounts for this application are made by its owner. Ask there for one.";
        Self::new(StatusCode::FORBIDDEN, "SIGN_UP_CLOSED", text)
    }

    /// 404: the named object does not exist.
    pub fn not_found(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", message)
    }

    /// 426: the path serves only WebSocket connections.
    pub fn upgrade_required() -> Self {
        let text = "this address serves WebSocket (RFC 6455, version 13) over HTTP/1.1";
        Self::new(StatusCode::UPGRADE_REQUIRED, "UPGRADE_REQUIRED", text)
    }

    /// 404: the database in the path has no default user.
    pub fn no_default_user() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "NO_DEFAULT_USER_FOUND",
            "No default user found",
        )
    }

    /// 405: the path does not allow the method. `allow` lists the allowed methods.
    pub fn method_not_allowed(allow: &'static str) -> Self {
        let text = "this path does not take this method";
        let mut failure = Self::new(StatusCode::METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", text);
        failure.details_mut().allow = Some(allow);
        failure
    }

    /// 406: the service can produce the response in none of the formats that the client accepts.
    pub fn not_acceptable(message: &'static str) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NOT_ACCEPTABLE", message)
    }

    /// 408: the body was sent too slowly.
    pub fn body_timeout() -> Self {
        let text = "the request body did not come in time";
        Self::new(StatusCode::REQUEST_TIMEOUT, "REQUEST_TIMEOUT", text)
    }

    /// 413: the body or the result is too large.
    pub fn too_large(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "PAYLOAD_TOO_LARGE", message)
    }

    /// 415: the path does not accept the format of the body.
    pub fn unsupported_media_type(message: &'static str) -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "UNSUPPORTED_MEDIA_TYPE",
            message,
        )
    }

    /// 429: the memory budget does not allow the reservation now.
    pub fn exhausted() -> Self {
        let text = "the memory for large bodies and responses is used up; retry later, or ask for `output_format` csv or ndjson, which are streamed";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "TOO_MANY_REQUESTS", text)
            .retrying_after(Duration::from_secs(1))
    }

    /// 503: a dependency is unavailable, with `Retry-After`.
    pub fn unavailable(code: &'static str, message: &'static str, after: Duration) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, code, message).retrying_after(after)
    }

    /// 500: an error of the service itself. The cause is logged and not sent.
    pub fn internal(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        let text = "internal server error";
        let failure = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL_ERROR", text);
        failure.with_cause(Some(cause.into()))
    }

    /// Prefixes the message with the index of the failed request in an array, counted from 0.
    pub fn of_request(mut self, index: usize) -> Self {
        self.message = format!("[{index}]: {}", self.message).into();
        self
    }

    /// Adds `WWW-Authenticate`.
    pub fn with_challenge(mut self, challenge: Challenge) -> Self {
        self.details_mut().challenge = Some(challenge);
        self
    }

    /// Adds `Retry-After`.
    pub fn retrying_after(mut self, after: Duration) -> Self {
        self.details_mut().retry_after = Some(after);
        self
    }

    /// Adds the cause, for the log.
    pub fn with_cause(mut self, cause: Option<Box<dyn StdError + Send + Sync>>) -> Self {
        self.details_mut().cause = cause;
        self
    }

    /// PostgreSQL's error, if it is the cause.
    pub fn rejection(&self) -> Option<&DatabaseError> {
        self.details.as_ref()?.rejection.as_ref()
    }

    fn details_mut(&mut self) -> &mut Details {
        self.details.get_or_insert_default()
    }

    fn retryable(&self) -> bool {
        let rejection = self.rejection();
        rejection.is_some_and(|rejection| matches!(&*rejection.sqlstate, "40001" | "40P01"))
    }

    /// Logs why a response was aborted; the client sees only a closed connection.
    pub fn log_abort(&self, context: &Context<'_>) {
        let details = self.details.as_deref();
        let rejection = details.and_then(|details| details.rejection.as_ref());
        let cause = details.and_then(|details| details.cause.as_deref());
        tracing::warn!(
            request_id = context.request_id,
            route = context.route,
            database = context.database,
            role = context.role,
            code = self.code,
            sqlstate = rejection.map(|rejection| &*rejection.sqlstate),
            cause = cause.map(|cause| tracing::field::display(Chain(cause))),
            "response aborted"
        );
    }

    /// Logs the cause of an error with a 5xx status, because the response does not contain the
    /// cause. Other errors are not logged here.
    pub fn log(&self, context: &Context<'_>) {
        let cause = self
            .details
            .as_ref()
            .and_then(|details| details.cause.as_ref());
        let (Some(cause), true) = (cause, self.status.is_server_error()) else {
            return;
        };
        if self.status == StatusCode::INTERNAL_SERVER_ERROR {
            failed!(error, self, context, cause);
        } else {
            failed!(warn, self, context, cause);
        }
    }
}

/// Displays an error and its causes in one line.
struct Chain<'a>(&'a dyn StdError);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}
