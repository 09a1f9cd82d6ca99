//! Tests failed requests in the log and the metrics (API.md, "Documents and operations").

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::node::{Node, operator};
use crate::operator::Operator;
use crate::service::{TIMEOUT, eventually};
use crate::socket_client::open_at;

async fn start(operator: &Operator, flags: &[&str]) -> Node {
    let client = Client::builder().timeout(TIMEOUT).build().unwrap();
    let json = ["--log-format", "json"];
    Node::start_with(operator, &[&json, flags].concat(), ("http", client)).await
}

/// The log line of a request or operation.
fn line(log: &str, request_id: &str, message: &str) -> Value {
    let lines = log
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let mut lines = lines.filter(|line: &Value| {
        line["target"] == "tidegate::access"
            && line["request_id"] == request_id
            && line["message"] == message
    });
    lines
        .next()
        .unwrap_or_else(|| panic!("{request_id} is not in\n{log}"))
}

#[tokio::test]
async fn a_failed_request_is_logged_with_its_reason_and_counted() {
    let operator = operator().await;
    let root = operator.root("shop").await;
    let sql = "CREATE TABLE codes (code text PRIMARY KEY); ALTER TABLE codes OWNER TO shop";
    root.batch_execute(sql).await.unwrap();
    let node = start(&operator, &[]).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap();
    let post = async |id: &str, path: &str, body: Value| {
        let request = node.client.post(format!("{}{path}", node.url)).json(&body);
        let request = request.bearer_auth(token).header("x-request-id", id);
        let response = request.send().await.unwrap();
        (response.status(), response.text().await.unwrap())
    };
    let insert =
        |value: &str| format!("mutation {{ insertCodes(data: {{code: \"{value}\"}}) {{ code }} }}");
    let graphql = "/api/graphql/schema/public";
    post("first", graphql, json!({"query": insert("s3cr3t-value")})).await;
    let (status, text) = post("gql", graphql, json!({"query": insert("s3cr3t-value")})).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("CONSTRAINT_VIOLATION"), "{text}");
    let (status, _) = post("doc", graphql, json!({"query": "{ nothing }"})).await;
    assert!(status == StatusCode::OK || status == StatusCode::BAD_REQUEST);
    let insert = json!({"q": "insert into codes values (:c)", "params": {"c": "s3cr3t-value"}});
    post("sql", "/api/v4/sql", insert.clone()).await;
    let (_, defined) = post(
        "define",
        "/api/v4/methods",
        json!({"method": "add_code", "q": insert["q"]}),
    )
    .await;
    assert!(defined.contains("add_code"), "{defined}");
    let call = |method: &str| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"c": "s3cr3t-value"}});
    let (status, text) = post("rpc", "/api/v4/call", call("add_code")).await;
    assert_eq!(status, StatusCode::OK);
    assert!(text.contains("23505"), "{text}");
    post("norpc", "/api/v4/call", call("no_such_method")).await;
    post("nojson", "/api/v4/call", json!([])).await;
    post("fine", "/api/v4/sql", json!({"q": "select 1"})).await;

    let headers = [("x-request-id", "socket-1")];
    let mut socket = open_at(&node.url, &format!("/?token={token}"), &headers)
        .await
        .unwrap();
    let query = json!({"type": "subscribe", "id": "1", "schema": "public",
        "query": "mutation { insertCodes(data: {code: \"s3cr3t-value\"}) { code } }"});
    assert!(socket.ask(query).await.to_string().contains("23505"));
    socket.send_text("no json").await;
    while socket.receive().await["error"] != "invalid_json" {}

    let metrics = node.client.get(format!("{}/metrics", node.url));
    let metrics = metrics.send().await.unwrap().text().await.unwrap();
    for (protocol, code, count) in [
        ("graphql", "CONSTRAINT_VIOLATION", 2),
        ("graphql", "GRAPHQL_VALIDATION_FAILED", 1),
        ("rest", "SQL_ERROR", 1),
        ("jsonrpc", "SQL_ERROR", 1),
        ("jsonrpc", "NOT_FOUND", 1),
        ("jsonrpc", "INPUT_VALIDATION_ERROR", 1),
        ("websocket", "invalid_json", 1),
    ] {
        let line =
            format!("tidegate_errors_total{{protocol=\"{protocol}\",code=\"{code}\"}} {count}\n");
        assert!(metrics.contains(&line), "{line}{metrics}");
    }
    drop(socket);
    let log = node.stop();
    assert!(!log.contains("s3cr3t-value"), "{log}");
    for (id, message, error) in [
        ("gql", "request", "CONSTRAINT_VIOLATION"),
        ("sql", "request", "SQL_ERROR"),
        ("rpc", "request", "SQL_ERROR"),
        ("socket-1", "operation failed", "CONSTRAINT_VIOLATION"),
    ] {
        let line = line(&log, id, message);
        assert_eq!(line["level"], "INFO", "{line}");
        assert_eq!(line["error"], error, "{line}");
        assert_eq!(line["sqlstate"], "23505", "{line}");
        assert_eq!(line["table"], "codes", "{line}");
        assert_eq!(line["constraint"], "codes_pkey", "{line}");
        assert_eq!(
            (&line["database"], &line["role"]),
            (&json!("shop"), &json!("shop")),
            "{line}"
        );
    }
    assert_eq!(
        line(&log, "doc", "request")["error"],
        "GRAPHQL_VALIDATION_FAILED"
    );
    assert_eq!(line(&log, "norpc", "request")["error"], "NOT_FOUND");
    let fine = line(&log, "fine", "request");
    assert!(
        fine["level"] == "DEBUG" && fine.get("error").is_none(),
        "{fine}"
    );
    let serves = log
        .lines()
        .find(|line| line.contains("\"listening\""))
        .unwrap();
    let serves: Value = serde_json::from_str(serves).unwrap();
    assert_eq!(serves["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        serves["addresses"],
        node_address(&serves),
        "not the text of a debugger"
    );
}

