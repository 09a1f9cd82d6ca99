//! `HEAD`: the head of the response to `GET` (RFC 9110, section 9.3.2).

use std::ops::ControlFlow;

use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response, StatusCode};

use super::around::Around;
use tidegate_http::body::{Body, Content};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Head;

impl Around for Head {
    type State = bool;

    fn before<B>(&self, request: &mut Request<B>) -> ControlFlow<Response<Body>, bool> {
        ControlFlow::Continue(request.method() == Method::HEAD)
    }

    fn after(is_head: bool, response: &mut Response<Body>) {
        if is_head {
            // A 304 has no length of its own (RFC 9110, section 8.6).
            let is_of_document = response.status() != StatusCode::NOT_MODIFIED;
            if let Some(size) = response.body().exact_size().filter(|_| is_of_document) {
                response.headers_mut().insert(CONTENT_LENGTH, size.into());
            }
            *response.body_mut().content_mut() = Content::Empty;
        }
    }
}
