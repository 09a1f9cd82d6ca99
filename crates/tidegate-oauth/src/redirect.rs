//! Redirect URIs (RFC 6749, section 3.1.2).

use std::net::{IpAddr, Ipv6Addr};

use tidegate_identity::percent_encode;

const MAX_LENGTH: usize = 2048;
/// The prefixes of URIs on a loopback IP literal.
const LOOPBACK: [&str; 2] = ["http://127.0.0.1", "http://[::1]"];

/// Whether a client may register this URI. It must be absolute, ASCII and without a fragment, and
/// have one of these schemes:
///
/// - `https`, with a host and without user info, because user info can make another host look like
///   the target.
/// - `http`, only to this machine, because a code that crosses a network unencrypted can be read
///   (RFC 8252, section 7.3; RFC 9700, section 2.6).
/// - A reversed domain name (RFC 8252, section 7.1), which excludes `javascript:` and `data:`.
pub(crate) fn is_registrable(uri: &str) -> bool {
    match parts(uri) {
        Some(("https", rest)) => host_of(rest).is_some(),
        Some(("http", rest)) => host_of(rest).is_some_and(is_loopback),
        Some((private, rest)) => private.contains('.') && rest.starts_with('/'),
        None => false,
    }
}

/// Whether `uri` is an `http` or `https` URL with a host.
pub(crate) fn is_page(uri: &str) -> bool {
    matches!(parts(uri), Some(("https" | "http", rest)) if host_of(rest).is_some())
}

/// Splits an absolute ASCII URI without a fragment into its scheme and the part after the colon.
/// `None` for any other text.
fn parts(uri: &str) -> Option<(&str, &str)> {
    let plain = uri
        .bytes()
        .all(|b| b.is_ascii_graphic() && !b"#\\\"<>`{}|^".contains(&b));
    let (scheme, rest) = uri.split_once(':')?;
    let named = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b));
    (plain && named && uri.len() <= MAX_LENGTH).then_some((scheme, rest))
}

/// Whether a host is certainly this machine: a loopback IP literal or `localhost`. No name is
/// looked up.
fn is_loopback(host: &str) -> bool {
    let literal = host.parse().is_ok_and(|host: IpAddr| host.is_loopback());
    literal || host == "localhost"
}

