//! The layer for `If-None-Match`, for documents that rarely change (RFC 9110, section 13.1.2).

use http::header::{CONTENT_TYPE, ETAG, HeaderValue};
use http::{Response, StatusCode};

use tidegate_http::body::{Body, Content};

/// Omits the document if the client already has this version. `known` is the value of
/// `If-None-Match`.
pub(super) fn after(known: Option<&HeaderValue>, response: &mut Response<Body>) {
    if let Some(known) = known
        && let Some(tag) = response.headers().get(ETAG)
        && matches(known, tag)
    {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().remove(CONTENT_TYPE);
        *response.body_mut().content_mut() = Content::Empty;
    }
}

/// Compares an entity tag weakly with each tag in a list.
fn matches(known: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(known), Ok(tag)) = (known.to_str(), tag.to_str()) else {
        return false;
    };
    let opaque = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    known.trim() == "*" || known.split(',').any(|known| opaque(known) == opaque(tag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_tag_of_the_list_may_match_weakly() {
        let tag = HeaderValue::from_static("W/\"b\"");
        for known in ["\"b\"", "W/\"b\"", "\"a\", W/\"b\"", "*"] {
            assert!(matches(&HeaderValue::from_static(known), &tag), "{known}");
        }
        assert!(!matches(&HeaderValue::from_static("\"a\""), &tag));
    }
}
