//! Tests who may use `/api/v4/methods`, and with which verbs and content types (API.md, "Methods").

use reqwest::Method;
use serde_json::json;

use crate::methods::{METHODS, define, defined, delete, get, patch};
use crate::resource_metadata::challenge;
use crate::service::{TextResponse, demo};

#[tokio::test]
async fn a_user_changes_its_own_methods_only_and_the_owner_all() {
    let response = define("alice", json!({"method": "m_alices", "q": "select 1"})).await;
    assert_eq!(response.status, 201);
    defined(json!({"method": "m_demos", "q": "select 1"})).await;
    let denied = (403, "INSUFFICIENT_PRIVILEGES".to_owned());
    assert_eq!(
        patch("alice", "m_demos", json!({"q": "select 2"}))
            .await
            .error(),
        denied
    );
    assert_eq!(delete("alice", "m_alices,m_demos").await.error(), denied);
    assert_eq!(get("m_alices").await.status, 200, "all or none");
    assert_eq!(
        patch("alice", "m_alices", json!({"q": "select 2"}))
            .await
            .status,
        303
    );
    assert_eq!(
        patch("demo", "m_alices", json!({"q": "select 3"}))
            .await
            .status,
        303
    );
    assert_eq!(delete("demo", "m_alices").await.status, 204);
}

#[tokio::test]
async fn everything_but_calls_needs_a_token() {
    let paths = [
        (Method::GET, "/api/v4/methods"),
        (Method::POST, "/api/v4/methods"),
        (Method::GET, "/api/v4/methods/a"),
        (Method::PATCH, "/api/v4/methods/a"),
        (Method::DELETE, "/api/v4/methods/a"),
        (Method::POST, "/api/v4/call/dry"),
        (Method::GET, "/api/v4/interfaces"),
        (Method::GET, "/api/v4/openrpc.json"),
    ];
    for (method, path) in paths {
        let response = demo()
            .ask(method.clone(), path, None, Some("{}".to_owned()))
            .await;
        assert_eq!(
            response.error(),
            (401, "MISSING_TOKEN".to_owned()),
            "{method} {path}"
        );
        let header = response.header("www-authenticate");
        assert_eq!(header, challenge(&demo().url, ""));
        let bad = demo().request(method.clone(), path).bearer_auth("nonsense");
        let response = TextResponse::of(bad).await;
        assert_eq!(
            response.error(),
            (401, "INVALID_TOKEN".to_owned()),
            "{method} {path}"
        );
    }
}

#[tokio::test]
async fn anonymous_callers_define_and_change_no_methods() {
    let guest = json!({"database": "demo", "client_id": "demo-app"}).to_string();
    let response = demo()
        .ask(Method::POST, "/api/v4/oauth/guest", None, Some(guest))
        .await;
    let token = response.json()["access_token"].as_str().unwrap().to_owned();
    let with = |method, path| demo().request(method, path).bearer_auth(&token);
    let body = json!({"method": "m_strange", "q": "select 1"});
    let response = TextResponse::of(with(Method::POST, METHODS).json(&body)).await;
    assert_eq!(
        response.error(),
        (403, "INSUFFICIENT_PRIVILEGES".to_owned())
    );
    assert_eq!(
        TextResponse::of(with(Method::GET, METHODS)).await.status,
        200
    );
}

#[tokio::test]
async fn other_verbs_and_content_types_are_refused() {
    for (method, path, allow) in [
        (Method::PATCH, "/api/v4/methods", "GET, HEAD, POST, OPTIONS"),
        (
            Method::DELETE,
            "/api/v4/methods/",
            "GET, HEAD, POST, OPTIONS",
        ),
        (
            Method::POST,
            "/api/v4/methods/a",
            "GET, HEAD, PATCH, DELETE, OPTIONS",
        ),
        (Method::GET, "/api/v4/call", "POST, OPTIONS"),
        (Method::GET, "/api/v4/rpc", "POST, OPTIONS"),
        (Method::GET, "/api/v4/call/dry", "POST, OPTIONS"),
        (Method::POST, "/api/v4/interfaces", "GET, HEAD, OPTIONS"),
    ] {
        let response = demo().ask(method.clone(), path, Some("demo"), None).await;
        assert_eq!(
            response.error(),
            (405, "METHOD_NOT_ALLOWED".to_owned()),
            "{method} {path}"
        );
        assert_eq!(response.header("allow"), allow);
    }
    let token = demo().cached_token("demo").await;
    let request = demo()
        .request(Method::POST, METHODS)
        .bearer_auth(token)
        .header("content-type", "text/plain");
    let response = TextResponse::of(request.body("{}")).await;
    assert_eq!(response.error(), (415, "UNSUPPORTED_MEDIA_TYPE".to_owned()));
    // `Content-Type` on a request without a body is not an error.
    let token = demo().cached_token("demo").await;
    let request = demo().request(Method::GET, METHODS).bearer_auth(token);
    assert_eq!(
        TextResponse::of(request.header("content-type", "application/json"))
            .await
            .status,
        200
    );
}
