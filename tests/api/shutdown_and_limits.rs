//! Tests what an operator sees of a node, shutdown (API.md, "Documents and operations"), and limits
//! that are settings (API.md, "Limits").

use std::process::Command;
use std::time::Duration;

use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::node::{Node, operator};
use crate::operator::{text, tidegate};
use crate::resource_metadata::challenge;
use crate::service::{Service, TIMEOUT, TextResponse, demo_folder, eventually};

#[tokio::test]
async fn a_log_line_has_caller_and_route_and_no_secret() {
    let operator = operator().await;
    let client = Client::builder().timeout(TIMEOUT).build().unwrap();
    let node = Node::start_with(&operator, &["--log-format", "json"], ("http", client)).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap();
    for (id, q, status) in [
        ("found-1", "select :v::text as v", 200),
        ("found-2", "select :v::int as v", 400),
        (
            "found-3",
            "do $$ begin raise exception 'hidden-4713' using errcode = '53100'; end $$",
            503,
        ),
    ] {
        let params = if id == "found-3" {
            json!({})
        } else {
            json!({"v": "hidden-4713"})
        };
        let request = node.client.post(format!("{}/api/v4/sql", node.url));
        let request = request.bearer_auth(token).header("x-request-id", id);
        let request = request.json(&json!({"q": q, "params": params}));
        assert_eq!(TextResponse::of(request).await.status, status, "{id}");
    }
    let log = node.stop();
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (id, status) in [("found-1", 200), ("found-2", 400), ("found-3", 503)] {
        let mut of_it = lines.iter().filter(|line| line["request_id"] == id);
        let line = of_it.find(|line| line["message"] == "request");
        let line = line.unwrap_or_else(|| panic!("{id} is not in\n{log}"));
        for (member, value) in [
            ("method", json!("POST")),
            ("route", json!("/api/v4/sql")),
            ("status", json!(status)),
            ("database", json!("shop")),
            ("role", json!("shop")),
        ] {
            assert_eq!(line[member], value, "{line}");
        }
    }
    // PostgreSQL's error is logged for the operator, without values of callers.
    let reported = lines
        .iter()
        .filter(|line| line.to_string().contains("hidden-4713"));
    let reported: Vec<_> = reported
        .map(|line| (&line["request_id"], &line["code"]))
        .collect();
    assert_eq!(
        reported,
        [(&json!("found-3"), &json!("DATABASE_UNAVAILABLE"))]
    );
    assert!(!log.contains(token), "{log}");
}

#[tokio::test]
async fn a_stopped_node_completes_requests_in_progress() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap().to_owned();
    let inside = operator.root("shop").await;
    inside
        .batch_execute("select pg_advisory_lock(4714)")
        .await
        .unwrap();
    let q = "select pg_advisory_xact_lock_shared(4714) is not null as held";
    let request = node.client.post(format!("{}/api/v4/sql", node.url));
    let request = request.bearer_auth(&token).json(&json!({"q": q}));
    let in_flight = tokio::spawn(request.send());
    let waits = "select count(*) from pg_locks where locktype = 'advisory' and not granted";
    eventually("the statement waits", || async {
        let waiting = inside.query_one(waits, &[]).await.unwrap();
        waiting.get::<_, i64>(0) == 1
    })
    .await;
    let pid = node.pid();
    let term = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(term.unwrap().success());
    let address = node.url.trim_start_matches("http://").to_owned();
    eventually("nobody else is let in", || async {
        TcpStream::connect(&address).await.is_err()
    })
    .await;
    inside
        .batch_execute("select pg_advisory_unlock(4714)")
        .await
        .unwrap();
    let response = in_flight.await.unwrap().unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let response: Value = response.json().await.unwrap();
    assert_eq!(response["data"], json!([{"held": true}]));
    node.ended();
}