/// The host in `//host[:port]`: a name or an IP literal. An IPv6 literal is returned without its
/// brackets. `None` for a text with user info, an invalid host or an invalid port.
fn host_of(rest: &str) -> Option<&str> {
    let authority = rest.strip_prefix("//")?.split(['/', '?']).next()?;
    if authority.contains('@') {
        return None;
    }
    let literal = authority.strip_prefix('[');
    let (host, port) = match literal.and_then(|v6| v6.split_once(']')) {
        Some((host, "")) => (host, None),
        Some((host, rest)) => match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None => return None,
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let is_host = match literal {
        Some(_) => host.parse::<Ipv6Addr>().is_ok(),
        None => is_name(host),
    };
    (is_host && port.is_none_or(|port| port.parse::<u16>().is_ok())).then_some(host)
}

/// Whether `host` is a valid host name. A `*` is not valid: the content security policy of a page
/// may contain the host, and a `*` there would match a whole domain.
fn is_name(host: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !host.is_empty() && host.bytes().all(allowed)
}

/// Whether `given` matches the registered URI byte by byte, except for the port of an `http` URI on
/// `127.0.0.1` or `[::1]`. Native applications choose this port at run time (RFC 8252,
/// section 7.3). A URI that could not be registered today never matches.
pub(crate) fn matches(registered: &str, given: &str) -> bool {
    if !is_registrable(given) {
        return false;
    }
    if registered == given {
        return true;
    }
    match (without_port(registered), without_port(given)) {
        (Some(registered), Some(given)) => registered == given,
        _ => false,
    }
}

/// Whether `uri` is an `https` URL whose host is not loopback. Only a server with a certificate for
/// this host can receive the response.
pub(crate) fn is_remote(uri: &str) -> bool {
    matches!(parts(uri), Some(("https", rest)) if host_of(rest).is_some_and(|host| !is_loopback(host)))
}

/// Whether `uri` is an `http` URL on a loopback IP literal, at any port (RFC 8252, section 7.3).
pub(crate) fn is_loopback_literal(uri: &str) -> bool {
    without_port(uri).is_some()
}

/// The prefix by which to look up the registered URIs that may match `given`. For a URI on a
/// loopback IP literal, the prefix ends before the port, because the port may differ. Any other URI
/// is itself the prefix.
pub(crate) fn lookup_prefix(given: &str) -> &str {
    LOOPBACK
        .into_iter()
        .find(|start| given.starts_with(start))
        .unwrap_or(given)
}

/// The host of an `http` URI on a loopback IP literal, and the part after the port. `None` for any
/// other URI.
fn without_port(uri: &str) -> Option<(&str, &str)> {
    let rest = uri.strip_prefix("http://")?;
    let host = ["127.0.0.1", "[::1]"]
        .into_iter()
        .find(|host| rest.starts_with(host))?;
    let rest = &rest[host.len()..];
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (port, rest) = rest.split_at(end);
    let is_port =
        |port: &str| port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let ported = port.is_empty() || port.strip_prefix(':').is_some_and(is_port);
    (ported && is_registrable(uri)).then_some((host, rest))
}

/// The URI with parameters added to its query.
pub(crate) fn with_parameters(uri: &str, parameters: &[(&str, &str)]) -> String {
    let mut location = uri.to_owned();
    let mut separator = match uri.split_once('?') {
        None => "?",
        Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    };
    for (name, value) in parameters {
        location.push_str(separator);
        location.push_str(name);
        location.push('=');
        location.push_str(&percent_encode(value));
        separator = "&";
    }
    location
}

#[cfg(test)]
mod tests {
    use super::{is_registrable, matches, with_parameters};

    #[test]
    fn a_uri_that_cannot_be_registered_today_never_matches() {
        for old in [
            "http://app.example/cb",
            "http://10.0.0.7/cb",
            "https://user@app.example/cb",
            "javascript:alert(1)",
            "https://app.example/cb#part",
        ] {
            assert!(!matches(old, old), "{old}");
        }
        let good = "https://app.example/cb";
        assert!(matches(good, good));
    }

    #[test]
    fn the_port_of_a_loopback_literal_may_differ_and_nothing_else() {
        let native = "http://127.0.0.1:5173/callback";
        for given in [
            native,
            "http://127.0.0.1/callback",
            "http://127.0.0.1:80/callback",
            "http://127.0.0.1:65535/callback",
        ] {
            assert!(matches(native, given), "{given}");
        }
        for given in [
            "http://localhost:5173/callback",
            "https://127.0.0.1:5173/callback",
            "http://127.0.0.1:5173/callback/",
            "http://127.0.0.1:5173/Callback",
            "http://127.0.0.1:5173/x/../callback",
            "http://127.0.0.1:5173/callback?x=1",
            "http://127.0.0.1:5173/callback#x",
            "http://127.0.0.1:5173@evil.example/callback",
            "http://127.0.0.1:80.evil.example/callback",
            "http://127.0.0.1.evil.example/callback",
            "http://127.0.0.1:65536/callback",
            "http://127.0.0.1:+80/callback",
            "http://[::1]:5173/callback",
            "HTTP://127.0.0.1:5173/callback",
            "http://127.0.0.1:5173/%63allback",
            "",
        ] {
            assert!(!matches(native, given), "{given}");
        }
        assert!(matches("http://[::1]/cb", "http://[::1]:9/cb"));
        let web = "https://app.example/cb";
        for given in [
            "https://app.example:443/cb",
            "https://APP.example/cb",
            "https://app.example./cb",
            "https://app.example/cb?",
            "https://user@app.example/cb",
            "https://app.example/cb/../cb",
            "https://\u{430}pp.example/cb",
        ] {
            assert!(!matches(web, given), "{given}");
        }
        assert!(!matches("http://localhost:1/cb", "http://localhost:2/cb"));
    }

    #[test]
    fn parameters_are_added_to_what_is_there() {
        let added = |uri| with_parameters(uri, &[("state", "a b&c=\u{e4}"), ("iss", "x")]);
        let query = "state=a%20b%26c%3D%C3%A4&iss=x";
        assert_eq!(added("https://a/cb"), format!("https://a/cb?{query}"));
        assert_eq!(added("https://a/cb?"), format!("https://a/cb?{query}"));
        assert_eq!(
            added("https://a/cb?t=1"),
            format!("https://a/cb?t=1&{query}")
        );
    }

    #[test]
    fn safe_redirect_uris_may_be_registered() {
        for uri in [
            "http://127.0.0.1:5173/callback",
            "http://[::1]:80/",
            "http://localhost:5173/callback",
            "http://127.8.9.10/",
            "https://app.example/cb?tenant=a",
            "https://app.example",
            "com.example.app:/cb",
        ] {
            assert!(is_registrable(uri), "{uri}");
        }
    }

    #[test]
    fn other_uris_may_not_be_registered() {
        for uri in [
            "",
            "/callback",
            "javascript:alert(1)",
            "data:text/html,x",
            "https://app.example/cb#part",
            "http://localhost:80@evil.example/",
            "https://",
            "https:///path",
            "https://a b/",
            "https://app.example\\@evil.example/",
            "https://ä.example/",
            "HTTPS://app.example/",
            "https://host:port/",
            "http://app.example/cb",
            "http://192.168.1.7:5173/cb",
            "http://[2001:db8::1]/cb",
            "http://localhost.evil.example/",
            "http://127.0.0.1.evil.example/",
            "http://127.1/",
            "http:///cb",
            "https://*/cb",
            "https://*.example/cb",
            "https://a'b/cb",
            "https://a;b/cb",
            "https://[*]/cb",
            "https://[::1/cb",
            "https://%2e/cb",
            "myapp:/cb",
            "com.example.app:cb",
        ] {
            assert!(!is_registrable(uri), "{uri}");
        }
    }
}
