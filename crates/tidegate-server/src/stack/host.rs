//! The layer that checks `Host`. An HTTP/1.1 request must have exactly one `Host` field, with a
//! valid value (RFC 9112, section 3.2).
//!
//! The service does not use the value of `Host`. But if a proxy could read another host from the
//! same request, the request is refused. `Host` may be empty. It may be missing in HTTP/1.0 and
//! HTTP/2.

use http::header::HOST;
use http::uri::Authority;
use http::{Request, Response, Version};

use tidegate_http::body::Body;
use tidegate_http::error::ApiError;
use tidegate_http::report::{Context, REQUEST_ID};

/// Returns the response to a request without a valid host.
pub(super) fn refusal<B>(request: &Request<B>) -> Option<Response<Body>> {
    let fault = check(request).err()?;
    let id = request.headers().get(REQUEST_ID);
    let context = Context {
        request_id: id.and_then(|id| id.to_str().ok()).unwrap_or_default(),
        route: "none",
        ..Context::default()
    };
    Some(ApiError::input(fault).into_rest(&context))
}

fn check<B>(request: &Request<B>) -> Result<(), &'static str> {
    let mut hosts = request.headers().get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err("the field Host is given more than once, expected one");
    }
    match host {
        Some(host) if is_valid(host.as_bytes()) => Ok(()),
        Some(_) => Err("invalid Host header: expected a name or address, optionally with a port"),
        // HTTP/2 has `:authority`, and HTTP/1.0 does not require `Host`.
        None if request.version() == Version::HTTP_11 => Err("the field Host is missing"),
        None => Ok(()),
    }
}

/// Whether the value has the form `uri-host [ ":" port ]`, or is empty. Clients send an empty value
/// if their URI has no authority (RFC 9110, section 7.2).
fn is_valid(host: &[u8]) -> bool {
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

#[cfg(test)]
mod tests {
    use super::is_valid;

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
            assert!(is_valid(host.as_bytes()), "{host}");
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
            assert!(!is_valid(host.as_bytes()), "{host}");
        }
    }
}
