//! Reads request bodies, with limits on size and time.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, TRANSFER_ENCODING};
use tokio::time::Instant;

use crate::error::ApiError;
use crate::limits::Limits;
use crate::memory::{Exhausted, Reservation};

/// The maximum number of bytes that are read and discarded if a body is too large. Many clients
/// read the response only after they have sent the whole body. If the service closed the connection
/// without reading the body, these clients would see a broken connection instead of the error.
const DISCARDED: u64 = 64 << 20;
/// The maximum time for reading and discarding a body that is too large.
const DISCARDING: Duration = Duration::from_secs(2);

/// The maximum size in bytes of a body that needs no reservation in the memory budget.
const SMALL: u64 = 64 * 1024;

/// The error of a connection while a request body is read.
pub type BodyError = Box<dyn std::error::Error + Send + Sync>;

/// A request body that has not been read yet.
pub trait IncomingBody:
    http_body::Body<Data = Bytes, Error: Into<BodyError>> + Send + Unpin
{
}

impl<B> IncomingBody for B where
    B: http_body::Body<Data = Bytes, Error: Into<BodyError>> + Send + Unpin
{
}

/// A request body that has been read completely.
pub struct RequestBody {
    /// The bytes.
    pub bytes: Bytes,
    /// The reservation in the memory budget for the bytes, held until the request has ended.
    _reservation: Reservation,
}

opaque_debug!(RequestBody);

/// Reads a body. A body of at most 64 KiB that arrives in a single piece is not copied.
///
/// # Errors
///
/// 413 if the body or its `Content-Length` is larger than the limit; 408 if the body is sent too
/// slowly; 415 if it is compressed; 429 if the memory budget is used up; 400 if the connection is
/// closed.
pub async fn read<B: IncomingBody>(
    mut body: B,
    headers: &HeaderMap,
    limits: &Limits,
    mut reservation: Reservation,
) -> Result<RequestBody, ApiError> {
    if headers
        .get(CONTENT_ENCODING)
        .is_some_and(|coding| coding != "identity")
        || headers
            .get(TRANSFER_ENCODING)
            .is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
    {
        return Err(ApiError::unsupported_media_type(
            "the body must not be compressed",
        ));
    }
    let announced = headers
        .get(CONTENT_LENGTH)
        .and_then(|size| size.to_str().ok()?.parse().ok());
    if announced.is_some_and(|size: u64| size > limits.request_body) {
        // A client that waits for `100 Continue` has not sent anything of the body yet, so there is
        // nothing to discard.
        if !headers.contains_key(EXPECT) {
            discard(body, DISCARDED, DISCARDING).await;
        }
        return Err(too_large(limits));
    }
    let deadline = Instant::now() + limits.timeouts.body;
    let small = SMALL.min(limits.request_body);
    let bytes = match next(&mut body, deadline).await? {
        None => Bytes::new(),
        Some(first) if body.is_end_stream() && first.len() as u64 <= small => first,
        Some(first) => collect(first, body, limits, (&mut reservation, deadline)).await?,
    };
    Ok(RequestBody {
        bytes,
        _reservation: reservation,
    })
}

/// Reads the rest of a body whose first piece has arrived.
async fn collect<B: IncomingBody>(
    first: Bytes,
    mut body: B,
    limits: &Limits,
    (reservation, mut deadline): (&mut Reservation, Instant),
) -> Result<Bytes, ApiError> {
    let mut paid = SMALL;
    let mut whole = BytesMut::from(first);
    // The operating system provides memory only when the memory is written to. Therefore a client
    // that announces a large body and does not send it costs no memory.
    let announced = body.size_hint().lower().min(limits.request_body);
    whole.reserve(usize::try_from(announced).unwrap_or_default());
    loop {
        let size = whole.len() as u64;
        if size > limits.request_body {
            drop(whole);
            discard(body, DISCARDED, DISCARDING).await;
            return Err(too_large(limits));
        }
        if size > paid {
            reservation
                .take(size - paid)
                .map_err(|Exhausted| ApiError::exhausted())?;
            paid = size;
        }
        let Some(bytes) = next(&mut body, deadline).await? else {
            return Ok(whole.freeze());
        };
        deadline = extended(deadline, bytes.len(), limits);
        whole.extend_from_slice(&bytes);
    }
}

/// The deadline for the next bytes, after `size` bytes were received. Each byte extends the
/// deadline by the time that a byte takes at the minimum rate, `timeouts.body_rate`. The new
/// deadline is at most `timeouts.body` after the current time.
fn extended(deadline: Instant, size: usize, limits: &Limits) -> Instant {
    let rate = limits.timeouts.body_rate.max(1);
    let earned = Duration::from_millis((size as u64).saturating_mul(1_000) / rate);
    (deadline + earned).min(Instant::now() + limits.timeouts.body)
}

async fn next<B: IncomingBody>(body: &mut B, deadline: Instant) -> Result<Option<Bytes>, ApiError> {
    loop {
        let frame = poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx));
        match tokio::time::timeout_at(deadline, frame).await {
            Err(_) => return Err(ApiError::body_timeout()),
            Ok(None) => return Ok(None),
            Ok(Some(Err(_))) => return Err(ApiError::input("the request body broke off")),
            // Trailers are not part of the body.
            Ok(Some(Ok(frame))) => {
                if let Ok(bytes) = frame.into_data() {
                    return Ok(Some(bytes));
                }
            }
        }
    }
}

/// Reads and discards a body, but at most `most` bytes and for at most `time`. Returns whether the
/// body ended within these limits.
pub async fn discard<B: IncomingBody>(mut body: B, most: u64, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    let mut left = most;
    loop {
        match next(&mut body, deadline).await {
            Ok(None) => return true,
            Err(_) => return false,
            Ok(Some(bytes)) => match left.checked_sub(bytes.len() as u64) {
                Some(rest) => left = rest,
                None => return false,
            },
        }
    }
}

fn too_large(limits: &Limits) -> ApiError {
    ApiError::too_large(format!(
        "the request body is larger than {} bytes",
        limits.request_body
    ))
}
