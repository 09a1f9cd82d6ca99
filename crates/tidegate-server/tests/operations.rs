//! Tests of health, readiness and metrics.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::Method;
use serde_json::json;
use tidegate_identity::Secret;
use tidegate_server::{Listener, Peer, Probe};
use tidegate_sql::BoxFuture;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::fixture::{Api, request};

struct Database(AtomicBool);

impl Probe for Database {
    fn name(&self) -> &'static str {
        "database"
    }

    fn is_ready(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(self.0.load(Ordering::SeqCst)))
    }
}

#[tokio::test]
async fn ping_is_pong() {
    let api = Api::start().await;
    for path in ["/ping", "/ping/"] {
        let response = api.get(path).await;
        assert_eq!((response.status.as_u16(), response.text()), (200, "pong"));
        let kind = response.header("content-type");
        assert_eq!(kind, "text/plain; charset=utf-8");
    }
    let head = crate::fixture::request(http::Method::HEAD, "/ping");
    let head = api.call(head.body(String::new()).unwrap()).await;
    assert_eq!((head.status.as_u16(), head.text()), (200, ""));
    assert_eq!(head.header("content-length"), "4");
}

#[tokio::test]
async fn a_node_is_ready_while_its_parts_are_and_it_does_not_drain() {
    let database = Arc::new(Database(AtomicBool::new(true)));
    let api = Api::with(|builder| builder.probe(database.clone())).await;
    let response = api.get("/readyz").await;
    assert_eq!(
        (response.status.as_u16(), response.text()),
        (200, r#"{"status":"ready","checks":{"database":"ok"}}"#)
    );
    database.0.store(false, Ordering::SeqCst);
    let response = api.get("/readyz").await;
    assert_eq!(response.status, 503);
    assert_eq!(
        response.json()["checks"],
        json!({"database": "unavailable"})
    );
    database.0.store(true, Ordering::SeqCst);
    api.app.announce_shutdown(Duration::from_mins(1));
    assert_eq!(api.get("/readyz").await.status, 503);
    assert_eq!(api.get("/healthz").await.text(), r#"{"status":"ok"}"#);
}

/// A probe with a fixed result.
struct Catalog(bool);

impl Probe for Catalog {
    fn name(&self) -> &'static str {
        "catalog"
    }

    fn is_essential(&self) -> bool {
        false
    }

    fn is_ready(&self) -> BoxFuture<'_, bool> {
        Box::pin(std::future::ready(self.0))
    }
}

