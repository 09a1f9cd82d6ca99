#![doc = include_str!("../README.md")]

mod account;
mod account_linking;
mod authorize;
mod confirm_sign_up;
mod context;
mod cookie;
mod device;
mod email_sign_in;
mod failure;
mod form_error;
mod overview;
mod passkeys;
mod provider_sign_in;
mod providers;
mod purpose;
mod reauthentication;
mod received;
mod reset;
mod sign_in;
mod sign_in_link;
mod sign_out;
mod sign_up;
mod template;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderValue, Response};

pub use account::account;
pub use authorize::authorize;
pub use confirm_sign_up::confirm;
pub use device::device;
pub use email_sign_in::email_sign_in;
pub use failure::{Site, failure};
pub use provider_sign_in::{
    begin as begin_provider_sign_in, complete as complete_provider_sign_in,
};
pub use reset::reset;
pub use sign_in_link::sign_in_link;
pub use sign_out::sign_out;
pub use sign_up::sign_up;

use crate::template::{ICON, PASSKEYS, STYLE};
use tidegate_http::body::Body;
use tidegate_http::call::{CACHE_FIVE_MINUTES, json};
use tidegate_http::etag::etag;

/// Handles `GET /assets/tidegate.css`.
pub fn stylesheet() -> Response<Body> {
    asset(STYLE, HeaderValue::from_static("text/css; charset=utf-8"))
}

/// Handles `GET /assets/passkeys.js`, the only script of the pages.
pub fn passkeys_script() -> Response<Body> {
    let kind = HeaderValue::from_static("text/javascript; charset=utf-8");
    asset(PASSKEYS, kind)
}

/// Handles `GET /favicon.ico`, which browsers request by default. The icon is an SVG image:
/// browsers decide by the media type, not by the extension.
pub fn icon() -> Response<Body> {
    asset(ICON, HeaderValue::from_static("image/svg+xml"))
}

fn asset(text: &'static str, kind: HeaderValue) -> Response<Body> {
    let text = Bytes::from_static(text.as_bytes());
    let tag = etag(&text);
    let mut response = json(text, CACHE_FIVE_MINUTES);
    let headers = response.headers_mut();
    headers.insert(ETAG, tag);
    headers.insert(CONTENT_TYPE, kind);
    headers.insert(
        "x-content-type-options",
        HeaderValue::from_static("nosniff"),
    );
    response
}