#[test]
fn limits_are_those_of_the_contract_where_nothing_is_set() {
    let shown = tidegate(&["settings"]).output().unwrap();
    let shown = text(&shown.stdout);
    for (name, value) in [
        ("body_limit", "10MiB"),
        ("statement_limit", "1MiB"),
        ("response_limit", "256MiB"),
        ("statement_timeout", "60s"),
        ("header_timeout", "10s"),
        ("idle_timeout", "75s"),
        ("drain_timeout", "30s"),
        ("connections", "10000"),
        ("cors_origins", "*"),
    ] {
        let mut lines = shown
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let line = lines.find(|words| words.first() == Some(&name)).unwrap();
        assert_eq!(line[1..], ["=", value, "#", "default"], "{shown}");
    }
}

#[tokio::test]
async fn limits_are_those_of_the_settings() {
    let folder = demo_folder();
    let settings = [
        ("TIDEGATE_BODY_LIMIT", "20KiB"),
        ("TIDEGATE_STATEMENT_LIMIT", "1KiB"),
        ("TIDEGATE_RESPONSE_LIMIT", "64KiB"),
        ("TIDEGATE_STATEMENT_TIMEOUT", "3s"),
        ("TIDEGATE_HEADER_TIMEOUT", "2s"),
        ("TIDEGATE_IDLE_TIMEOUT", "2s"),
    ];
    let demo = Service::start_with(folder.path().to_str().unwrap(), &[], &settings);
    let ask = async |body: &Value, wait: &str| {
        let request = demo.request(Method::POST, "/api/v4/sql").json(body);
        TextResponse::of(request.header("prefer", wait)).await
    };
    let with =
        |params: usize| json!({"q": "select length(:v) as n", "params": {"v": "x".repeat(params)}});
    assert_eq!(ask(&with(19_000), "wait=60").await.status, 200);
    let refused = ask(&with(21_000), "wait=60").await.error();
    assert_eq!(refused, (413, "PAYLOAD_TOO_LARGE".to_owned()));
    let of = |size: usize| json!({"q": format!("select '{}'", "x".repeat(size - 9))});
    assert_eq!(ask(&of(1024), "wait=60").await.status, 200);
    let refused = ask(&of(1025), "wait=60").await.error();
    assert_eq!(refused, (400, "INPUT_VALIDATION_ERROR".to_owned()));
    let many = "select repeat('x', 1000) as s from generate_series(1, 100)";
    let refused = ask(&json!({"q": many}), "wait=60").await.error();
    assert_eq!(refused, (413, "PAYLOAD_TOO_LARGE".to_owned()));
    for format in ["csv", "ndjson"] {
        let streamed = ask(&json!({"q": many, "output_format": format}), "wait=60").await;
        let lines = if format == "csv" { 101 } else { 100 };
        assert_eq!(
            (streamed.status, streamed.text.lines().count()),
            (200, lines)
        );
    }
    // A request may lower its deadline, but not raise it.
    let slow = json!({"q": "select pg_sleep(60)"});
    let refused = tokio::time::timeout(Duration::from_secs(20), ask(&slow, "wait=60")).await;
    let refused = refused.expect("it has more than its time").error();
    assert_eq!(refused, (504, "STATEMENT_TIMEOUT".to_owned()));
    let address = demo.url.trim_start_matches("http://");
    let health = "GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    for sent in ["GET /healthz HTTP/1.1\r\nho", health] {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(sent.as_bytes()).await.unwrap();
        let mut rest = Vec::new();
        let end = stream.read_to_end(&mut rest);
        // A request with an incomplete head, and an idle connection, end before their default
        // times.
        tokio::time::timeout(Duration::from_secs(9), end)
            .await
            .unwrap_or_else(|_| panic!("it stays open after {sent}"))
            .unwrap();
    }
}