#[tokio::test]
async fn a_part_that_is_not_essential_leaves_the_node_ready() {
    let api = Api::with(|builder| builder.probe(Arc::new(Catalog(false)))).await;
    let response = api.get("/readyz").await;
    assert_eq!(
        (response.status.as_u16(), response.text()),
        (200, r#"{"status":"ready","checks":{"catalog":"degraded"}}"#)
    );
}

#[tokio::test]
async fn no_part_is_well_while_an_essential_one_is_not() {
    let database = Arc::new(Database(AtomicBool::new(false)));
    let api = Api::with(|builder| builder.probe(Arc::new(Catalog(true))).probe(database)).await;
    let response = api.get("/readyz").await;
    assert_eq!(
        (response.status.as_u16(), response.text()),
        (
            503,
            r#"{"status":"unavailable","checks":{"catalog":"degraded","database":"unavailable"}}"#
        )
    );
}

#[tokio::test]
async fn metrics_count_requests_by_route_and_status() {
    let pool = Arc::new(|text: &mut String| {
        text.push_str("# TYPE tidegate_pool_connections gauge\ntidegate_pool_connections 3\n");
        Ok(())
    });
    let api = Api::with(|builder| builder.metrics(pool)).await;
    api.sql(&json!({"q": "select rows 1 1"})).await;
    api.sql(&json!({"q": "select fail 0 22012"})).await;
    api.get("/nowhere").await;
    let response = api.get("/metrics").await;
    assert_eq!(
        response.header("content-type"),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let text = response.text();
    for line in [
        r#"tidegate_http_requests_total{route="/api/v4/sql",status="2xx"} 1"#,
        r#"tidegate_http_requests_total{route="/api/v4/sql",status="4xx"} 1"#,
        r#"tidegate_http_requests_total{route="none",status="4xx"} 1"#,
        r#"tidegate_http_request_duration_seconds_bucket{route="/api/v4/sql",le="+Inf"} 2"#,
        r#"tidegate_http_request_duration_seconds_count{route="/api/v4/sql"} 2"#,
        r#"tidegate_errors_total{protocol="rest",code="SQL_ERROR"} 1"#,
        r#"tidegate_errors_total{protocol="rest",code="NOT_FOUND"} 1"#,
        "tidegate_http_requests_in_flight 1",
        "tidegate_http_aborted_total 0",
        "tidegate_pool_connections 3",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
    let value = |name: &str| -> f64 {
        let found = text.lines().find_map(|line| line.strip_prefix(name));
        found
            .unwrap_or_else(|| panic!("{name} is not in\n{text}"))
            .trim()
            .parse()
            .unwrap()
    };
    if cfg!(target_os = "linux") {
        assert!(value("process_resident_memory_bytes") > 1e6);
        assert!(value("process_cpu_seconds_total") >= 0.0);
        assert!(value("process_start_time_seconds") > 1.6e9);
        let (open, most) = (value("process_open_fds"), value("process_max_fds"));
        assert!(open >= 3.0 && open <= most, "{open} {most}");
    }
    let version = env!("CARGO_PKG_VERSION");
    assert!(text.contains(&format!("tidegate_build_info{{version=\"{version}\"}} 1\n")));
    // Every sample must belong to a declared family.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let family = format!("# TYPE {} ", family.unwrap_or(name));
        assert!(text.contains(&family), "{family}");
    }
}

#[tokio::test]
async fn the_latency_histogram_has_no_holes() {
    let api = Api::with(|builder| builder).await;
    api.get("/healthz").await;
    let response = api.get("/metrics").await;
    let series = "tidegate_http_request_duration_seconds_bucket{route=\"/healthz\",le=\"";
    let lines = response.text().lines();
    let bounds = lines.filter_map(|line| line.strip_prefix(series)?.split('"').next());
    let bounds: Vec<f64> = bounds.map(|bound| bound.parse().unwrap()).collect();
    assert_eq!(bounds.last(), Some(&f64::INFINITY));
    let finite = &bounds[..bounds.len() - 1];
    assert!(
        finite[0] < 0.001 && finite[finite.len() - 1] >= 60.0,
        "{bounds:?}"
    );
    for pair in finite.windows(2) {
        assert!(pair[0] < pair[1] && pair[1] <= pair[0] * 2.51, "{bounds:?}");
    }
}

/// The status of a request for `/metrics` with these headers.
async fn metrics(api: &Api, headers: &[(&'static str, &'static str)]) -> u16 {
    let mut get = request(Method::GET, "/metrics");
    for (name, value) in headers {
        get = get.header(*name, *value);
    }
    let response = api.call(get.body(String::new()).unwrap()).await;
    let shown = response.text().contains("tidegate_build_info");
    assert_eq!(response.status == 200, shown, "{}", response.text());
    response.status.as_u16()
}

const FAR: Peer = Peer {
    address: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7)),
    encrypted: false,
    loopback: false,
};

#[tokio::test]
async fn metrics_without_a_token_are_for_this_machine() {
    let mut api = Api::start().await;
    assert_eq!(metrics(&api, &[]).await, 200);
    for header in ["x-forwarded-for", "forwarded", "x-forwarded-proto"] {
        let proxied = [(header, "192.0.2.7")];
        assert_eq!(metrics(&api, &proxied).await, 404, "{header}");
    }
    api.peer = FAR;
    assert_eq!(metrics(&api, &[]).await, 404);
    assert_eq!(metrics(&api, &[("authorization", "Bearer x")]).await, 404);
}

