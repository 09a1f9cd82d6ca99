//! Tests of cross-origin requests of browsers.

use http::Method;
use tidegate_server::Origins;

use crate::fixture::{Api, TestResponse, request};

async fn from(api: &Api, origin: &str, path: &str) -> TestResponse {
    api.call(
        request(Method::GET, path)
            .header("origin", origin)
            .body(String::new())
            .unwrap(),
    )
    .await
}

async fn preflight(api: &Api, origin: &str, path: &str) -> TestResponse {
    let request = request(Method::OPTIONS, path)
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header(
            "access-control-request-headers",
            "authorization,content-type",
        );
    api.call(request.body(String::new()).unwrap()).await
}

#[tokio::test]
async fn any_origin_may_read_responses_and_refusals() {
    let api = Api::start().await;
    for path in ["/healthz", "/nowhere"] {
        let response = from(&api, "https://app.example", path).await;
        assert_eq!(response.header("access-control-allow-origin"), "*");
        assert_eq!(
            response.header("access-control-expose-headers"),
            "Location, X-Request-Id, WWW-Authenticate, Retry-After"
        );
        assert!(
            !response
                .headers
                .contains_key("access-control-allow-credentials")
        );
    }
    assert!(
        !api.get("/healthz")
            .await
            .headers
            .contains_key("access-control-allow-origin")
    );
}

#[tokio::test]
async fn a_preflight_has_no_content() {
    let api = Api::start().await;
    let response = preflight(&api, "https://app.example", "/api/v4/sql/").await;
    assert_eq!(response.status, 204);
    assert!(response.body.is_empty());
    assert_eq!(response.header("access-control-allow-origin"), "*");
    assert!(
        response
            .header("access-control-allow-methods")
            .contains("POST")
    );
    for name in [
        "authorization",
        "content-type",
        "tidegate-database",
        "prefer",
        "last-event-id",
        "tidegate-after",
    ] {
        assert!(
            response
                .header("access-control-allow-headers")
                .to_lowercase()
                .contains(name),
            "{name}"
        );
    }
    assert_eq!(
        preflight(&api, "https://app.example", "/nowhere")
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn options_without_a_browser_tells_the_methods() {
    let api = Api::start().await;
    let response = api
        .call(
            request(Method::OPTIONS, "/healthz")
                .body(String::new())
                .unwrap(),
        )
        .await;
    assert_eq!(
        (response.status.as_u16(), response.header("allow")),
        (204, "GET, HEAD, OPTIONS")
    );
}

#[tokio::test]
async fn a_list_of_origins_lets_only_those_read() {
    let listed = Origins::Listed(vec!["https://app.example".parse().unwrap()]);
    let api = Api::with(|builder| builder.origins(listed)).await;
    let known = from(&api, "https://app.example", "/healthz").await;
    assert_eq!(
        known.header("access-control-allow-origin"),
        "https://app.example"
    );
    assert_eq!(known.header("vary"), "Origin");
    let unknown = from(&api, "https://evil.example", "/healthz").await;
    assert!(!unknown.headers.contains_key("access-control-allow-origin"));
    assert_eq!(unknown.header("vary"), "Origin");
    let unknown = preflight(&api, "https://evil.example", "/api/v4/sql").await;
    assert_eq!(unknown.status, 204);
    assert!(!unknown.headers.contains_key("access-control-allow-origin"));
}
