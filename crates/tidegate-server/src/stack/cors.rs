//! Cross-origin requests of browsers (Fetch Standard, section 3.2).
//!
//! Credentials in the browser's sense (cookies) are never allowed. A token in `Authorization` is
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
/// Two hours, the longest time that all browsers cache a preflight.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

#[derive(Clone, Debug)]
pub(crate) struct Cors(App);

impl Cors {
    pub(crate) fn new(app: App) -> Self {
        Self(app)
    }

    fn allowed(&self, headers: &HeaderMap) -> OriginAccess {
        match (self.0.origins(), headers.get(ORIGIN)) {
            (Origins::Any, None) => OriginAccess::None,
            (Origins::Any, Some(_)) => OriginAccess::Any,
            (Origins::Listed(list), Some(origin)) if list.contains(origin) => {
                OriginAccess::One(origin.clone())
            }
            (Origins::Listed(_), _) => OriginAccess::Refused,
        }
    }
}

/// The CORS headers of a response.
pub(crate) enum OriginAccess {
    /// None: the response is the same for all origins.
    None,
    /// Any origin may read it.
    Any,
    /// Only this origin may read it.
    One(HeaderValue),
    /// The origin is missing or not allowed; for an allowed one the response differs.
    Refused,
}

impl OriginAccess {
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
    type State = OriginAccess;

    fn before<B>(&self, request: &mut Request<B>) -> ControlFlow<Response<Body>, OriginAccess> {
        let is_options = request.method() == Method::OPTIONS;
        let mut grant = self.allowed(request.headers());
        if matches!(grant, OriginAccess::None) && !is_options {
            return ControlFlow::Continue(grant);
        }
        // Pages of other origins must not read or submit our pages (RFC 9700, section 2.6).
        let page = Route::is_path_of_page(request.uri().path());
        if page {
            grant = OriginAccess::None;
        }
        // No route has the method `OPTIONS`, so the error has the allowed methods.
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

    fn after(grant: OriginAccess, response: &mut Response<Body>) {
        grant.write(response.headers_mut());
    }
}
