//! Encodes spans as the JSON of OTLP (opentelemetry-proto, `ExportTraceServiceRequest`).

use std::time::Instant;

use bytes::Bytes;
use serde_json::{Value, json};
use tidegate_identity::Timestamp;

use tidegate_http::trace::Span;

/// The kind of the spans of a server that handles requests (`SpanKind`).
const KIND_SERVER: u8 = 2;
const STATUS_UNSET: u8 = 0;
const STATUS_ERROR: u8 = 2;

/// The body of an export request that sends `spans`. `now` is the current time, from which the
/// times of the spans are computed.
pub(super) fn encode(spans: &[Span], service: &str, now: Timestamp) -> Bytes {
    let instant = Instant::now();
    let spans: Vec<Value> = spans
        .iter()
        .map(|span| encode_span(span, now, instant))
        .collect();
    let body = json!({"resourceSpans": [{
        "resource": {"attributes": [text("service.name", service)]},
        "scopeSpans": [{"scope": {"name": "tidegate"}, "spans": spans}],
    }]});
    body.to_string().into()
}

fn encode_span(span: &Span, now: Timestamp, instant: Instant) -> Value {
    let nanos = |at: Instant| {
        let ago = i128::try_from(instant.saturating_duration_since(at).as_nanos()).unwrap_or(0);
        (i128::from(now.millis()) * 1_000_000 - ago).to_string()
    };
    let mut attributes = vec![
        text("http.request.method", span.method.as_str()),
        text("http.route", span.route),
        json!({"key": "http.response.status_code", "value": {"intValue": span.status.to_string()}}),
        text("tidegate.request_id", &span.request_id),
    ];
    if let Some(login) = &span.login {
        attributes.push(text("db.namespace", login.database.as_str()));
        attributes.push(text("tidegate.role", login.role.as_str()));
    }
    let failed = span.status >= 500 || !span.complete;
    let mut encoded = json!({
        "traceId": format!("{:032x}", span.context.trace),
        "spanId": format!("{:016x}", span.context.span),
        "name": format!("{} {}", span.method, span.route),
        "kind": KIND_SERVER,
        "startTimeUnixNano": nanos(span.started),
        "endTimeUnixNano": nanos(span.ended),
        "attributes": attributes,
        "status": {"code": if failed { STATUS_ERROR } else { STATUS_UNSET }},
    });
    if let Some(parent) = span.context.parent {
        encoded["parentSpanId"] = format!("{parent:016x}").into();
    }
    encoded
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}
