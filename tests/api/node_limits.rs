//! Tests the limits of a node, CORS, and the spans that it sends to a collector (API.md, "Common
//! rules" and "Documents and operations").

use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::node::{Node, operator};
use crate::service::{Service, TIMEOUT, TextResponse, demo, demo_folder, eventually};

/// The longest time of a response that is not delayed.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Sends a request on a connection that stays open.
async fn ask_health(stream: &mut TcpStream) {
    let request = b"GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n";
    stream.write_all(request).await.unwrap();
}

/// Reads the response.
async fn health(stream: &mut TcpStream) {
    let mut response = Vec::new();
    while !response.ends_with(br#"{"status":"ok"}"#) {
        let mut buffer = [0; 1024];
        let read = tokio::time::timeout(TIMEOUT, stream.read(&mut buffer));
        let read = read.await.expect("no answer").unwrap();
        assert_ne!(read, 0, "it was closed");
        response.extend_from_slice(&buffer[..read]);
    }
}

#[tokio::test]
async fn connections_beyond_the_limit_wait_until_another_one_ends() {
    let folder = demo_folder();
    let two = [("TIDEGATE_CONNECTIONS", "2")];
    let demo = Service::start_with(folder.path().to_str().unwrap(), &[], &two);
    let address = demo.url.trim_start_matches("http://");
    let connect = || TcpStream::connect(address);
    let mut held = [connect().await.unwrap(), connect().await.unwrap()];
    for stream in &mut held {
        ask_health(stream).await;
        health(stream).await;
    }
    let mut third = connect().await.unwrap();
    ask_health(&mut third).await;
    let early = tokio::time::timeout(AT_ONCE, third.read_u8()).await;
    assert!(early.is_err(), "the third was served beside two");
    // Connections that were accepted before still work.
    let [mut first, second] = held;
    ask_health(&mut first).await;
    health(&mut first).await;
    drop(second);
    health(&mut third).await;
}

#[tokio::test]
async fn what_all_requests_hold_has_a_limit_and_origins_are_those_of_the_settings() {
    let folder = demo_folder();
    let settings = [
        ("TIDEGATE_MEMORY_LIMIT", "2MiB"),
        (
            "TIDEGATE_CORS_ORIGINS",
            "https://one.example,https://two.example",
        ),
    ];
    let demo = Service::start_with(folder.path().to_str().unwrap(), &[], &settings);
    let token = demo.token("alice").await;
    let sql = |body| {
        let request = demo.request(Method::POST, "/api/v4/sql").json(&body);
        request.bearer_auth(&token)
    };
    let rows = |count: usize| {
        let q = "select repeat('x', 1000) as s from generate_series(1, :n)";
        json!({"q": q, "params": {"n": count}})
    };
    let long = json!({"q": "select length(:v) as n", "params": {"v": "x".repeat(3 << 20)}});
    for body in [rows(5_000), long] {
        let refused = TextResponse::of(sql(body)).await;
        assert_eq!(refused.error(), (429, "TOO_MANY_REQUESTS".to_owned()));
        assert_eq!(refused.header("retry-after"), "1");
    }
    // The memory has been freed. A streamed response takes no memory from the budget.
    assert_eq!(TextResponse::of(sql(rows(900))).await.status, 200);
    let mut streamed = rows(5_000);
    streamed["output_format"] = "ndjson".into();
    assert_eq!(
        TextResponse::of(sql(streamed)).await.text.lines().count(),
        5_000
    );

    let of = async |origin: &str| {
        let request = sql(rows(1)).header("origin", origin);
        let response = TextResponse::of(request).await;
        let mut varies = response.headers.get_all("vary").iter();
        assert!(varies.any(|by| by == "Origin"), "{:?}", response.headers);
        let allowed = response.header("access-control-allow-origin").to_owned();
        (response.status, allowed)
    };
    for origin in ["https://one.example", "https://two.example"] {
        assert_eq!(of(origin).await, (200, origin.to_owned()));
    }
    for origin in ["https://three.example", "http://one.example", "null"] {
        assert_eq!(of(origin).await, (200, String::new()));
    }
    let preflight = demo.request(Method::OPTIONS, "/api/v4/sql");
    let preflight = preflight
        .header("origin", "https://three.example")
        .header("access-control-request-method", "POST");
    let preflight = TextResponse::of(preflight).await;
    assert_eq!(preflight.status, 204);
    assert_eq!(preflight.header("access-control-allow-origin"), "");
}

#[tokio::test]
async fn pages_of_any_origin_may_call_where_nothing_is_set() {
    let ask = async |method: Method, path: &str| {
        let request = demo().request(method, path);
        let request = request
            .header("origin", "https://app.example")
            .header("access-control-request-method", "POST");
        TextResponse::of(request).await
    };
    let preflight = ask(Method::OPTIONS, "/api/v4/sql").await;
    assert_eq!((preflight.status, &*preflight.text), (204, ""));
    let methods = preflight.header("access-control-allow-methods");
    assert!(methods.contains("POST"), "{preflight:?}");
    let headers = preflight.header("access-control-allow-headers");
    assert!(headers.contains("Authorization"), "{preflight:?}");
    for response in [preflight, ask(Method::GET, "/healthz").await] {
        assert_eq!(response.header("access-control-allow-origin"), "*");
        assert_eq!(
            response.header("access-control-expose-headers"),
            "Location, X-Request-Id, WWW-Authenticate, Retry-After"
        );
        assert_eq!(response.header("access-control-allow-credentials"), "");
    }
    // Pages of other origins must not read the pages of the service.
    for page in ["/auth", "/device", "/signup", "/signout"] {
        for method in [Method::GET, Method::OPTIONS] {
            let response = ask(method, page).await;
            let allowed = response.header("access-control-allow-origin");
            assert_eq!(allowed, "", "{page}: {response:?}");
        }
    }
}

