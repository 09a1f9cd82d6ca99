//! Redirect addresses (RFC 6749, section 3.1.2).

const LONGEST: usize = 2048;

/// Whether a client may register this address: absolute, plain ASCII, no fragment; over `http` or
/// `https` with a host and no user name before it (which would hide the host), else a scheme that is
/// a reversed domain name (RFC 8252, section 7.1), which no `javascript:` or `data:` is.
pub(crate) fn may_be(uri: &str) -> bool {
    let plain = uri
        .bytes()
        .all(|b| b.is_ascii_graphic() && !b"#\\\"<>`{}|^".contains(&b));
    let Some((scheme, rest)) = uri.split_once(':') else {
        return false;
    };
    let named = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b));
    if !plain || !named || uri.len() > LONGEST {
        return false;
    }
    match scheme {
        "http" | "https" => rest.strip_prefix("//").is_some_and(|rest| {
            let authority = rest.split(['/', '?']).next().unwrap_or_default();
            has_host(authority)
        }),
        private => private.contains('.') && rest.starts_with('/'),
    }
}

/// Whether `host[:port]` has a host, no user and a port that is one.
fn has_host(authority: &str) -> bool {
    if authority.contains('@') {
        return false;
    }
    let (host, port) = match authority
        .strip_prefix('[')
        .and_then(|v6| v6.split_once(']'))
    {
        Some((host, "")) => (host, None),
        Some((host, rest)) => match rest.strip_prefix(':') {
            Some(port) => (host, Some(port)),
            None => return false,
        },
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    !host.is_empty() && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::may_be;

    #[test]
    fn addresses_that_a_browser_can_be_sent_to_safely_may_be_registered() {
        for uri in [
            "http://127.0.0.1:5173/callback",
            "http://[::1]:80/",
            "https://app.example/cb?tenant=a",
            "https://app.example",
            "com.example.app:/cb",
        ] {
            assert!(may_be(uri), "{uri}");
        }
    }

    #[test]
    fn others_may_not() {
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
            "http://host:port/",
        ] {
            assert!(!may_be(uri), "{uri}");
        }
    }
}
