//! The body of an error response of the GraphQL paths, for errors before GraphQL runs.

use bytes::{BufMut, BytesMut};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use tidegate_graphql::{Code, Error};

use super::{ApiError, INSUFFICIENT_SCOPE};
use crate::body::Body;
use crate::report::{Context, Protocol};

impl ApiError {
    /// The response of the GraphQL paths: `{"errors":[…]}` with the error's status.
    pub fn into_graphql(self, media: HeaderValue, context: &Context<'_>) -> Response<Body> {
        self.log(context);
        let mut error = Error::new(self.graphql_code(), self.message.clone());
        error.rejection = self.rejection().cloned().map(Box::new);
        let mut body = BytesMut::with_capacity(256);
        body.put_slice(b"{\"errors\":[");
        error.write(&mut body);
        body.put_slice(b"]}");
        let mut response = self.response(body.to_vec(), Protocol::GraphQl);
        response.headers_mut().insert(CONTENT_TYPE, media);
        response
    }

    /// The code for `extensions.code`.
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
