//! The layers that refuse requests, before any handler runs: the check of `Host`, the requests of
//! other origins, and the size of the head.

use std::ops::ControlFlow;

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_METHOD, ALLOW,
    HOST, HeaderMap, HeaderValue, ORIGIN, VARY,
};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode, Version};

use crate::route::{Route, RouteError};
use tidegate_http::app::{App, Origins};
use tidegate_http::body::Body;
use tidegate_http::error::ApiError;
use tidegate_http::replica_reads::POSITION;
use tidegate_http::report::{Context, REQUEST_ID};

/// The largest size in bytes of the head of an HTTP/2 request. It is measured as in RFC 9113,
/// section 6.5.2, with two differences: `:path` and `:authority` count without [`FIELD`], and
/// `:method` and `:scheme` do not count.
pub(crate) const HTTP2_HEAD: u32 = 16 * 1024;
/// The number of bytes that each header field counts in addition to its name and value.
const FIELD: usize = 32;

const ANY: HeaderValue = HeaderValue::from_static("*");
const EXPOSED: HeaderValue =
    HeaderValue::from_static("Location, X-Request-Id, WWW-Authenticate, Retry-After");
const EXPOSED_WITH_POSITION: HeaderValue = HeaderValue::from_static(
    "Location, X-Request-Id, WWW-Authenticate, Retry-After, Tidegate-Position",
);
/// The header fields that a page of another origin may send. `Last-Event-ID` is in the list for
/// pages that read an event stream with `fetch`; `EventSource` may always send it. `Tidegate-After`
/// is in the list even on a node without replicas, because a page sends it to every node.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Accept, Prefer, X-Request-Id, Tidegate-Database, If-None-Match, \
     Last-Event-ID, Tidegate-After",
);
/// How long a browser may cache a preflight: two hours, the longest time that all browsers accept.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// The CORS headers of a response.
pub(crate) enum OriginAccess {
    /// The response gets no CORS headers, whatever the origin of the request is.
    None,
    /// Any origin may read the response.
    Any,
    /// Only this origin may read the response.
    One(HeaderValue),
    /// The request has no origin, or an origin that is not allowed. The response gets only `Vary:
    /// Origin`, because the response would differ for an allowed origin.
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

/// Returns the response to a request without a valid host. An HTTP/1.1 request must have exactly
/// one `Host` field, with a valid value (RFC 9112, section 3.2).
///
/// The service does not use the value of `Host`. It refuses ambiguous requests nevertheless,
/// because a proxy could take such a request for a request to another host. `Host` may be empty. It
/// may be missing in HTTP/1.0 and HTTP/2.
pub(super) fn refuse_host<B>(request: &Request<B>) -> Option<Response<Body>> {
    let fault = check_host(request).err()?;
    Some(refusal(request, ApiError::input(fault)))
}

fn check_host<B>(request: &Request<B>) -> Result<(), &'static str> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err("the field Host is given more than once, expected one");
    }
    match host {
        Some(host) if is_valid_host(host.as_bytes()) => Ok(()),
        Some(_) => Err("invalid Host header: expected a name or address, optionally with a port"),
        // HTTP/2 has `:authority`, and HTTP/1.0 does not require `Host`.
        None if request.version() == Version::HTTP_11 => Err("the field Host is missing"),
        None => Ok(()),
    }
}

/// Whether the value has the form `uri-host [ ":" port ]`, or is empty. Clients send an empty value
/// if their URI has no authority (RFC 9110, section 7.2).
fn is_valid_host(host: &[u8]) -> bool {
    if host.is_empty() {
        return true;
    }
    let Ok(authority) = Authority::try_from(host) else {
        return false;
    };
    let port = authority.as_str().strip_prefix(authority.host());
    port.is_some_and(|port| match port.strip_prefix(':') {
        Some(digits) => digits.is_empty() || digits.parse::<u16>().is_ok(),
        None => port.is_empty(),
    })
}

/// Returns which CORS headers the response gets, or the complete response to `OPTIONS` (Fetch
/// Standard, section 3.2).
///
/// No response has `Access-Control-Allow-Credentials`, so a page of another origin cannot read the
/// response to a request with cookies. This header is not needed for a request in which a script
/// sets `Authorization` itself.
pub(super) fn check_origin<B>(
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
    // Only `OPTIONS` continues below. No route has this method, so parsing a known path gives an
    // error that lists the allowed methods.
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
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
        headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    } else {
        headers.insert(ALLOW, allow);
    }
    grant.write(headers);
    ControlFlow::Break(response)
}

pub(super) fn set_origin_access(grant: OriginAccess, response: &mut Response<Body>) {
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

/// Returns the response to an HTTP/2 request whose head is too large.
///
/// hyper refuses a head above its own limit with a status without a body, past the layers of this
/// service. So hyper's limit is twice the limit of this layer, which responds with an error that
/// has a body.
pub(super) fn refuse_head<B>(request: &Request<B>) -> Option<Response<Body>> {
    if request.version() != Version::HTTP_2 || head_size(request) <= HTTP2_HEAD as usize {
        return None;
    }
    let failure = ApiError::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        "INPUT_VALIDATION_ERROR",
        "the head is too large, expected at most 16 KiB over HTTP/2",
    );
    Some(refusal(request, failure))
}

/// The size of the header fields and of the URL, as [`HTTP2_HEAD`] measures it.
fn head_size<B>(request: &Request<B>) -> usize {
    let uri = request.uri();
    let address = uri.path_and_query().map_or(0, |path| path.as_str().len())
        + uri
            .authority()
            .map_or(0, |authority| authority.as_str().len());
    let fields = request.headers().iter();
    fields.fold(address, |sum, (name, value)| {
        sum + name.as_str().len() + value.len() + FIELD
    })
}

/// The response to a request that is refused before its handler is called.
fn refusal<B>(request: &Request<B>, failure: ApiError) -> Response<Body> {
    let id = request.headers().get(REQUEST_ID);
    let context = Context {
        request_id: id.and_then(|id| id.to_str().ok()).unwrap_or_default(),
        route: "none",
        ..Context::default()
    };
    failure.into_rest(&context)
}

#[cfg(test)]
mod tests {
    use super::is_valid_host;

    #[test]
    fn a_name_or_an_address_with_a_port_or_without() {
        for host in [
            "localhost",
            "api.example:8443",
            "127.0.0.1:8080",
            "[::1]:8080",
            "[::1]",
            "a:",
            "",
        ] {
            assert!(is_valid_host(host.as_bytes()), "{host}");
        }
        for host in [
            "user@host",
            "a b",
            "a/b",
            "a:b",
            "a:70000",
            "a?b",
            "[::1",
            "a:1:2",
            "\u{e9}",
        ] {
            assert!(!is_valid_host(host.as_bytes()), "{host}");
        }
    }
}
