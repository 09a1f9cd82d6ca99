//! Compresses answers above 1 KiB for those who ask for it.

use std::ops::ControlFlow;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use http::{Request, Response, StatusCode};

use super::around::Around;
use crate::compress::{self, Compressed, Encoding};
use tidegate_http::body::{Body, Content};

/// Below this a coding costs more than it saves.
const SMALLEST: u64 = 1024;
/// Up to this an answer is compressed at once, so that its length is known; a larger one on the
/// way, so that nobody waits for it.
const AT_ONCE: usize = 64 * 1024;

/// What is never compressed.
const PLAIN: [&[u8]; 2] = [b"text/html", b"text/event-stream"];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Compression;

impl Around for Compression {
    type State = Option<Encoding>;

    fn before<B>(&self, request: &mut Request<B>) -> ControlFlow<Response<Body>, Self::State> {
        ControlFlow::Continue(Encoding::negotiate(request.headers()))
    }

    fn after(encoding: Self::State, response: &mut Response<Body>) {
        // A cache learns from a 304 too what the answer depends on (RFC 9110, section 15.4.5).
        let has_not_changed = response.status() == StatusCode::NOT_MODIFIED;
        // A page holds a secret beside text that others may choose: the length of both compressed
        // together would tell about the secret (BREACH).
        // Events are to arrive when they come; an encoder keeps them until it has enough.
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .map(HeaderValue::as_bytes);
        let as_it_is = |kind: &[u8]| PLAIN.iter().any(|plain| kind.starts_with(plain));
        if kind.is_some_and(as_it_is) {
            return;
        }
        let size = response.body().exact_size();
        if size.is_some_and(|size| size <= SMALLEST) && !has_not_changed {
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
            Content::Whole(bytes) if bytes.len() <= AT_ONCE => {
                match compress::whole(bytes, encoding) {
                    Ok(compressed) => Content::Whole(compressed),
                    // An encoder without memory; the answer goes as it is.
                    Err(_) => return,
                }
            }
            other => Content::Streamed(Box::pin(Compressed::new(other.take(), encoding))),
        };
        *content = compressed;
        let name = HeaderValue::from_static(encoding.name());
        response.headers_mut().insert(CONTENT_ENCODING, name);
    }
}
