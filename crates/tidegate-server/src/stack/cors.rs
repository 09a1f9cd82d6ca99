//! Cross-origin requests of browsers (Fetch Standard, section 3.2).
//!
//! Credentials in the sense of browsers, which are cookies, are never allowed. The script of a page
//! sets a token in `Authorization` itself, which needs no permission for credentials.

use std::ops::ControlFlow;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW,
    HeaderMap, HeaderValue, ORIGIN, VARY,
};
use http::{Method, Request, Response, StatusCode};

use crate::route::{Route, RouteError};
use tidegate_http::app::{App, Origins};
use tidegate_http::body::Body;
use tidegate_http::replica_reads::POSITION;

const ANY: HeaderValue = HeaderValue::from_static("*");
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Location, X-Request-Id, WWW-Authenticate, Retry-After");
const EXPOSED_WITH_POSITION: HeaderValue = HeaderValue::from_static(
    "Location, X-Request-Id, WWW-Authenticate, Retry-After, Tidegate-Position",
);
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Accept, Prefer, X-Request-Id, Tidegate-Database, If-None-Match",
);
const REQUEST_HEADERS_WITH_POSITION: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Accept, Prefer, X-Request-Id, Tidegate-Database, If-None-Match, \
     Tidegate-After",
);
/// How long a browser may cache a preflight: two hours, the longest time that all browsers accept.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// The CORS headers of a response.
pub(crate) enum OriginAccess {
    /// The response gets no CORS headers, and would get none for any other origin.
    None,
    /// Any origin may read the response.
    Any,
    /// Only this origin may read the response.
    One(HeaderValue),
    /// The request has no origin, or an origin that is not allowed. The response gets only `Vary:
    /// Origin`, because it would differ for an allowed origin.
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
        let exposed = if headers.contains_key(POSITION) {
            EXPOSED_WITH_POSITION
        } else {
            EXPOSED
        };
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

/// Returns which CORS headers the response gets, or the complete response to `OPTIONS`.
pub(super) fn before<B>(
    app: &App,
    request: &Request<B>,
) -> ControlFlow<Response<Body>, OriginAccess> {
    let is_options = request.method() == Method::OPTIONS;
    let mut grant = allowed(app, request.headers());
    if matches!(grant, OriginAccess::None) && !is_options {
        return ControlFlow::Continue(grant);
    }
    // Pages of other origins must not read or submit the pages of this service (RFC 9700, section
    // 2.6).
    let page = Route::is_path_of_page(request.uri().path());
    if page {
        grant = OriginAccess::None;
    }
    // No route has the method `OPTIONS`, so the error has the allowed methods.
    if !is_options {
        return ControlFlow::Continue(grant);
    }
    let Err(RouteError::MethodNotAllowed(allow)) =
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
        let allowed = match app.replica_reads() {
            Some(_) => REQUEST_HEADERS_WITH_POSITION,
            None => REQUEST_HEADERS,
        };
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, allowed);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    } else {
        headers.insert(ALLOW, allow);
    }
    grant.write(headers);
    ControlFlow::Break(response)
}

/// Sets the CORS headers of the response.
pub(super) fn after(grant: OriginAccess, response: &mut Response<Body>) {
    grant.write(response.headers_mut());
}

fn allowed(app: &App, headers: &HeaderMap) -> OriginAccess {
    match (app.origins(), headers.get(ORIGIN)) {
        (Origins::Any, None) => OriginAccess::None,
        (Origins::Any, Some(_)) => OriginAccess::Any,
        (Origins::Listed(list), Some(origin)) if list.contains(origin) => {
            OriginAccess::One(origin.clone())
        }
        (Origins::Listed(_), _) => OriginAccess::Refused,
    }
}
