//! The page for browsers: GraphiQL if the operator provides a build, otherwise a small built-in
//! page. Neither sends requests to other hosts (docs/adr/0008-graphql-page.md).

use bytes::Bytes;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, VARY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Response};

use tidegate_http::Graphiql;
use tidegate_http::app::App;
use tidegate_http::base_path::base_of;
use tidegate_http::body::Body;
use tidegate_http::error::ApiError;

const PAGE: &str = include_str!("page.html");

/// The policy of the built-in page. The page may run its one script, use its one style sheet, and
/// call this service. The hashes are those of the two elements' texts; a test compares them with
/// the page.
const POLICY: HeaderValue = HeaderValue::from_static(concat!(
    "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; ",
    "frame-ancestors 'none'; ",
    "style-src 'sha256-cnmHJCQkIV8ROlRQ9z7GKHj8xtwEODR5dS2PnWoGhvA='; ",
    "script-src 'sha256-pazMuwER4qJ+hZuLUITh9mJn1WGN5+zH17ttvnlmoUA='",
));

/// The policy for a file of GraphiQL that a browser opens as a document or worker.
const ASSET_POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'",
);
/// The value of `Cache-Control` for files whose names contain a hash of their content.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const REVALIDATED: HeaderValue = HeaderValue::from_static("no-cache");

/// The page for browsers, with its policy.
pub(super) fn page(app: &App) -> Response<Body> {
    let (page, policy) = match app.graphiql() {
        Some(built) => graphiql(built, base_of(app.issuer().address())),
        None => (Bytes::from_static(PAGE.as_bytes()), POLICY),
    };
    let mut response = Response::new(Body::from(page));
    let headers = response.headers_mut();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, REVALIDATED);
    headers.append(VARY, HeaderValue::from_static("Accept"));
    response
}

/// The page of GraphiQL and its content security policy. GraphiQL's scripts load other scripts from
/// the same folder. Its editor creates style elements, which get the nonce, and style attributes,
/// which cannot have a nonce. Its style sheet contains fonts.
fn graphiql(built: &Graphiql, base: &str) -> (Bytes, HeaderValue) {
    let (page, nonce) = built.page(base);
    let policy = format!(
        "default-src 'none'; connect-src 'self'; img-src data:; font-src data:; worker-src 'self'; \
         style-src 'self' 'nonce-{nonce}'; style-src-attr 'unsafe-inline'; \
         script-src 'nonce-{nonce}' 'strict-dynamic'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let policy = HeaderValue::try_from(policy).expect("hex digits are visible ASCII");
    (page.into(), policy)
}

/// Handles `GET /assets/graphiql/{name}`.
///
/// # Errors
///
/// 404 if GraphiQL is not served, or has no such file.
pub(crate) fn asset(app: &App, name: &str) -> Result<Response<Body>, ApiError> {
    let found = app.graphiql().and_then(|built| built.asset(name));
    let found = found.ok_or_else(|| ApiError::not_found("there is no such file"))?;
    let kind = match name.rsplit_once('.').map_or("", |(_, kind)| kind) {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    let named_by_content = kind.starts_with("text/javascript") || kind.starts_with("text/css");
    let mut response = Response::new(Body::from(found.clone()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_SECURITY_POLICY, ASSET_POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    let cache = if named_by_content {
        IMMUTABLE
    } else {
        REVALIDATED
    };
    headers.insert(CACHE_CONTROL, cache);
    Ok(response)
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
