//! Spans of requests (W3C Trace Context).

use std::time::Instant;

use http::{HeaderMap, Method};
use tidegate_sql::Login;

/// Receives the spans of requests that have ended. [`record`](Self::record) must not block, because
/// it is called in the task of the connection.
pub trait SpanSink: Send + Sync {
    /// Receives the span of a request.
    fn record(&self, span: Span);
}

/// The span of a request that has ended.
#[derive(Clone, Debug)]
pub struct Span {
    /// The position of the span in its trace.
    pub context: SpanContext,
    /// When the head of the request was received.
    pub started: Instant,
    /// When the response was sent completely or aborted.
    pub ended: Instant,
    /// The method of the request.
    pub method: Method,
    /// The path of the route, such as `/api/v4/sql/schema/{schema}`; `none` for a request without a
    /// route.
    pub route: &'static str,
    /// The status of the response.
    pub status: u16,
    /// Whether the response was sent completely.
    pub complete: bool,
    /// The id of the request.
    pub request_id: String,
    /// The database and the role that the request ran as; `None` for a request without a role.
    pub login: Option<Login>,
}

/// The position of a span in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanContext {
    /// The id of the trace.
    pub trace: u128,
    /// The id of the span.
    pub span: u64,
    /// The id of the client's span; `None` if the request has no valid `traceparent`.
    pub parent: Option<u64>,
}

impl SpanContext {
    /// A new span. Its parent is the client's span in the header `traceparent`. Without a valid
    /// header, the span is the root of a new trace. `None` if the client's trace is not sampled.
    ///
    /// The id of the span is derived from `node` and `number`, so no two requests may have the same
    /// `node` and `number`.
    pub fn below(headers: &HeaderMap, node: u64, number: u64) -> Option<Self> {
        let span = mix(node ^ mix(number));
        let parent = headers
            .get("traceparent")
            .and_then(|value| parse(value.to_str().ok()?));
        match parent {
            Some((_, _, false)) => None,
            Some((trace, parent, true)) => Some(Self {
                trace,
                span,
                parent: Some(parent),
            }),
            None => {
                let trace = u128::from(mix(span)) << 64 | u128::from(span);
                Some(Self {
                    trace,
                    span,
                    parent: None,
                })
            }
        }
    }
}

/// Parses the header `traceparent`: trace id, span id, and whether the trace is sampled (W3C Trace
/// Context, section 3.2). `None` if the header is invalid.
fn parse(value: &str) -> Option<(u128, u64, bool)> {
    let mut parts = value.trim().split('-');
    let mut hex = |digits: usize| {
        let part = parts.next()?;
        let plain = part
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if plain && part.len() == digits {
            u128::from_str_radix(part, 16).ok()
        } else {
            None
        }
    };
    let (version, trace, span, flags) = (hex(2)?, hex(32)?, hex(16)?, hex(2)?);
    let known = version != 0xff && trace != 0 && span != 0;
    let span = u64::try_from(span).ok()?;
    known.then_some((trace, span, flags & 1 == 1))
}

/// The finalizer of `SplitMix64`, which turns consecutive numbers into ids that look random.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(value: &str) -> Option<SpanContext> {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", value.parse().unwrap());
        SpanContext::below(&headers, 1, 2)
    }

    const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;

    #[test]
    fn the_callers_trace_goes_on() {
        let context = below("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        assert_eq!(
            (context.trace, context.parent),
            (TRACE, Some(0x00f0_67aa_0ba9_02b7))
        );
        assert!(below("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00").is_none());
    }

    #[test]
    fn what_is_no_trace_begins_a_new_one() {
        for value in [
            "nonsense",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
        ] {
            let context = below(value).unwrap();
            assert!(
                context.parent.is_none() && context.trace != TRACE,
                "{value}"
            );
        }
        let other = SpanContext::below(&HeaderMap::new(), 1, 3).unwrap();
        assert_ne!(Some(other), SpanContext::below(&HeaderMap::new(), 1, 2));
    }
}
