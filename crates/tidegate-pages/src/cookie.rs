//! The browser's cookie.

use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};
use tidegate_identity::Secret;

/// The length of the cookie's value: 256 bits in base64url.
const LENGTH: usize = 43;

/// The cookie's name. If the name begins with `__Host-`, browsers accept the cookie only from this
/// host and only over HTTPS (RFC 6265bis, section 4.1.3), so other hosts of the domain cannot set
/// it.
fn name(secure: bool) -> &'static str {
    if secure {
        "__Host-tidegate"
    } else {
        "tidegate"
    }
}

/// The browser's cookie, if it is well-formed.
pub(super) fn read(headers: &HeaderMap, secure: bool) -> Option<Secret> {
    let lines = headers.get_all(COOKIE).iter();
    let pairs = lines
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'));
    let mut values = pairs
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(known, _)| *known == name(secure))
        .map(|(_, value)| value);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let value = values.next()?;
    // If there are two cookies with this name, neither is used, because another host may have set
    // one of them.
    let alone = values.next().is_none();
    (alone && value.len() == LENGTH && value.bytes().all(plain)).then(|| Secret::new(value))
}

/// The value of `Set-Cookie`; `None` deletes the cookie.
pub(super) fn write(cookie: Option<&Secret>, secure: bool) -> HeaderValue {
    let name = name(secure);
    let (value, end) = match cookie {
        Some(cookie) => (cookie.expose(), ""),
        None => ("", "; Max-Age=0"),
    };
    let guarded = if secure { "; Secure" } else { "" };
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{guarded}{end}");
    let mut header = HeaderValue::from_str(&text).expect("base64url is visible ASCII");
    header.set_sensitive(true);
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_read_only_in_the_form_in_which_it_is_written() {
        let value = "a".repeat(LENGTH);
        let cookie = Secret::new(value.clone());
        let text = write(Some(&cookie), true);
        assert_eq!(
            text.to_str().unwrap(),
            format!("__Host-tidegate={value}; Path=/; HttpOnly; SameSite=Lax; Secure")
        );
        let read = |line: &str, secure| {
            let mut headers = HeaderMap::new();
            headers.insert(COOKIE, line.parse().unwrap());
            super::read(&headers, secure)
        };
        assert_eq!(
            read(&format!("x=y; __Host-tidegate={value}"), true),
            Some(cookie.clone())
        );
        assert_eq!(read(&format!("tidegate={value};a=b"), false), Some(cookie));
        assert_eq!(
            read(&format!("tidegate={value}"), true),
            None,
            "the other name"
        );
        assert_eq!(
            read(&format!("tidegate={value}; tidegate={value}"), false),
            None
        );
        for bad in ["", "short", &"a".repeat(44), &"/".repeat(43)] {
            assert_eq!(read(&format!("tidegate={bad}"), false), None);
        }
    }
}