#[tokio::test]
async fn metrics_with_a_token_are_for_those_who_show_it() {
    let token = || Some(Secret::new("scrape-scrape-scrape"));
    let mut api = Api::with(|builder| builder.metrics_token(token())).await;
    for peer in [api.peer, FAR] {
        api.peer = peer;
        assert_eq!(metrics(&api, &[]).await, 401);
        let wrong = [("authorization", "Bearer scrape-scrape-scrapf")];
        assert_eq!(metrics(&api, &wrong).await, 401);
        let right = [("authorization", "Bearer scrape-scrape-scrape")];
        assert_eq!(metrics(&api, &right).await, 200);
    }
    // No authorization server issues this token, so the header names none.
    let refused = api.get("/metrics").await;
    assert_eq!(refused.header("www-authenticate"), "Bearer");
}

#[tokio::test]
async fn a_listener_for_operators_serves_them_and_nothing_else() {
    let api = Api::start().await;
    // The socket is bound to every address, so that only the kind of listener can be the reason for
    // the access.
    let socket = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let address = ([127, 0, 0, 1], socket.local_addr().unwrap().port()).into();
    let server = api.serve(Listener::operations(socket), address);
    for (path, status) in [
        ("/metrics", "200"),
        ("/healthz", "200"),
        ("/readyz", "200"),
        ("/api/v4/sql/schema", "404"),
        ("/auth", "404"),
        ("/", "404"),
    ] {
        let mut stream = server.connect().await;
        let get = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(get.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        assert_eq!(text.split(' ').nth(1), Some(status), "{path}: {text}");
    }
}

#[tokio::test]
async fn a_browser_at_an_unknown_path_gets_a_page_and_a_program_json() {
    let api = Api::start().await;
    for path in ["/nowhere", "/api/v4/nowhere", "/api/graphql/nowhere"] {
        let get = request(Method::GET, path).header("x-request-id", "mine-7");
        let get = get.header("accept", "text/html,application/xhtml+xml,*/*;q=0.8");
        let page = api.call(get.body(String::new()).unwrap()).await;
        assert_eq!(page.status, 404);
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        for part in [
            "<title>Not found",
            "<code>mine-7</code>",
            "href=\"/api/v4/openapi.json\"",
            "href=\"/account\"",
        ] {
            assert!(page.text().contains(part), "{part}: {}", page.text());
        }
        let data = api.get(path).await;
        assert_eq!(data.status, 404);
        let media = data.header("content-type");
        assert!(media.starts_with("application/"), "{path}: {media}");
    }
}

#[tokio::test]
async fn a_page_that_fails_shows_the_request_id() {
    let api = Api::start().await;
    let get = request(Method::GET, "/auth?client_id=nobody").header("x-request-id", "mine-8");
    let page = api.call(get.body(String::new()).unwrap()).await;
    assert_eq!(page.status, 400);
    assert!(
        page.text().contains("<code>mine-8</code>"),
        "{}",
        page.text()
    );
}

#[tokio::test]
async fn pages_have_an_icon() {
    let api = Api::start().await;
    let icon = api.get("/favicon.ico").await;
    assert_eq!(icon.header("content-type"), "image/svg+xml");
    assert!(icon.text().starts_with("<svg "));
    let page = api.get("/account").await;
    assert!(
        page.text().contains("href=\"/favicon.ico\""),
        "{}",
        page.text()
    );
}

#[tokio::test]
async fn an_error_page_is_counted() {
    let api = Api::start().await;
    api.get("/auth?client_id=nobody").await;
    let response = api.get("/metrics").await;
    let counted = response
        .text()
        .contains("tidegate_errors_total{protocol=\"page\",code=");
    assert!(counted, "{}", response.text());
}
