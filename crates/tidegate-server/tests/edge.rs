//! Tests of what every response has: request ids, errors, compression, HEAD.

use std::io::Read as _;

use http::{Method, StatusCode};
use serde_json::json;
use tidegate_server::Limits;

use crate::fixture::{Api, request};

#[tokio::test]
async fn every_response_carries_a_request_id() {
    let api = Api::start().await;
    for (sent, kept) in [
        ("mine-1", true),
        ("a b", false),
        (&"x".repeat(128), true),
        (&"x".repeat(129), false),
        ("", false),
    ] {
        let response = api
            .call(
                request(Method::GET, "/healthz")
                    .header("x-request-id", sent)
                    .body(String::new())
                    .unwrap(),
            )
            .await;
        assert_eq!(response.header("x-request-id") == sent, kept, "{sent}");
        assert!(!response.header("x-request-id").is_empty());
    }
    let (one, two) = (api.get("/nowhere").await, api.get("/nowhere").await);
    assert_ne!(one.header("x-request-id"), two.header("x-request-id"));
    assert_eq!(one.header("x-request-id").len(), 33);
}

#[tokio::test]
async fn a_refusal_is_exactly_this_body() {
    let api = Api::start().await;
    let response = api.get("/api/v4/nowhere").await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
    assert_eq!(
        response.header("content-type"),
        "application/json; charset=utf-8"
    );
    assert_eq!(
        response.text(),
        r#"{"success":false,"message":"there is no such path","code":404,"errorCode":"NOT_FOUND"}"#
    );
}

#[tokio::test]
async fn another_method_names_those_that_are_allowed() {
    let api = Api::start().await;
    for (method, path, allow) in [
        (Method::PUT, "/api/v4/sql", "POST, OPTIONS"),
        (Method::GET, "/api/v4/oauth", "POST, OPTIONS"),
        (
            Method::POST,
            "/api/v4/sql/schema/public",
            "GET, HEAD, OPTIONS",
        ),
    ] {
        let response = api
            .call(request(method, path).body(String::new()).unwrap())
            .await;
        assert_eq!(response.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(response.header("allow"), allow);
        assert_eq!(response.error(), (405, "METHOD_NOT_ALLOWED".to_owned()));
    }
}

#[tokio::test]
async fn only_json_is_taken_by_the_sql_endpoint() {
    let api = Api::start().await;
    let body = json!({"q": "select rows 1 1"});
    for kind in [
        "application/json",
        "application/json; charset=utf-8",
        "APPLICATION/JSON;charset=x",
    ] {
        assert_eq!(
            api.sql_with("content-type", kind, &body).await.status,
            200,
            "{kind}"
        );
    }
    for kind in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/xml",
    ] {
        let response = api.sql_with("content-type", kind, &body).await;
        assert_eq!(
            response.error(),
            (415, "UNSUPPORTED_MEDIA_TYPE".to_owned()),
            "{kind}"
        );
    }
    let response = api.sql_with("content-encoding", "gzip", &body).await;
    assert_eq!(response.error(), (415, "UNSUPPORTED_MEDIA_TYPE".to_owned()));
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_refused_with_or_without_content_length() {
    let api = Api::limited(Limits {
        request_body: 1_000,
        ..Limits::default()
    })
    .await;
    let fitting = json!({"q": format!("select rows 1 1 -- {}", "x".repeat(900))});
    assert_eq!(api.sql(&fitting).await.status, 200);
    let large = json!({"q": "x".repeat(1_000)});
    assert_eq!(
        api.sql(&large).await.error(),
        (413, "PAYLOAD_TOO_LARGE".to_owned())
    );
    let reported = api.sql_with("content-length", "1001", &large).await;
    assert_eq!(reported.error(), (413, "PAYLOAD_TOO_LARGE".to_owned()));
}

#[tokio::test]
async fn a_panic_is_a_response_without_its_message() {
    let api = Api::start().await;
    let response = api.sql(&json!({"q": "select panic"})).await;
    assert_eq!(response.error(), (500, "INTERNAL_ERROR".to_owned()));
    assert!(!response.text().contains("script"));
    assert!(!response.header("x-request-id").is_empty());
    assert_eq!(api.sql(&json!({"q": "select rows 1 1"})).await.status, 200);
}

#[tokio::test]
async fn responses_above_a_kibibyte_are_compressed_for_those_who_ask() {
    let api = Api::start().await;
    let large = json!({"q": "select rows 1 5000"});
    let plain = api.sql(&large).await;
    assert!(plain.header("content-encoding").is_empty());
    assert_eq!(plain.header("vary"), "Accept-Encoding");
    for coding in ["gzip", "zstd"] {
        let response = api.sql_with("accept-encoding", coding, &large).await;
        assert_eq!(response.header("content-encoding"), coding);
        assert_eq!(response.header("vary"), "Accept-Encoding");
        assert!(response.body.len() < 1_000);
        assert_eq!(decoded(coding, &response.body), plain.body);
    }
    let small = api
        .sql_with("accept-encoding", "gzip", &json!({"q": "select rows 1 10"}))
        .await;
    assert!(small.header("content-encoding").is_empty() && small.header("vary").is_empty());
}

#[tokio::test]
async fn large_and_streamed_responses_are_compressed_on_the_way() {
    let api = Api::start().await;
    for body in [
        json!({"q": "select rows 900 1000"}),
        json!({"q": "select rows 900 1000", "output_format": "ndjson"}),
        json!({"q": "select rows 100 1000", "output_format": "csv"}),
    ] {
        let plain = api.sql(&body).await;
        for coding in ["gzip", "zstd"] {
            let response = api.sql_with("accept-encoding", coding, &body).await;
            assert_eq!(response.header("content-encoding"), coding);
            assert!(response.body.len() < plain.body.len() / 10);
            assert_eq!(decoded(coding, &response.body), plain.body);
        }
    }
}

fn decoded(coding: &str, body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match coding {
        "gzip" => flate2::read::GzDecoder::new(body)
            .read_to_end(&mut plain)
            .unwrap(),
        _ => zstd::stream::read::Decoder::new(body)
            .unwrap()
            .read_to_end(&mut plain)
            .unwrap(),
    };
    plain
}

#[tokio::test]
async fn head_is_the_head_of_get() {
    let api = Api::start().await;
    for path in ["/api/v4/openapi.json", "/healthz", "/.well-known/jwks.json"] {
        let get = api.get(path).await;
        let head = api
            .call(request(Method::HEAD, path).body(String::new()).unwrap())
            .await;
        assert_eq!(head.status, get.status);
        assert!(head.body.is_empty());
        assert_eq!(head.header("content-length"), get.body.len().to_string());
        assert_eq!(head.header("content-type"), get.header("content-type"));
        assert_eq!(head.header("etag"), get.header("etag"));
    }
}

#[tokio::test]
async fn a_response_of_a_kibibyte_is_sent_as_it_is_and_one_byte_more_is_compressed() {
    let api = Api::start().await;
    let of = |size: usize| json!({"q": format!("select rows 1 {size}")});
    let around = api.sql(&of(1)).await.body.len() - 1;
    for (size, coding) in [(1024, ""), (1025, "gzip")] {
        let plain = api.sql(&of(size - around)).await;
        assert_eq!(plain.body.len(), size);
        let response = api
            .sql_with("accept-encoding", "gzip", &of(size - around))
            .await;
        assert_eq!(response.header("content-encoding"), coding, "{size}");
    }
}
