//! Spans of requests, for whoever collects them (W3C Trace Context).

use std::time::Instant;

use http::{HeaderMap, Method};
use tidegate_sql::Login;

/// Takes the spans of requests that are over. It must not wait: requests end while it runs.
pub trait SpanSink: Send + Sync {
    /// Takes a span.
    fn record(&self, span: Span);
}

/// A request that is over.
#[derive(Clone, Debug)]
pub struct Span {
    /// Where it stands in its trace.
    pub place: Place,
    /// When its head was there.
    pub started: Instant,
    /// When the end of its answer had gone.
    pub ended: Instant,
    /// Its method.
    pub method: Method,
    /// Its route, such as `/api/v4/sql/schema/{schema}`; `none` when there is none.
    pub route: &'static str,
    /// The answer's status.
    pub status: u16,
    /// Whether the answer reached its end.
    pub complete: bool,
    /// Its request id.
    pub request_id: String,
    /// As whom it ran.
    pub login: Option<Login>,
}

/// Where a span stands in its trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The trace.
    pub trace: u128,
    /// The span.
    pub span: u64,
    /// The caller's span, when it sent one.
    pub parent: Option<u64>,
}

impl Place {
    /// The place below the caller's span in `traceparent`, or the root of a new trace; `None` when
    /// the caller does not want its trace recorded.
    ///
    /// `node` and `number` together must be new: the span's id is made of them.
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

/// Trace, span, and whether it is recorded (W3C Trace Context, section 3.2).
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

/// `SplitMix64`'s finish: numbers that follow each other become ids that do not.
fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(value: &str) -> Option<Place> {
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", value.parse().unwrap());
        Place::below(&headers, 1, 2)
    }

    const TRACE: u128 = 0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736;

    #[test]
    fn the_callers_trace_goes_on() {
        let place = below("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
        assert_eq!(
            (place.trace, place.parent),
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
            let place = below(value).unwrap();
            assert!(place.parent.is_none() && place.trace != TRACE, "{value}");
        }
        let other = Place::below(&HeaderMap::new(), 1, 3).unwrap();
        assert_ne!(Some(other), Place::below(&HeaderMap::new(), 1, 2));
    }
}
