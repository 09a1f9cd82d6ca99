//! Tests of responses that are sent while the statement runs.

use std::pin::Pin;

use bytes::Bytes;
use http::{Method, Response};
use http_body::Body as _;
use http_body_util::{BodyExt as _, Full};
use serde_json::json;
use tidegate_server::{Body, service};
use tower::Service as _;

use crate::fixture::{Api, eventually, request};

async fn ndjson(api: &Api, q: &str) -> Response<Body> {
    let body = json!({"q": q, "output_format": "ndjson"}).to_string();
    let request = request(Method::POST, "/api/v4/sql")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    service(api.app.clone(), api.peer)
        .call(request)
        .await
        .unwrap()
}

#[tokio::test]
async fn a_small_response_has_a_length() {
    let api = Api::start().await;
    let response = ndjson(&api, "select rows 50 1000").await;
    assert_eq!(response.body().size_hint().exact(), Some(50 * 1_009));
}

#[tokio::test]
async fn a_response_of_one_chunk_and_a_bit_is_whole() {
    let api = Api::start().await;
    for rows in [64, 65, 66, 129, 130, 131, 200] {
        let response = ndjson(&api, &format!("select rows {rows} 1000")).await;
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.len(), rows * 1_009, "{rows}");
        assert!(body.ends_with(b"}\n"));
    }
}

#[tokio::test]
async fn an_error_before_the_first_chunk_is_an_error() {
    let api = Api::start().await;
    let response = ndjson(&api, "select fail 20 22012 1000").await;
    assert_eq!(response.status(), 400);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert!(body.starts_with(b"{\"success\":false"));
}

#[tokio::test]
async fn an_error_after_the_first_chunk_breaks_the_response_off() {
    let api = Api::start().await;
    let response = ndjson(&api, "select fail 500 22012 1000").await;
    assert_eq!(response.status(), 200);
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test]
async fn a_reader_that_stands_still_holds_the_statement_back() {
    let api = Api::start().await;
    let response = ndjson(&api, "select rows 100000 1000").await;
    assert!(
        api.executor.sent() < 200_000,
        "{} bytes for nobody",
        api.executor.sent()
    );
    let mut body = response.into_body();
    for _ in 0..3 {
        body.frame().await.unwrap().unwrap();
    }
    assert!(
        api.executor.sent() < 500_000,
        "{} bytes for three chunks",
        api.executor.sent()
    );
    assert_eq!(api.executor.cancelled(), 0);
    drop(body);
    assert_eq!(api.executor.cancelled(), 1);
}

#[tokio::test]
async fn bytes_leave_before_the_statement_ends() {
    let api = Api::start().await;
    let response = ndjson(&api, "select hang 100 1000").await;
    let mut body = response.into_body();
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert!(first.len() >= 64 * 1024);
    let waits = std::future::poll_fn(|cx| {
        std::task::Poll::Ready(Pin::new(&mut body).poll_frame(cx).is_pending())
    });
    assert!(waits.await);
}

#[tokio::test]
async fn a_call_that_is_dropped_cancels_its_statement() {
    let api = Api::start().await;
    for body in [
        json!({"q": "select hang 0 0"}),
        json!([{"q": "select hang 0 0"}]),
    ] {
        let before = api.executor.cancelled();
        let request = request(Method::POST, "/api/v4/sql");
        let request = request
            .body(Full::new(Bytes::from(body.to_string())))
            .unwrap();
        let call = tokio::spawn(service(api.app.clone(), api.peer).call(request));
        eventually("the statement runs", async || {
            api.executor.calls().len() > before
        })
        .await;
        call.abort();
        eventually("it is cancelled", async || {
            api.executor.cancelled() == before + 1
        })
        .await;
    }
}