#[tokio::test]
async fn a_request_that_outlasts_drain_timeout_is_cancelled() {
    let operator = operator().await;
    let client = Client::builder().timeout(TIMEOUT).build().unwrap();
    let flags = ["--drain-timeout", "1s"];
    let node = Node::start_with(&operator, &flags, ("http", client)).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let request = node.client.post(format!("{}/api/v4/sql", node.url));
    let request = request.bearer_auth(tokens["access_token"].as_str().unwrap());
    let request = request.json(&json!({"q": "select pg_sleep(50) as never"}));
    let in_flight = tokio::spawn(request.send());
    let inside = operator.root("shop").await;
    let active = "select count(*) from pg_stat_activity \
                  where state = 'active' and query like '%pg_sleep(50) as never'";
    let runs = async || {
        let active = inside.query_one(active, &[]).await.unwrap();
        active.get::<_, i64>(0) == 1
    };
    eventually("the statement runs", runs).await;
    let stopped = tokio::task::spawn_blocking(|| node.stop());
    let stopped = tokio::time::timeout(Duration::from_secs(20), stopped).await;
    stopped.expect("the node waits for the statement").unwrap();
    if let Ok(response) = in_flight.await.unwrap() {
        assert_ne!(response.status(), StatusCode::OK);
    }
    assert!(!runs().await, "the process ended before the statement");
}

#[cfg(not(feature = "otlp"))]
#[tokio::test]
async fn a_build_that_cannot_send_spans_says_so() {
    let operator = operator().await;
    let serve = ["serve", "--listen", "127.0.0.1:0"];
    let collector = ["--otlp-url", "http://127.0.0.1:1"];
    let (_, message) = operator.fails(&[&serve[..], &collector].concat(), "");
    assert!(message.contains("--features otlp"), "{message}");
}

#[cfg(feature = "otlp")]
#[tokio::test]
async fn a_collector_gets_the_spans_of_requests() {
    let collector = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", collector.local_addr().unwrap());
    let operator = operator().await;
    let client = Client::builder().timeout(TIMEOUT).build().unwrap();
    let node = Node::start_with(&operator, &["--otlp-url", &url], ("http", client)).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let request = node.client.post(format!("{}/api/v4/sql", node.url));
    let request = request
        .bearer_auth(tokens["access_token"].as_str().unwrap())
        .header(
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        )
        .json(&json!({"q": "select 'hidden-4715' as v"}));
    assert_eq!(request.send().await.unwrap().status(), StatusCode::OK);
    let span = tokio::time::timeout(TIMEOUT, async {
        loop {
            let (stream, _) = collector.accept().await.unwrap();
            let spans = collected(stream).await;
            assert!(!spans.contains("hidden-4715"), "{spans}");
            let spans: serde_json::Value = serde_json::from_str(&spans).unwrap();
            let spans = spans["resourceSpans"][0]["scopeSpans"][0]["spans"].clone();
            let mut spans = spans.as_array().unwrap().iter();
            if let Some(span) = spans.find(|span| span["name"] == "POST /api/v4/sql") {
                return span.clone();
            }
        }
    });
    let span = span.await.expect("no span came");
    assert_eq!(span["traceId"], "4bf92f3577b34da6a3ce929d0e0e4736");
    assert_eq!(span["parentSpanId"], "00f067aa0ba902b7");
    let role = json!({"key": "tidegate.role", "value": {"stringValue": "shop"}});
    let attributes = span["attributes"].as_array().unwrap();
    assert!(attributes.contains(&role), "{span}");
    node.stop();
}

/// Accepts a POST and returns its body.
#[cfg(feature = "otlp")]
async fn collected(mut stream: TcpStream) -> String {
    let mut text = String::new();
    loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap();
        assert_ne!(read, 0, "it was cut: {text}");
        text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        if serde_json::from_str::<serde_json::Value>(body).is_ok() {
            assert!(head.starts_with("POST /v1/traces HTTP/1.1"), "{head}");
            let response = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
            stream.write_all(response).await.unwrap();
            return body.to_owned();
        }
    }
}

#[tokio::test]
async fn an_exhausted_memory_budget_is_reported_in_the_form_of_the_path() {
    let folder = demo_folder();
    let settings = [("TIDEGATE_MEMORY_LIMIT", "2MiB")];
    let demo = Service::start_with(folder.path().to_str().unwrap(), &[], &settings);
    let long = "x".repeat(3 << 20);
    let query = json!({"query": "{ __typename }", "variables": {"v": long}});
    let request = demo.request(Method::POST, "/api/graphql/schema/public");
    let refused = TextResponse::of(request.json(&query)).await;
    assert_eq!(refused.status, 429, "{:.200}", refused.text);
    assert_eq!(refused.header("retry-after"), "1");
    let reported = refused.json();
    assert!(reported["errors"][0]["message"].is_string(), "{reported}");
    assert_eq!(reported.get("success"), None, "{reported}");
    let call = json!({"jsonrpc": "2.0", "method": "none", "params": {"v": long}, "id": 1});
    for path in ["/api/v4/call", "/api/v4/rpc"] {
        let refused = TextResponse::of(demo.request(Method::POST, path).json(&call)).await;
        assert_eq!(refused.error(), (429, "TOO_MANY_REQUESTS".to_owned()));
        assert_eq!(refused.header("retry-after"), "1", "{path}");
    }
}
