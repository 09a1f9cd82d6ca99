//! Tests the limits on anonymous callers: on their own SQL, memory and time.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::node::{Node, operator};
use crate::service::{Service, TIMEOUT, demo_folder, eventually};
use crate::socket_client::open_at;

const SQL: &str = "/api/v4/sql/database/shop";

async fn ask(node: &Node, q: &str) -> (u16, Value) {
    let (status, body) = node.post(SQL, None, json!({"q": q})).await;
    (status.as_u16(), body)
}

fn refused(response: &(u16, Value)) -> (u16, &str) {
    (
        response.0,
        response.1["errorCode"].as_str().unwrap_or_default(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_runs_anonymous_sql_only_when_and_as_far_as_it_is_set() {
    let operator = operator().await;
    let guest = [
        "user",
        "create",
        "shop",
        "guest",
        "--default",
        "--no-password",
    ];
    operator.succeeds(&guest, "");
    let owned = "GRANT SELECT, INSERT ON orders TO \"shop/guest\"; \
                 CREATE FUNCTION add_order() RETURNS int LANGUAGE sql AS \
                 'INSERT INTO orders VALUES (7, 7) RETURNING id'";
    let root = operator.root("shop").await;
    root.batch_execute(owned).await.unwrap();
    let node = Node::start(&operator).await;
    let set = |value: &str| {
        let setting = format!("anonymous_sql={value}");
        operator.succeeds(&["tenant", "set", "shop", &setting], "")
    };
    let select = "select count(*) from orders";
    let insert = "insert into orders values (2, 1)";

    let off = ask(&node, select).await;
    assert_eq!(refused(&off), (401, "MISSING_TOKEN"));
    // GraphQL and methods still work, because the service and the owner wrote their SQL.
    let query = json!({"query": "{ __typename }"});
    let graphql = node
        .client
        .post(format!("{}/api/graphql/schema/public", node.url));
    let graphql = graphql.header("tidegate-database", "shop").json(&query);
    assert_eq!(graphql.send().await.unwrap().status(), StatusCode::OK);

    let shown = set("read");
    assert!(shown.contains("anonymous_sql  read"), "{shown}");
    eventually("the node has heard of it", || async {
        ask(&node, select).await.0 == 200
    })
    .await;
    assert_eq!(
        refused(&ask(&node, insert).await),
        (403, "STATEMENT_NOT_ALLOWED")
    );
    let explained = ask(&node, "explain analyze insert into orders values (3, 1)").await;
    assert_eq!(refused(&explained), (403, "STATEMENT_NOT_ALLOWED"));
    let (status, error) = ask(&node, "select add_order()").await;
    assert_eq!(status, 405, "{error}");
    assert_eq!(error["sqlstate"], "25006", "{error}");
    let switched = "select set_config('transaction_read_only', 'off', false), add_order()";
    let (status, error) = ask(&node, switched).await;
    assert!(matches!(status, 400 | 405), "{error}");
    let before = Instant::now();
    let (status, error) = ask(&node, "select pg_sleep(50)").await;
    assert_eq!(
        (status, &error["errorCode"]),
        (504, &json!("STATEMENT_TIMEOUT"))
    );
    assert!(before.elapsed() < Duration::from_secs(20));
    let mut socket = open_at(&node.url, "/", &[("tidegate-database", "shop")])
        .await
        .unwrap();
    let response = socket.ask(json!({"q": "select 1 as one"})).await;
    assert_eq!(response["data"], json!([{"one": 1}]), "{response}");
    let response = socket.ask(json!({"q": insert})).await;
    assert_eq!(
        response["error"],
        "STATEMENT_NOT_ALLOWED".to_lowercase(),
        "{response}"
    );

    set("on");
    eventually("the node has heard of it", || async {
        ask(&node, insert).await.0 == 200
    })
    .await;
    // Statements that change the shared role, or that contain another statement, are never allowed.
    for q in [
        "do 'begin end'",
        "alter role current_user set work_mem = '1GB'",
    ] {
        assert_eq!(
            refused(&ask(&node, q).await),
            (403, "STATEMENT_NOT_ALLOWED"),
            "{q}"
        );
    }

    set("off");
    eventually("the node has heard of it", || async {
        ask(&node, select).await.0 == 401
    })
    .await;
    let response = socket.ask(json!({"q": "select 1 as one"})).await;
    assert_eq!(response["error"], "missing_token", "{response}");
    let tenants = operator.succeeds(&["tenant", "list"], "");
    assert!(tenants.contains("ANONYMOUS SQL"), "{tenants}");
    for (setting, reported) in [
        (
            "anonymous_sql=write",
            "expected anonymous_sql=off, read or on",
        ),
        ("anonymous_sql", "expected anonymous_sql=VALUE"),
        ("colour=red", "expected anonymous_sql=VALUE"),
    ] {
        let (code, message) = operator.fails(&["tenant", "set", "shop", setting], "");
        assert_eq!(code, 2, "{message}");
        assert!(message.contains(reported), "{message}");
    }
    let (code, message) = operator.fails(&["tenant", "set", "nowhere", "anonymous_sql=on"], "");
    assert!(
        code == 1 && message.contains("there is no tenant nowhere"),
        "{message}"
    );
}

/// Starts a demo with little memory for large bodies and responses, and a short body timeout.
fn small_demo(folder: &tempfile::TempDir) -> Service {
    let settings = [
        ("TIDEGATE_MEMORY_LIMIT", "64MiB"),
        ("TIDEGATE_BODY_TIMEOUT", "3s"),
    ];
    Service::start_with(folder.path().to_str().unwrap(), &[], &settings)
}

/// Checks that a user's request of 3 MB works, with a response of the same size.
async fn assert_large_request_works(demo: &Service) {
    let body = json!({"q": "select :v as v", "params": {"v": "x".repeat(3 << 20)}});
    let response = demo.sql(Some("alice"), &body).await;
    let status = response.status();
    let text = response.text().await.unwrap();
    assert!(
        status == 200 && text.len() > 3 << 20,
        "{status}: {text:.300}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_stop_take_nothing_from_others_and_end_soon() {
    let folder = demo_folder();
    let demo = small_demo(&folder);
    assert_large_request_works(&demo).await;
    let address = demo.url.trim_start_matches("http://").to_owned();
    let started = Instant::now();
    let uploads: Vec<_> = (0..40)
        .map(|number| {
            let address = address.clone();
            tokio::spawn(async move {
                let path = ["/api/v4/sql", "/api/v4/call"][number % 2];
                let mut stream = TcpStream::connect(address).await.unwrap();
                let head = format!(
                    "POST {path} HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
                     content-length: 5000000\r\n\r\n"
                );
                stream.write_all(head.as_bytes()).await.unwrap();
                // Most of the requests are refused while they are being sent.
                let _ = stream.write_all(&vec![b' '; 4_900_000]).await;
                let mut response = Vec::new();
                let read = stream.read_to_end(&mut response);
                let _ = tokio::time::timeout(TIMEOUT, read).await.unwrap();
                String::from_utf8_lossy(&response)
                    .chars()
                    .take(12)
                    .collect::<String>()
            })
        })
        .collect();
    while !uploads.iter().all(tokio::task::JoinHandle::is_finished) {
        assert_large_request_works(&demo).await;
    }
    let took = started.elapsed();
    assert!(took < TIMEOUT / 2, "{took:?}");
    let mut responses: Vec<String> = Vec::new();
    for upload in uploads {
        responses.push(upload.await.unwrap());
    }
    for status in ["HTTP/1.1 408", "HTTP/1.1 429"] {
        assert!(
            responses.iter().any(|response| response == status),
            "{responses:?}"
        );
    }
    let others =
        |response: &&String| !["HTTP/1.1 408", "HTTP/1.1 429", ""].contains(&response.as_str());
    assert_eq!(responses.iter().find(others), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn large_anonymous_responses_leave_memory_for_users() {
    let folder = demo_folder();
    let demo = small_demo(&folder);
    let q = "select repeat('x', 1000000) as v from generate_series(1, 30)";
    for _ in 0..4 {
        let response = demo
            .request(Method::POST, "/api/v4/sql")
            .json(&json!({"q": q}));
        let response = response.send().await.unwrap();
        assert_eq!(response.status(), 429);
    }
    // The response is as large as the memory budget allows, and is not read.
    let q = "select repeat('x', 1000000) as v from generate_series(1, 8)";
    let address = demo.url.trim_start_matches("http://");
    let body = json!({"q": q}).to_string();
    let mut unread = Vec::new();
    for _ in 0..4 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "POST /api/v4/sql HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        unread.push((stream, first));
    }
    assert!(unread.iter().any(|(_, first)| first == b"HTTP/1.1 200"));
    for _ in 0..5 {
        assert_large_request_works(&demo).await;
    }
}
