//! Tests of the browser console at `/` and `/console/`.

use http::{Method, Request};

use crate::fixture::{Api, TestResponse, request};

const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

async fn console() -> Api {
    Api::with(|builder| builder.console(true)).await
}

async fn asked(api: &Api, method: Method, path: &str, headers: &[(&str, &str)]) -> TestResponse {
    let mut asked: http::request::Builder = request(method, path);
    for (name, value) in headers {
        asked = asked.header(*name, *value);
    }
    let asked: Request<String> = asked.body(String::new()).unwrap();
    api.call(asked).await
}

async fn browsed(api: &Api, path: &str) -> TestResponse {
    asked(api, Method::GET, path, &[("accept", BROWSER)]).await
}

#[tokio::test]
async fn a_browser_at_the_root_gets_the_page() {
    let api = console().await;
    for path in ["/", "/console", "/console/"] {
        let response = browsed(&api, path).await;
        assert_eq!(response.status, 200, "{path}");
        assert_eq!(response.header("content-type"), "text/html; charset=utf-8");
        assert!(
            response.text().contains("src=\"/console/console.js\""),
            "{path}"
        );
    }
    let root = browsed(&api, "/").await;
    assert_eq!(root.header("vary"), "Accept, Upgrade");
}

#[tokio::test]
async fn other_clients_at_the_root_get_no_page() {
    let api = console().await;
    for accept in ["*/*", "application/json", "application/json, text/html"] {
        let response = asked(&api, Method::GET, "/", &[("accept", accept)]).await;
        assert_eq!(response.status, 426, "{accept}");
    }
    assert_eq!(api.get("/").await.status, 426);
    let handshake = [
        ("accept", BROWSER),
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
    ];
    let response = asked(&api, Method::GET, "/", &handshake).await;
    assert_ne!(response.header("content-type"), "text/html; charset=utf-8");
}

#[tokio::test]
async fn the_page_may_use_its_own_service_only() {
    let api = console().await;
    for path in ["/", "/console/", "/console/console.js"] {
        let response = browsed(&api, path).await;
        assert_eq!(
            response.header("content-security-policy"),
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
             connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            "{path}"
        );
        assert_eq!(response.header("x-content-type-options"), "nosniff");
        assert_eq!(response.header("x-frame-options"), "DENY");
        assert_eq!(response.header("referrer-policy"), "no-referrer");
    }
}

#[tokio::test]
async fn files_are_revalidated_by_their_tags_and_compressed() {
    let api = console().await;
    for (name, media_type) in [
        ("console.js", "text/javascript; charset=utf-8"),
        ("console.css", "text/css; charset=utf-8"),
        ("editor.js", "text/javascript; charset=utf-8"),
        ("chart.js", "text/javascript; charset=utf-8"),
        ("LICENSES.txt", "text/plain; charset=utf-8"),
    ] {
        let path = format!("/console/{name}");
        let whole = api.get(&path).await;
        assert_eq!(whole.status, 200, "{name}");
        assert_eq!(whole.header("content-type"), media_type);
        assert_eq!(whole.header("cache-control"), "no-cache");
        let tag = whole.header("etag").to_owned();
        assert!(!tag.is_empty());
        let known = asked(&api, Method::GET, &path, &[("if-none-match", &tag)]).await;
        assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
        let packed = asked(&api, Method::GET, &path, &[("accept-encoding", "gzip")]).await;
        assert_eq!(packed.header("content-encoding"), "gzip");
        assert!(packed.body.len() * 2 < whole.body.len(), "{name}");
        let head = asked(&api, Method::HEAD, &path, &[]).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
        assert_eq!(
            head.header("content-length"),
            whole.body.len().to_string(),
            "{name}"
        );
    }
}

#[tokio::test]
async fn the_first_load_is_below_300_kib() {
    let api = console().await;
    let mut bytes = 0;
    for path in ["/", "/console/console.js", "/console/console.css"] {
        let headers = [("accept", BROWSER), ("accept-encoding", "gzip")];
        bytes += asked(&api, Method::GET, path, &headers).await.body.len();
    }
    assert!(bytes < 300 * 1024, "{bytes}");
}

#[tokio::test]
async fn other_names_are_not_found() {
    let api = console().await;
    for path in [
        "/console/index.html",
        "/console/SOURCE.txt",
        "/console/..%2Fconsole.js",
        "/console/x/console.js",
    ] {
        assert_eq!(api.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_console_that_is_switched_off_is_not_there() {
    let api = Api::with(|builder| builder.console(false)).await;
    assert_eq!(browsed(&api, "/").await.status, 426);
    for path in ["/console/", "/console/console.js"] {
        assert_eq!(api.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn the_page_for_an_unknown_path_links_to_what_the_service_has() {
    let links = [
        "href=\"/db/\"",
        "href=\"/db/docs/\"",
        "href=\"/db/docs/api\"",
    ];
    for has_console in [true, false] {
        let api = Api::at("https://example.com/db", |builder| {
            builder.console(has_console)
        })
        .await;
        let page = browsed(&api, "/nowhere").await;
        assert_eq!(page.status, 404);
        for link in links {
            assert_eq!(page.text().contains(link), has_console, "{}", page.text());
        }
    }
}

#[tokio::test]
async fn a_service_below_a_path_says_so_in_the_page() {
    let api = Api::at("https://example.com/db", |builder| builder.console(true)).await;
    let page = browsed(&api, "/").await;
    assert!(page.text().contains("src=\"/db/console/console.js\""));
}
