//! HTML templates and responses of the pages.
//!
//! The pages work without JavaScript, except for passkeys. The template engine escapes all text.

mod account;
mod form;
mod layout;
mod notice;
mod passkeys;
mod reset;
mod second_factor;
mod sign_in;
mod sign_up;
mod words;

pub(crate) use account::{account, confirm_password};
pub(crate) use form::{FormMessage, PageForm};
pub(crate) use layout::layout;
pub(crate) use notice::{
    FailureLinks, consent, decided, device_consent, failure, failure_links, notice, select_account,
    sign_out, user_code,
};
pub(crate) use passkeys::add_passkey;
pub(crate) use reset::{ask_for_email, choose_password, confirm_sign_up};
pub(crate) use second_factor::{enrol, recovery_codes, second_factor};
pub(crate) use sign_in::{Choice, SignIn, email_sign_in, sign_in};
pub(crate) use sign_up::{SignUp, sign_up};
pub(crate) use words::agent;

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, LOCATION};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use maud::Markup;

use tidegate_http::body::Body;
use tidegate_http::error::NO_STORE;

/// The stylesheet of all pages.
pub(crate) const STYLE: &str = include_str!("template/style.css");
/// The script of the two pages on which the browser uses or creates a passkey: the sign-in page and
/// the page for adding a passkey.
pub(crate) const PASSKEYS: &str = include_str!("template/passkeys.js");
/// The icon of all pages.
pub(crate) const ICON: &str = include_str!("template/icon.svg");

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const SAME_ORIGIN: HeaderValue = HeaderValue::from_static("same-origin");
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// A response with a page. `returns_to` is the URL to which the page's forms may finally redirect.
/// The content security policy must allow it, because Chromium applies `form-action` to every
/// redirect after a form.
pub(crate) fn response(
    status: StatusCode,
    page: Markup,
    returns_to: Option<&str>,
) -> Response<Body> {
    let mut response = Response::new(Body::from(Bytes::from(page.into_string())));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HTML);
    // With this header, the page has no `window.opener`. Redirects do not have the header. So a
    // popup that this service only redirects, without showing a page, keeps its `window.opener`.
    headers.insert(OPENER_POLICY, SAME_ORIGIN);
    protect(headers, returns_to);
    response
}

/// Returns `page` with a content security policy that also allows scripts of this service.
pub(crate) fn with_script(mut page: Response<Body>) -> Response<Body> {
    let policy = page.headers().get(CONTENT_SECURITY_POLICY);
    let policy = policy.and_then(|policy| policy.to_str().ok());
    let policy = policy.map(|policy| format!("{policy}; script-src 'self'"));
    if let Some(policy) = policy.and_then(|policy| HeaderValue::from_str(&policy).ok()) {
        page.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    page
}

/// A redirect with status 303, so that the browser follows with GET and does not send the form
/// again (RFC 9700, section 4.12).
pub(crate) fn redirect(location: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    match HeaderValue::from_str(location) {
        Ok(location) => {
            *response.status_mut() = StatusCode::SEE_OTHER;
            response.headers_mut().insert(LOCATION, location);
        }
        // This cannot happen, because registration and parsing ensure that redirect URIs are ASCII.
        Err(_) => *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR,
    }
    protect(response.headers_mut(), None);
    response
}

fn protect(headers: &mut HeaderMap, returns_to: Option<&str>) {
    let origin = returns_to.and_then(source_of).unwrap_or_default();
    let policy = format!(
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; frame-ancestors 'none'; \
         form-action 'self'{origin}"
    );
    let policy = HeaderValue::from_str(&policy).unwrap_or(HeaderValue::from_static(
        "default-src 'none'; frame-ancestors 'none'",
    ));
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(CACHE_CONTROL, NO_STORE);
    for (name, value) in [
        ("x-content-type-options", NOSNIFF),
        ("x-frame-options", HeaderValue::from_static("DENY")),
        ("referrer-policy", HeaderValue::from_static("no-referrer")),
        ("cross-origin-resource-policy", SAME_ORIGIN),
    ] {
        headers.insert(HeaderName::from_static(name), value);
    }
}

/// The source expression (CSP 3, section 2.3.1) that matches a URL, with a leading space. `None` if
/// the URL has characters that a policy must not have.
fn source_of(uri: &str) -> Option<String> {
    let (scheme, rest) = uri.split_once(':')?;
    let plain = |text: &str, more: &[u8]| {
        text.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || more.contains(&byte))
    };
    if !plain(scheme, b"+-.") {
        return None;
    }
    let Some(rest) = rest
        .strip_prefix("//")
        .filter(|_| scheme.starts_with("http"))
    else {
        return Some(format!(" {scheme}:"));
    };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    if host.starts_with('[') {
        // CSP has no source expression for an IPv6 address, so the whole scheme is allowed.
        return Some(format!(" {scheme}:"));
    }
    plain(host, b"-._:").then(|| format!(" {scheme}://{host}"))
}

#[cfg(test)]
mod tests {
    use super::source_of;

    #[test]
    fn forms_may_lead_to_the_origin_of_the_redirect_address() {
        for (uri, source) in [
            ("https://app.example/cb?x=1", Some(" https://app.example")),
            (
                "http://127.0.0.1:5173/callback",
                Some(" http://127.0.0.1:5173"),
            ),
            ("http://[::1]:5173/callback", Some(" http:")),
            ("com.example.app:/cb", Some(" com.example.app:")),
            ("https://a;script-src/cb", None),
            ("https://a'b/cb", None),
        ] {
            assert_eq!(source_of(uri).as_deref(), source, "{uri}");
        }
    }
}
