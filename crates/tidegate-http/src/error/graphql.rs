//! The body of an error response of the GraphQL paths, for errors that occur before the GraphQL
//! request is executed.

use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use serde_json::json;
use tidegate_graphql::{Code, Error};

use super::{ApiError, INSUFFICIENT_SCOPE};
use crate::body::Body;
use crate::report::{Context, Protocol};

impl ApiError {
    /// Logs the error and returns the response of the GraphQL paths: `{"errors":[…]}` with the
    /// error's status. `media` is the `Content-Type` of the response.
    pub fn into_graphql(self, media: HeaderValue, context: &Context<'_>) -> Response<Body> {
        self.log(context);
        let mut error = Error::new(self.graphql_code(), self.message.clone());
        error.rejection = self.rejection().cloned().map(Box::new);
        let body = serde_json::to_vec(&json!({"errors": [error]}));
        let mut response = self.response(body.unwrap_or_default(), Protocol::GraphQl);
        response.headers_mut().insert(CONTENT_TYPE, media);
        response
    }

    /// The value of `extensions.code` for this error.
    pub fn graphql_code(&self) -> Code {
        if self.code == INSUFFICIENT_SCOPE {
            return Code::InsufficientScope;
        }
        match self.status {
            StatusCode::UNAUTHORIZED => Code::Unauthenticated,
            StatusCode::FORBIDDEN => Code::Forbidden,
            StatusCode::CONFLICT => Code::Conflict,
            StatusCode::GATEWAY_TIMEOUT | StatusCode::REQUEST_TIMEOUT => Code::Timeout,
            StatusCode::PAYLOAD_TOO_LARGE => Code::TooComplex,
            status if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS => {
                Code::BadUserInput
            }
            _ => Code::Internal,
        }
    }
}
