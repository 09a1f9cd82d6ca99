//! `X-Request-Id`: that of the client, if it has 1 to 128 visible ASCII characters, or a new one.

use std::ops::ControlFlow;

use http::{HeaderValue, Request, Response};

use super::around::Around;
use tidegate_http::app::App;
use tidegate_http::body::Body;
use tidegate_http::report::REQUEST_ID;

const LONGEST: usize = 128;

#[derive(Clone, Debug)]
pub(crate) struct RequestId(App);

impl RequestId {
    pub(crate) fn new(app: App) -> Self {
        Self(app)
    }
}

impl Around for RequestId {
    type State = HeaderValue;

    fn before<B>(&self, request: &mut Request<B>) -> ControlFlow<Response<Body>, HeaderValue> {
        let headers = request.headers_mut();
        if let Some(id) = headers.get(REQUEST_ID).filter(|id| is_acceptable(id)) {
            return ControlFlow::Continue(id.clone());
        }
        let id = self.0.request_id();
        // The layers below read it from the request.
        headers.insert(REQUEST_ID, id.clone());
        ControlFlow::Continue(id)
    }

    fn after(id: HeaderValue, response: &mut Response<Body>) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
}

fn is_acceptable(id: &HeaderValue) -> bool {
    let id = id.as_bytes();
    (1..=LONGEST).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}
