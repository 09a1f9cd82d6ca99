//! The body of an error response of the REST and SQL endpoints.

use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER, SEC_WEBSOCKET_VERSION, UPGRADE,
    WWW_AUTHENTICATE,
};
use http::{Response, StatusCode};
use serde::Serialize;
use tidegate_sql::{ErrorMember, ErrorMembers};

use super::{ApiError, Details};
use crate::body::Body;
use crate::report::{Context, Errors, Protocol};

/// The value of `Content-Type` for JSON.
pub const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=utf-8");
/// The value of `Cache-Control` for responses that must not be cached.
pub const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");

/// The members of an error response whose values come from PostgreSQL's error.
const MEMBERS: [ErrorMember; 7] = [
    ErrorMember::Sqlstate,
    ErrorMember::Detail,
    ErrorMember::Hint,
    ErrorMember::Position,
    ErrorMember::Constraint,
    ErrorMember::Column,
    ErrorMember::Table,
];

#[derive(Serialize)]
struct RestError<'a> {
    success: bool,
    message: &'a str,
    code: u16,
    #[serde(rename = "errorCode")]
    error_code: &'static str,
    #[serde(flatten)]
    database: Option<ErrorMembers<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    retryable: bool,
}

impl ApiError {
    /// Logs the error and returns the response of the REST and SQL endpoints.
    pub fn into_rest(self, context: &Context<'_>) -> Response<Body> {
        self.log(context);
        self.response(self.rest_body(), Protocol::Rest)
    }

    /// The JSON body of the response of the REST and SQL endpoints.
    #[expect(
        clippy::missing_panics_doc,
        reason = "strings and numbers can be written"
    )]
    pub fn rest_body(&self) -> Vec<u8> {
        let body = RestError {
            success: false,
            message: &self.message,
            code: self.status.as_u16(),
            error_code: self.code,
            database: self
                .rejection()
                .map(|error| ErrorMembers::new(error, &MEMBERS)),
            retryable: self.retryable(),
        };
        serde_json::to_vec(&body).expect("strings and numbers can be written")
    }

    /// A response with this body, and with the status and the headers of the error.
    pub fn response(&self, body: Vec<u8>, protocol: Protocol) -> Response<Body> {
        let mut response = Response::new(Body::from(bytes::Bytes::from(body)));
        let errors = Errors::of_failure(protocol, self);
        response.body_mut().subject.errors = Some(Box::new(errors));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(CACHE_CONTROL, NO_STORE);
        if self.status == StatusCode::UPGRADE_REQUIRED {
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        let Some(Details {
            retry_after,
            allow,
            challenge,
            ..
        }) = self.details.as_deref()
        else {
            return response;
        };
        if let Some(after) = retry_after {
            // Seconds are rounded up, so that no client retries too early.
            let seconds = after.as_secs() + u64::from(after.subsec_nanos() > 0);
            headers.insert(RETRY_AFTER, seconds.max(1).into());
        }
        if let Some(allow) = allow {
            headers.insert(ALLOW, HeaderValue::from_static(allow));
        }
        if let Some(challenge) = challenge {
            headers.insert(
                WWW_AUTHENTICATE,
                HeaderValue::from_static(challenge.header()),
            );
        }
        response
    }
}
