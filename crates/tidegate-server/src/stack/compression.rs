//! The layer that compresses responses above 1 KiB for clients that accept it.

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use http::{Response, StatusCode};

use crate::compress::{self, Compressed, Encoding};
use tidegate_http::body::{Body, Content};

/// The smallest response that is compressed, in bytes. Below this, compression costs more than it
/// saves.
const MIN_SIZE: u64 = 1024;
/// The size up to which a response is compressed before it is sent, so that its length is known. A
/// larger response is compressed while it is sent.
const MAX_BUFFERED: usize = 64 * 1024;

/// The media types that are never compressed.
const UNCOMPRESSED: [&[u8]; 2] = [b"text/html", b"text/event-stream"];

/// Compresses the response with the coding that was negotiated with the client.
pub(super) fn after(encoding: Option<Encoding>, response: &mut Response<Body>) {
    // A 304 must also say on which headers the response depends (RFC 9110, section 15.4.5).
    let has_not_changed = response.status() == StatusCode::NOT_MODIFIED;
    // A page contains a secret, and text that an attacker may choose. The compressed length of both
    // would reveal the secret (BREACH). Events must be sent at once, but an encoder buffers them.
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .map(HeaderValue::as_bytes);
    let as_it_is = |kind: &[u8]| UNCOMPRESSED.iter().any(|plain| kind.starts_with(plain));
    if kind.is_some_and(as_it_is) {
        return;
    }
    let size = response.body().exact_size();
    if size.is_some_and(|size| size <= MIN_SIZE) && !has_not_changed {
        return;
    }
    response
        .headers_mut()
        .append(VARY, HeaderValue::from_static("Accept-Encoding"));
    let Some(encoding) = encoding.filter(|_| !has_not_changed) else {
        return;
    };
    let content = response.body_mut().content_mut();
    let compressed = match &mut *content {
        Content::Whole(bytes) if bytes.len() <= MAX_BUFFERED => {
            match compress::whole(bytes, encoding) {
                Ok(compressed) => Content::Whole(compressed),
                // Without memory for an encoder, the response is sent uncompressed.
                Err(_) => return,
            }
        }
        other => Content::Streamed(Box::pin(Compressed::new(other.take(), encoding))),
    };
    *content = compressed;
    let name = HeaderValue::from_static(encoding.name());
    response.headers_mut().insert(CONTENT_ENCODING, name);
}