#[tokio::test]
async fn an_anonymous_caller_needs_a_default_user_in_the_named_database() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let url = format!("{}/api/v4/sql", node.url);
    let ask = async |name: Option<&str>| {
        let request = node.client.post(&url).json(&json!({"q": "select 1 as n"}));
        TextResponse::of(match name {
            Some(name) => request.header("tidegate-database", name),
            None => request,
        })
        .await
    };
    for name in [Some("shop"), Some("nowhere"), Some("postgres"), None] {
        let refused = ask(name).await;
        assert_eq!(
            refused.error(),
            (401, "MISSING_TOKEN".to_owned()),
            "{name:?}"
        );
        let header = refused.header("www-authenticate");
        assert_eq!(header, challenge("http://api.localhost", ""), "{name:?}");
    }
    let create = [
        "user",
        "create",
        "shop",
        "anybody",
        "--default",
        "--no-password",
    ];
    operator.succeeds(&["tenant", "set", "shop", "anonymous_sql=read"], "");
    operator.succeeds(&create, "");
    eventually("strangers are let in", || async {
        ask(Some("shop")).await.status == 200
    })
    .await;
    assert_eq!(
        ask(None).await.status,
        401,
        "no database is the configured one"
    );
    node.stop();
}

#[tokio::test]
async fn a_user_and_a_client_are_of_one_tenant() {
    let operator = operator().await;
    let root = operator.root("postgres").await;
    let long = "d".repeat(40);
    root.batch_execute(&format!("CREATE DATABASE {long}"))
        .await
        .unwrap();
    let adopt = ["tenant", "adopt", &long, "--password-file", "-"];
    operator.succeeds(&adopt, "owner-password\n");
    let ann = ["user", "create", "shop", "ann", "--password-file", "-"];
    operator.succeeds(&ann, "ann-password\n");
    // The two names together are longer than the name of a role may be.
    let name = "u".repeat(32);
    let create = ["user", "create", &long, &name, "--no-password"];
    let (code, message) = operator.fails(&create, "");
    assert!(code != 0 && message.contains("63 bytes"), "{message}");
    operator.succeeds(&["user", "create", &long, &name[..22], "--no-password"], "");
    for name in [
        "d".repeat(31).as_str(),
        "pg_shop",
        "Shop",
        "1shop",
        "shop-2",
        "sh op",
        "",
    ] {
        let create = ["tenant", "create", name, "--password-file", "-"];
        let (_, message) = operator.fails(&create, "owner-password\n");
        assert!(message.contains("30 bytes"), "{name}: {message}");
    }
    // A role that exists already does not become a user's role.
    root.batch_execute("CREATE ROLE \"shop/taken\" LOGIN")
        .await
        .unwrap();
    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let owner = tokens["access_token"].as_str();
    for name in ["taken", "ann"] {
        let body = json!({"name": name, "password": "long-password"});
        let (status, error) = node.post("/api/v4/users", owner, body).await;
        assert_eq!(status, StatusCode::CONFLICT, "{error}");
        assert_eq!(error["errorCode"], "ALREADY_EXISTS", "{error}");
    }
    node.sign_in("shop", "ann", "ann-password").await;
    let uri = ["--redirect-uri", "http://127.0.0.1:5000/callback"];
    let client = [
        "client", "create", &long, "Other", "--id", "other", "--public",
    ];
    operator.succeeds(&[&client[..], &uri].concat(), "");
    for (database, client, error) in [
        (long.as_str(), "other", "invalid_grant"),
        ("shop", "other", "unauthorized_client"),
        (&long, "app", "unauthorized_client"),
    ] {
        let body = json!({
            "grant_type": "password", "username": "ann", "password": "ann-password",
            "database": database, "client_id": client,
        });
        let (status, response) = node.post("/api/v4/oauth", None, body).await;
        let actual = (status, response["error"].as_str());
        assert_eq!(
            actual,
            (StatusCode::BAD_REQUEST, Some(error)),
            "{database} {client}"
        );
    }
    node.stop();
}
