//! Cross-origin requests of browsers (Fetch Standard, section 3.2).
//!
//! Credentials in the browser's sense (cookies) are never allowed: a token in `Authorization` is
//! sent by the page's own code and needs no such permission.

use std::ops::ControlFlow;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW,
    HeaderMap, HeaderValue, ORIGIN, VARY,
};
use http::{Method, Request, Response, StatusCode};

use super::around::Around;
use crate::route::{Miss, Route};
use tidegate_http::app::{App, Origins};
use tidegate_http::body::Body;

const ANY: HeaderValue = HeaderValue::from_static("*");
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Location, X-Request-Id, WWW-Authenticate, Retry-After");
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Accept, Prefer, X-Request-Id, Tidegate-Database, If-None-Match",
);
/// Two hours: what the strictest browser keeps a preflight for.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

#[derive(Clone, Debug)]
pub(crate) struct Cors(App);

impl Cors {
    pub(crate) fn new(app: App) -> Self {
        Self(app)
    }

    fn allowed(&self, headers: &HeaderMap) -> Grant {
        match (self.0.origins(), headers.get(ORIGIN)) {
            (Origins::Any, None) => Grant::None,
            (Origins::Any, Some(_)) => Grant::Any,
            (Origins::Listed(list), Some(origin)) if list.contains(origin) => {
                Grant::One(origin.clone())
            }
            (Origins::Listed(_), _) => Grant::Refused,
        }
    }
}

/// What the answer says about origins.
pub(crate) enum Grant {
    /// Nothing: it is the same for all.
    None,
    /// Every origin may read it.
    Any,
    /// This one may read it.
    One(HeaderValue),
    /// The origin is not on the list, or there is none; with another one the answer differs.
    Refused,
}

impl Grant {
    fn write(self, headers: &mut HeaderMap) {
        let origin = match self {
            Self::None => return,
            Self::Any => ANY,
            Self::One(origin) => {
                headers.append(VARY, HeaderValue::from_static("Origin"));
                origin
            }
            Self::Refused => {
                headers.append(VARY, HeaderValue::from_static("Origin"));
                return;
            }
        };
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    }
}

impl Around for Cors {
    type State = Grant;

    fn before<B>(&self, request: &mut Request<B>) -> ControlFlow<Response<Body>, Grant> {
        let is_options = request.method() == Method::OPTIONS;
        let mut grant = self.allowed(request.headers());
        if matches!(grant, Grant::None) && !is_options {
            return ControlFlow::Continue(grant);
        }
        // No page of another origin reads or posts what people see (RFC 9700, section 2.6).
        let page = Route::is_path_of_page(request.uri().path());
        if page {
            grant = Grant::None;
        }
        // `OPTIONS` is no method of any route, so the miss tells the methods.
        if !is_options {
            return ControlFlow::Continue(grant);
        }
        let Err(Miss::MethodNotAllowed(allow)) =
            Route::parse(&Method::OPTIONS, request.uri().path())
        else {
            return ControlFlow::Continue(grant);
        };
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::NO_CONTENT;
        let headers = response.headers_mut();
        let allow = HeaderValue::from_static(allow);
        let preflight = request
            .headers()
            .contains_key(ACCESS_CONTROL_REQUEST_METHOD);
        if preflight && !page {
            headers.insert(ACCESS_CONTROL_ALLOW_METHODS, allow);
            headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
            headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
        } else {
            headers.insert(ALLOW, allow);
        }
        grant.write(headers);
        ControlFlow::Break(response)
    }

    fn after(grant: Grant, response: &mut Response<Body>) {
        grant.write(response.headers_mut());
    }
}
