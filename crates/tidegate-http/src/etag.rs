//! Entity tags (RFC 9110, section 8.8.3) of documents.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use http::HeaderValue;

/// The entity tag of a document. It is weak, because compression changes the bytes of the document
/// but not its meaning (RFC 9110, section 8.8.1).
#[expect(
    clippy::missing_panics_doc,
    reason = "hex digits and quotes are visible ASCII"
)]
pub fn etag(document: &[u8]) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    document.hash(&mut hasher);
    let tag = format!("W/\"{:016x}\"", hasher.finish());
    HeaderValue::try_from(tag).expect("hex digits and quotes are visible ASCII")
}
