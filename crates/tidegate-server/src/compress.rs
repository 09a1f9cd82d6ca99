//! Compresses responses of more than 1 KiB with gzip (RFC 1952) or zstd (RFC 8878), for clients
//! that accept one of them.

use std::io::{self, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};

use tidegate_http::body::{Body, BodyAborted, BodySource, Content};

/// The compression level of gzip. It is low, because a response is compressed once and read once.
const GZIP_LEVEL: u32 = 4;
/// The compression level of zstd. It is low for the same reason as [`GZIP_LEVEL`].
const ZSTD_LEVEL: i32 = 3;
/// The largest response that is not compressed, in bytes. For such a small response, compression
/// costs more than it saves.
const MAX_UNCOMPRESSED: u64 = 1024;
/// The maximum size in bytes of a response that is compressed completely before it is sent. Its
/// compressed length is then known. A larger response is compressed while it is sent.
const MAX_BUFFERED: usize = 64 * 1024;

/// The media types that are never compressed.
const UNCOMPRESSED: [&[u8]; 2] = [b"text/html", b"text/event-stream"];

/// A content coding that the service supports (RFC 9110, section 8.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Gzip,
    Zstd,
}

impl Encoding {
    /// The content coding that the request prefers (RFC 9110, section 12.5.3), or zstd if it
    /// accepts both equally. `None` if it accepts neither.
    pub(crate) fn negotiate(headers: &HeaderMap) -> Option<Self> {
        let (mut gzip, mut zstd, mut others) = (None, None, None);
        for line in headers.get_all(ACCEPT_ENCODING) {
            for item in line.to_str().ok()?.split(',') {
                let (name, quality) = tidegate_http::negotiate::weighted(item);
                match name {
                    "gzip" | "x-gzip" => gzip = Some(quality),
                    "zstd" => zstd = Some(quality),
                    "*" => others = Some(quality),
                    _ => {}
                }
            }
        }
        // `*` matches every coding that the header does not list (RFC 9110, section 12.5.3). Here
        // `*` allows gzip only, because some clients that send `*` do not support zstd.
        let gzip = gzip.or(others).unwrap_or(0.0);
        let zstd = zstd.unwrap_or(0.0);
        if zstd > 0.0 && zstd >= gzip {
            return Some(Self::Zstd);
        }
        (gzip > 0.0).then_some(Self::Gzip)
    }

    /// The value of `Content-Encoding`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

enum Encoder {
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Zstd(zstd::stream::write::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    fn new(encoding: Encoding) -> io::Result<Self> {
        Ok(match encoding {
            Encoding::Gzip => {
                let level = flate2::Compression::new(GZIP_LEVEL);
                Self::Gzip(flate2::write::GzEncoder::new(Vec::new(), level))
            }
            Encoding::Zstd => {
                Self::Zstd(zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)?)
            }
        })
    }

    /// Adds input. Returns the output that is ready, which may be empty.
    fn write(&mut self, bytes: &[u8]) -> io::Result<Vec<u8>> {
        Ok(match self {
            Self::Gzip(encoder) => {
                encoder.write_all(bytes)?;
                std::mem::take(encoder.get_mut())
            }
            Self::Zstd(encoder) => {
                encoder.write_all(bytes)?;
                std::mem::take(encoder.get_mut())
            }
        })
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Gzip(encoder) => encoder.finish(),
            Self::Zstd(encoder) => encoder.finish(),
        }
    }
}