fn node_address(serves: &Value) -> Value {
    let address = serves["addresses"].as_str().unwrap();
    address.parse::<std::net::SocketAddr>().unwrap();
    json!(address)
}

#[tokio::test]
async fn metrics_have_an_address_of_their_own_or_a_token() {
    let operator = operator().await;
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let flags = [
        "--metrics-listen",
        &address,
        "--trusted-proxies",
        "127.0.0.1",
    ];
    let node = start(&operator, &flags).await;
    let get = |url: String| node.client.get(url).header("x-forwarded-for", "192.0.2.7");
    let status = async |url: String| get(url).send().await.unwrap().status();
    assert_eq!(
        status(format!("{}/metrics", node.url)).await,
        StatusCode::NOT_FOUND
    );
    assert_eq!(
        status(format!("http://{address}/metrics")).await,
        StatusCode::OK
    );
    let closed = status(format!("http://{address}/api/v4/sql/schema")).await;
    assert_eq!(closed, StatusCode::NOT_FOUND);
    node.stop();
}

#[tokio::test]
async fn the_owner_sees_a_slow_statement_whose_client_left() {
    let operator = operator().await;
    let node = start(&operator, &[]).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap().to_owned();
    let request = node.client.post(format!("{}/api/v4/sql", node.url));
    let request = request.bearer_auth(&token);
    let request = request.json(&json!({"q": "select pg_sleep(90) as given_up"}));
    let in_flight = tokio::spawn(request.send());
    let inside = operator.root("shop").await;
    let slow = "select count(*) from pg_stat_activity where state = 'active' \
                and query like '%given_up' and query not like '%pg_stat_activity%' \
                and clock_timestamp() - query_start > '1.1 s'";
    let runs = async || inside.query_one(slow, &[]).await.unwrap().get::<_, i64>(0) == 1;
    eventually("the statement is slow", runs).await;
    in_flight.abort();
    let activity = async || -> Value {
        let request = node.client.get(format!("{}/api/v4/activity", node.url));
        let response = request.bearer_auth(&token).send().await.unwrap();
        response.json().await.unwrap()
    };
    let listed = async || activity().await["statements"] != json!([]);
    eventually("the statement is listed", listed).await;
    let recent = activity().await;
    let statement = &recent["statements"][0];
    assert_eq!(statement["status"], 499, "{statement}");
    assert_eq!(statement["statement"], "select pg_sleep(?) as given_up");
    assert_eq!(statement["role"], "shop");
    assert!(
        statement["milliseconds"].as_u64() >= Some(1_000),
        "{statement}"
    );
    let failed = recent["errors"].as_array().unwrap();
    assert!(failed.iter().all(|count| *count == 0), "{failed:?}");
}
