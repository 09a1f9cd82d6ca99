//! Tests of the documentation at `/docs/` and `/llms.txt`.

use http::Method;

use crate::fixture::{Api, TestResponse, request};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async fn docs() -> Api {
    Api::with(|builder| builder.console(true)).await
}

async fn browsed(api: &Api, path: &str) -> TestResponse {
    let asked = request(Method::GET, path).header("accept", BROWSER);
    api.call(asked.body(String::new()).unwrap()).await
}

#[tokio::test]
async fn pages_and_files_have_their_types_and_the_policy_of_the_console() {
    let api = docs().await;
    for (path, media_type) in [
        ("/docs", "text/html; charset=utf-8"),
        ("/docs/", "text/html; charset=utf-8"),
        ("/docs/start/up", "text/html; charset=utf-8"),
        ("/docs/start/up/", "text/html; charset=utf-8"),
        ("/docs/interface", "text/html; charset=utf-8"),
        ("/docs/api", "text/html; charset=utf-8"),
        ("/docs/start/up.md", "text/markdown; charset=utf-8"),
        ("/docs/docs.css", "text/css; charset=utf-8"),
        ("/docs/docs.js", "text/javascript; charset=utf-8"),
        ("/docs/search.json", "application/json"),
        ("/docs/images/console.png", "image/png"),
        ("/llms.txt", "text/plain; charset=utf-8"),
    ] {
        let response = browsed(&api, path).await;
        assert_eq!(response.status, 200, "{path}");
        assert_eq!(response.header("content-type"), media_type, "{path}");
        assert_eq!(
            response.header("content-security-policy"),
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "{path}"
        );
        assert_eq!(response.header("x-content-type-options"), "nosniff");
    }
}

#[tokio::test]
async fn the_reference_shows_the_operations_of_this_server() {
    let api = docs().await;
    let page = browsed(&api, "/docs/api").await;
    for expected in [
        "id=\"getActivity\"",
        "/api/v4/users/{names}",
        "id=\"schema-sqlrequest\"",
    ] {
        assert!(page.text().contains(expected), "{expected}");
    }
}

#[tokio::test]
async fn files_are_revalidated_by_their_tags_and_compressed() {
    let api = docs().await;
    let whole = api.get("/docs/search.json").await;
    let tag = whole.header("etag").to_owned();
    let with = |name: &'static str, value: String| {
        let asked = request(Method::GET, "/docs/search.json").header(name, value);
        asked.body(String::new()).unwrap()
    };
    let known = api.call(with("if-none-match", tag)).await;
    assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
    let packed = api.call(with("accept-encoding", "gzip".to_owned())).await;
    assert!(packed.body.len() * 2 < whole.body.len());
}

#[tokio::test]
async fn what_is_not_there_is_a_page_for_a_browser_and_an_error_for_a_program() {
    let api = docs().await;
    for path in [
        "/docs/nothing",
        "/docs/start/nothing",
        "/docs/start%2Fup.txt",
        "/docs/a/..%2Fapi",
    ] {
        let page = browsed(&api, path).await;
        assert_eq!(page.status, 404, "{path}");
        assert!(page.text().contains("There is no such page"), "{path}");
        assert_eq!(api.get(path).await.error().0, 404);
    }
    assert_eq!(browsed(&api, "/docs/a/b/c").await.status, 404);
}

#[tokio::test]
async fn they_are_switched_off_with_the_console() {
    let api = Api::with(|builder| builder.console(false)).await;
    for path in ["/docs/", "/docs/api", "/docs/start/up", "/llms.txt"] {
        assert_eq!(browsed(&api, path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_service_below_a_path_links_below_it() {
    let api = Api::at("https://example.com/db", |builder| builder.console(true)).await;
    let page = browsed(&api, "/docs/").await;
    assert!(page.text().contains("href=\"/db/docs/start/up\""));
    assert!(!page.text().contains("href=\"/docs"));
}