/// Compresses the response with the coding that was negotiated with the client.
pub(crate) fn response(encoding: Option<Encoding>, response: &mut Response<Body>) {
    // A 304 must have the same `Vary` as the 200 would have (RFC 9110, section 15.4.5).
    let has_not_changed = response.status() == StatusCode::NOT_MODIFIED;
    // HTML is not compressed. The sign-in pages contain a secret (the form token) beside text that
    // an attacker may choose, so the compressed length could reveal the secret (the attack BREACH).
    // Events are not compressed, because they must be sent without delay, and an encoder would
    // buffer them.
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .map(HeaderValue::as_bytes);
    let as_it_is = |kind: &[u8]| UNCOMPRESSED.iter().any(|plain| kind.starts_with(plain));
    if kind.is_some_and(as_it_is) {
        return;
    }
    let size = response.body().exact_size();
    if size.is_some_and(|size| size <= MAX_UNCOMPRESSED) && !has_not_changed {
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
            match whole(bytes, encoding) {
                Ok(compressed) => Content::Whole(compressed),
                // If there is no memory for an encoder, the response is sent uncompressed.
                Err(_) => return,
            }
        }
        other => Content::Streamed(Box::pin(Compressed::new(other.take(), encoding))),
    };
    *content = compressed;
    let name = HeaderValue::from_static(encoding.name());
    response.headers_mut().insert(CONTENT_ENCODING, name);
}

/// Compresses bytes that are complete in memory.
fn whole(bytes: &[u8], encoding: Encoding) -> io::Result<Bytes> {
    let mut encoder = Encoder::new(encoding)?;
    let mut head = encoder.write(bytes)?;
    let tail = encoder.finish()?;
    head.extend_from_slice(&tail);
    Ok(head.into())
}

/// Compresses the content of a response while it is sent.
struct Compressed {
    inner: Content,
    encoding: Encoding,
    /// The encoder, which is created with the first bytes.
    encoder: Option<Encoder>,
    ended: bool,
}

impl Compressed {
    fn new(inner: Content, encoding: Encoding) -> Self {
        Self {
            inner,
            encoding,
            encoder: None,
            ended: false,
        }
    }

    /// Compresses more input; `None` ends the stream. Returns the output that is ready, which may
    /// be empty.
    fn compress(&mut self, bytes: Option<&[u8]>) -> io::Result<Vec<u8>> {
        let mut encoder = match self.encoder.take() {
            Some(encoder) => encoder,
            None => Encoder::new(self.encoding)?,
        };
        let Some(bytes) = bytes else {
            return encoder.finish();
        };
        let compressed = encoder.write(bytes);
        self.encoder = Some(encoder);
        compressed
    }
}

impl BodySource for Compressed {
    fn is_statement(&self) -> bool {
        self.inner.is_statement()
    }

    fn poll_next(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, BodyAborted>>> {
        while !self.ended {
            let bytes = match ready!(self.inner.poll_next(cx)) {
                Some(Ok(bytes)) => Some(bytes),
                Some(Err(BodyAborted)) => return INTERRUPTED,
                None => None,
            };
            self.ended = bytes.is_none();
            match self.compress(bytes.as_deref()) {
                Ok(bytes) if bytes.is_empty() => {}
                Ok(bytes) => return Poll::Ready(Some(Ok(bytes.into()))),
                Err(_) => return INTERRUPTED,
            }
        }
        Poll::Ready(None)
    }
}

const INTERRUPTED: Poll<Option<Result<Bytes, BodyAborted>>> = Poll::Ready(Some(Err(BodyAborted)));

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(value: &str) -> Option<Encoding> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, value.parse().unwrap());
        Encoding::negotiate(&headers)
    }

    #[test]
    fn the_preferred_coding_is_chosen() {
        assert_eq!(chosen("gzip, deflate, br"), Some(Encoding::Gzip));
        assert_eq!(chosen("gzip, deflate, br, zstd"), Some(Encoding::Zstd));
        assert_eq!(chosen("zstd;q=0.5, gzip;q=0.9"), Some(Encoding::Gzip));
        assert_eq!(chosen("gzip;q=0, zstd;q=0"), None);
        assert_eq!(chosen("*"), Some(Encoding::Gzip));
        assert_eq!(chosen("gzip;q=0, *"), None);
        assert_eq!(chosen("zstd;q=0, gzip;q=0, *;q=1"), None);
        assert_eq!(chosen("gzip;q=0, zstd, *"), Some(Encoding::Zstd));
        assert_eq!(chosen("br"), None);
        assert_eq!(chosen("identity"), None);
        assert_eq!(Encoding::negotiate(&HeaderMap::new()), None);
    }
}
