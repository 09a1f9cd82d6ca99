//! Health, readiness, metrics.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use tidegate_server::Probe;
use tidegate_sql::BoxFuture;

use crate::fixture::Api;

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
        let answer = api.get(path).await;
        assert_eq!((answer.status.as_u16(), answer.text()), (200, "pong"));
        let kind = answer.header("content-type");
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
    let answer = api.get("/readyz").await;
    assert_eq!(
        (answer.status.as_u16(), answer.text()),
        (200, r#"{"status":"ready","checks":{"database":"ok"}}"#)
    );
    database.0.store(false, Ordering::SeqCst);
    let answer = api.get("/readyz").await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["checks"], json!({"database": "unavailable"}));
    database.0.store(true, Ordering::SeqCst);
    api.app.drain();
    assert_eq!(api.get("/readyz").await.status, 503);
    assert_eq!(api.get("/healthz").await.text(), r#"{"status":"ok"}"#);
}

/// A part that thinks so of itself.
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
    let answer = api.get("/readyz").await;
    assert_eq!(
        (answer.status.as_u16(), answer.text()),
        (200, r#"{"status":"ready","checks":{"catalog":"degraded"}}"#)
    );
}

#[tokio::test]
async fn no_part_is_well_while_an_essential_one_is_not() {
    let database = Arc::new(Database(AtomicBool::new(false)));
    let api = Api::with(|builder| builder.probe(Arc::new(Catalog(true))).probe(database)).await;
    let answer = api.get("/readyz").await;
    assert_eq!(
        (answer.status.as_u16(), answer.text()),
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
    let answer = api.get("/metrics").await;
    assert_eq!(
        answer.header("content-type"),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    let text = answer.text();
    for line in [
        r#"tidegate_http_requests_total{route="/api/v4/sql",status="2xx"} 1"#,
        r#"tidegate_http_requests_total{route="/api/v4/sql",status="4xx"} 1"#,
        r#"tidegate_http_requests_total{route="none",status="4xx"} 1"#,
        r#"tidegate_http_request_duration_seconds_bucket{route="/api/v4/sql",le="+Inf"} 2"#,
        r#"tidegate_http_request_duration_seconds_count{route="/api/v4/sql"} 2"#,
        "tidegate_http_requests_in_flight 1",
        "tidegate_http_aborted_total 0",
        "tidegate_pool_connections 3",
    ] {
        assert!(
            text.lines().any(|found| found == line),
            "{line} is not in\n{text}"
        );
    }
    if cfg!(target_os = "linux") {
        assert!(text.contains("\nprocess_resident_memory_bytes "));
    }
    // Every sample belongs to a family that was announced.
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split(['{', ' ']).next().unwrap();
        let family = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let family = format!("# TYPE {} ", family.unwrap_or(name));
        assert!(text.contains(&family), "{family}");
    }
}
