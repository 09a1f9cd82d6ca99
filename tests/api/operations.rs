//! Tests the common rules of requests and the operations (API.md, "Common rules" and "Documents and
//! operations").

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::service::demo;

#[tokio::test]
async fn health_readiness_and_metrics_respond() {
    for path in ["/healthz", "/readyz"] {
        assert_eq!(
            demo()
                .request(Method::GET, path)
                .send()
                .await
                .unwrap()
                .status(),
            200,
            "{path}"
        );
    }
    let response = demo()
        .request(Method::GET, "/metrics")
        .send()
        .await
        .unwrap();
    assert!(
        response.headers()["content-type"]
            .to_str()
            .unwrap()
            .starts_with("text/plain")
    );
    let text = response.text().await.unwrap();
    assert!(
        text.contains("# TYPE ") && text.contains("tidegate_"),
        "{text}"
    );
}

#[tokio::test]
async fn the_openapi_document_has_every_route() {
    let response = demo()
        .request(Method::GET, "/api/v4/openapi.json")
        .send()
        .await
        .unwrap();
    assert_eq!(
        response.headers()["content-type"],
        "application/json; charset=utf-8"
    );
    let etag = response.headers()["etag"].clone();
    let document: Value = response.json().await.unwrap();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    for path in [
        "/api/v4/sql",
        "/api/v4/sql/database/{database}",
        "/api/v4/sql/schema",
        "/api/v4/sql/schema/{schema}",
        "/api/v4/methods",
        "/api/v4/methods/{names}",
        "/api/v4/call",
        "/api/v4/rpc",
        "/api/v4/call/dry",
        "/api/v4/interfaces",
        "/api/v4/openrpc.json",
        "/api/v4/oauth",
        "/api/v4/oauth/guest",
        "/api/v4/oauth/revoke",
        "/api/v4/oauth/introspect",
        "/.well-known/oauth-authorization-server",
        "/.well-known/jwks.json",
        "/healthz",
        "/readyz",
        "/metrics",
    ] {
        assert!(document["paths"].get(path).is_some(), "{path}");
    }
    let again = demo()
        .request(Method::GET, "/api/v4/openapi.json")
        .header("if-none-match", etag);
    assert_eq!(
        again.send().await.unwrap().status(),
        StatusCode::NOT_MODIFIED
    );
}

#[tokio::test]
async fn every_response_carries_a_request_id() {
    let own = demo()
        .request(Method::GET, "/healthz")
        .header("x-request-id", "mine-1")
        .send()
        .await
        .unwrap();
    assert_eq!(own.headers()["x-request-id"], "mine-1");
    let long = demo()
        .request(Method::GET, "/healthz")
        .header("x-request-id", "x".repeat(129))
        .send()
        .await
        .unwrap();
    let made = long.headers()["x-request-id"].to_str().unwrap();
    assert!(!made.is_empty() && made.len() <= 128);
    let missing = demo()
        .request(Method::GET, "/nowhere")
        .send()
        .await
        .unwrap();
    assert!(missing.headers().contains_key("x-request-id"));
}

#[tokio::test]
async fn unknown_paths_and_methods_get_distinct_errors() {
    let response = demo()
        .request(Method::GET, "/api/v4/nowhere")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 404);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["errorCode"], "NOT_FOUND");
    assert_eq!(body["success"], false);
    let response = demo()
        .request(Method::PUT, "/api/v4/sql")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 405);
    assert!(
        response.headers()["allow"]
            .to_str()
            .unwrap()
            .contains("POST")
    );
    assert_eq!(
        response.json::<Value>().await.unwrap()["errorCode"],
        "METHOD_NOT_ALLOWED"
    );
    let token = demo().token("demo").await;
    let response = demo()
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(token)
        .header("content-type", "text/plain")
        .body("select 1")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 415);
    assert_eq!(
        response.json::<Value>().await.unwrap()["errorCode"],
        "UNSUPPORTED_MEDIA_TYPE"
    );
}

#[tokio::test]
async fn browsers_may_call_from_anywhere() {
    let preflight = demo()
        .request(Method::OPTIONS, "/api/v4/sql")
        .header("origin", "https://app.example")
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type",
        )
        .send()
        .await
        .unwrap();
    assert_eq!(preflight.status(), 204);
    assert_eq!(preflight.headers()["access-control-allow-origin"], "*");
    assert!(
        preflight.headers()["access-control-allow-headers"]
            .to_str()
            .unwrap()
            .to_lowercase()
            .contains("authorization")
    );
    let response = demo()
        .request(Method::GET, "/healthz")
        .header("origin", "https://app.example")
        .send()
        .await
        .unwrap();
    assert_eq!(response.headers()["access-control-allow-origin"], "*");
    assert!(
        !response
            .headers()
            .contains_key("access-control-allow-credentials")
    );
    let exposed = response.headers()["access-control-expose-headers"]
        .to_str()
        .unwrap();
    for header in [
        "Location",
        "X-Request-Id",
        "WWW-Authenticate",
        "Retry-After",
    ] {
        assert!(exposed.contains(header), "{exposed}");
    }
}

#[tokio::test]
async fn large_responses_are_compressed_on_request() {
    let token = demo().token("demo").await;
    for encoding in ["gzip", "zstd"] {
        let response = demo()
            .request(Method::POST, "/api/v4/sql")
            .bearer_auth(&token)
            .header("accept-encoding", encoding)
            .json(&json!({"q": "select repeat('x', 5000) as s"}))
            .send()
            .await
            .unwrap();
        assert_eq!(response.headers()["content-encoding"], encoding);
        assert!(
            response.headers()["vary"]
                .to_str()
                .unwrap()
                .to_lowercase()
                .contains("accept-encoding")
        );
        assert!(response.bytes().await.unwrap().len() < 1000);
    }
    let small = demo()
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(&token)
        .header("accept-encoding", "gzip")
        .json(&json!({"q": "select 1 as n"}))
        .send()
        .await
        .unwrap();
    assert!(!small.headers().contains_key("content-encoding"));
}

#[tokio::test]
async fn head_answers_where_get_does() {
    let response = demo()
        .request(Method::HEAD, "/api/v4/openapi.json")
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.bytes().await.unwrap().is_empty());
}
