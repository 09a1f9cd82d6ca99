//! The page that a browser gets: our own, in one file, without any outside host
//! (docs/adr/0008-graphql-page.md).

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Response};

use crate::body::Body;

const PAGE: &str = include_str!("page.html");

/// What the page may do: run its one script, wear its one style, ask this server. The hashes are
/// those of the elements' texts; a test holds them against the page.
const POLICY: HeaderValue = HeaderValue::from_static(concat!(
    "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; ",
    "frame-ancestors 'none'; ",
    "style-src 'sha256-cnmHJCQkIV8ROlRQ9z7GKHj8xtwEODR5dS2PnWoGhvA='; ",
    "script-src 'sha256-BgI3D/QjNZs04yWwy71Qz3fZ5gyyI1ztCaGK4LMV7x0='",
));

/// The page.
pub(super) fn page() -> Response<Body> {
    let mut response = Response::new(Body::from(Bytes::from_static(PAGE.as_bytes())));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.append(VARY, HeaderValue::from_static("Accept"));
    response
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest as _, Sha256};

    use super::*;

    #[test]
    fn the_policy_names_the_hashes_of_the_page() {
        let policy = POLICY;
        let policy = policy.to_str().unwrap();
        for element in ["style", "script"] {
            let (open, close) = (format!("<{element}>"), format!("</{element}>"));
            let text = PAGE
                .split(&open)
                .nth(1)
                .unwrap()
                .split(&close)
                .next()
                .unwrap();
            let hash = STANDARD.encode(Sha256::digest(text));
            assert!(
                policy.contains(&format!("{element}-src 'sha256-{hash}'")),
                "{element}: {hash}"
            );
        }
    }
}
