//! The request handlers of the pages. The issuer decides; the templates are in [`crate::page`].

mod account;
mod account_linking;
mod authorize;
mod confirm_sign_up;
mod context;
mod cookie;
mod device;
pub(crate) mod provider_sign_in;
mod reset;
mod sign_in;
mod sign_in_link;
mod sign_out;
mod sign_up;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderValue, Response};

pub(crate) use account::account;
pub(crate) use authorize::authorize;
pub(crate) use confirm_sign_up::confirm;
pub(crate) use device::device;
pub(crate) use reset::reset;
pub(crate) use sign_in_link::sign_in_link;
pub(crate) use sign_out::sign_out;
pub(crate) use sign_up::sign_up;

use crate::body::Body;
use crate::page::{ICON, STYLE};
use crate::stack::etag;

/// `GET /assets/tidegate.css`
pub(crate) fn stylesheet() -> Response<Body> {
    asset(STYLE, HeaderValue::from_static("text/css; charset=utf-8"))
}

/// `GET /favicon.ico`, which browsers request by default. They use the media type, not the
/// extension.
pub(crate) fn icon() -> Response<Body> {
    asset(ICON, HeaderValue::from_static("image/svg+xml"))
}

fn asset(text: &'static str, kind: HeaderValue) -> Response<Body> {
    let text = Bytes::from_static(text.as_bytes());
    let tag = etag(&text);
    let mut response = super::json(text, super::documents::MINUTES);
    let headers = response.headers_mut();
    headers.insert(ETAG, tag);
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    response
}
