//! Tests of the export of spans to a collector.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_identity::{ManualClock, Timestamp};
use tidegate_server::{Exporter, OtlpError};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::fixture::{Api, TIMEOUT};

fn exporter(address: &str) -> Result<(Exporter, impl Future<Output = ()> + use<>), OtlpError> {
    let clock = ManualClock::new(Timestamp::from_seconds(1_800_000_000));
    Exporter::new(address, "here", Arc::new(clock))
}

/// Accepts one request of the exporter; returns its head and body.
async fn collected(socket: TcpListener) -> (String, Value) {
    let (mut stream, _) = socket.accept().await.unwrap();
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        if let Ok(body) = serde_json::from_str(body) {
            stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
                .await
                .unwrap();
            return (head.to_owned(), body);
        }
    }
}

#[tokio::test]
async fn a_request_becomes_a_span_below_its_callers() {
    let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", socket.local_addr().unwrap());
    let (exporter, work) = exporter(&address).unwrap();
    tokio::spawn(work);
    let api = Api::with(|builder| builder.spans(Arc::new(exporter))).await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    api.sql_with("traceparent", parent, &json!({"q": "select rows 1 1"}))
        .await;
    let unwanted = parent.replace("-01", "-00");
    api.sql_with("traceparent", &unwanted, &json!({"q": "select rows 1 1"}))
        .await;

    let (head, body) = tokio::time::timeout(TIMEOUT, collected(socket))
        .await
        .unwrap();
    assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
    assert_eq!(
        body["resourceSpans"][0]["resource"]["attributes"],
        json!([{"key": "service.name", "value": {"stringValue": "here"}}])
    );
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"]
        .as_array()
        .unwrap();
    assert_eq!(spans.len(), 1);
    let span = &spans[0];
    assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(span["parentSpanId"], "00f067aa0ba902b7");
    assert_eq!(span["name"], "POST /api/v4/sql");
    assert_eq!(
        (&span["kind"], &span["status"]["code"]),
        (&json!(2), &json!(0))
    );
    let time = |name: &str| span[name].as_str().unwrap().parse::<i128>().unwrap();
    let now = 1_800_000_000_000_000_000;
    assert!(time("startTimeUnixNano") <= time("endTimeUnixNano") && time("endTimeUnixNano") <= now);
    assert!(now - time("startTimeUnixNano") < 20_000_000_000);
    let role = json!({"key": "tidegate.role", "value": {"stringValue": "demo/guest"}});
    assert!(
        span["attributes"].as_array().unwrap().contains(&role),
        "{span}"
    );
    assert!(
        !body.to_string().contains("select rows"),
        "no SQL leaves the service"
    );
}

#[tokio::test]
async fn a_collector_that_is_away_costs_spans_only() {
    let (exporter, work) = exporter("http://127.0.0.1:1").unwrap();
    tokio::spawn(work);
    let api = Api::with(|builder| builder.spans(Arc::new(exporter))).await;
    for _ in 0..3 {
        assert_eq!(api.sql(&json!({"q": "select rows 1 1"})).await.status, 200);
    }
}

#[test]
fn an_address_that_cannot_be_used_is_refused() {
    for address in ["", "127.0.0.1:4318", "https://collector.example", "http://"] {
        assert!(
            matches!(exporter(address), Err(OtlpError::Address(_))),
            "{address}"
        );
    }
}
