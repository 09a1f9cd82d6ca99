//! Tests `tidegate serve` in front of an operator's cluster.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};
use tidegate_embedded::Shutdown;
use tokio::net::TcpSocket;

use crate::node::{Node, adopt, operator};
use crate::operator::{Operator, tidegate};
use crate::process::{Process, ProcessOutput};
use crate::service::eventually;

#[tokio::test]
async fn an_adopted_database_is_served_and_no_secret_is_logged() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str().unwrap();
    let body = json!({
        "q": "select * from orders where total < :most", "params": {"most": "4711.25"},
    });
    let (status, response) = node.post("/api/v4/sql", Some(token), body).await;
    assert_eq!(
        (status, &response["data"]),
        (StatusCode::OK, &json!([{"id": 1, "total": "9.90"}]))
    );

    let log = node.stop();
    assert!(log.contains("/api/v4/sql"), "{log}");
    let key = std::fs::read_to_string(operator.folder.path().join("master.key")).unwrap();
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let admin = operator.cluster.admin_password();
    for secret in [
        token,
        refresh,
        key.trim(),
        admin,
        "owner-password",
        "4711.25",
    ] {
        assert!(!log.contains(secret), "{secret} is in\n{log}");
    }
}

#[tokio::test]
async fn changes_by_the_command_line_reach_a_running_node() {
    let operator = operator().await;
    operator.succeeds(&["tenant", "set", "shop", "anonymous_sql=read"], "");
    let node = Node::start(&operator).await;
    let ask = || async {
        let path = "/api/v4/sql/database/shop";
        node.post(path, None, json!({"q": "select current_user as me"}))
            .await
    };
    assert_eq!(ask().await.0, StatusCode::NOT_FOUND);
    operator.succeeds(
        &[
            "user",
            "create",
            "shop",
            "anybody",
            "--default",
            "--no-password",
        ],
        "",
    );
    eventually("strangers are let in", || async {
        ask().await.0 == StatusCode::OK
    })
    .await;
    assert_eq!(ask().await.1["data"][0]["me"], "shop/anybody");
    operator.succeeds(&["user", "drop", "shop", "anybody", "--yes"], "");
    eventually("strangers are kept out", || async {
        ask().await.0 == StatusCode::NOT_FOUND
    })
    .await;

    operator.succeeds(
        &["user", "create", "shop", "ann", "--password-file", "-"],
        "ann-password\n",
    );
    let token = node.sign_in("shop", "ann", "ann-password").await;
    let token = token["access_token"].as_str().unwrap();
    assert_eq!(node.status(token).await, StatusCode::OK);
    operator.succeeds(&["tenant", "drop", "shop", "--yes"], "");
    let started = Instant::now();
    eventually("the user is out", || async {
        node.status(token).await == 401
    })
    .await;
    assert!(started.elapsed() < Duration::from_secs(10));
    node.stop();
}

#[tokio::test]
async fn a_session_that_ends_on_one_node_has_ended_on_the_other() {
    let operator = operator().await;
    let (one, two) = (Node::start(&operator).await, Node::start(&operator).await);
    let tokens = one.sign_in("shop", "shop", "owner-password").await;
    let access = tokens["access_token"].as_str().unwrap();
    assert_eq!(two.status(access).await, StatusCode::OK);
    let body = json!({"token": tokens["refresh_token"], "client_id": "app"});
    assert_eq!(
        one.post("/api/v4/oauth/revoke", None, body).await.0,
        StatusCode::OK
    );
    let started = Instant::now();
    eventually("the other node knows", || async {
        two.status(access).await == 401
    })
    .await;
    assert!(started.elapsed() < Duration::from_secs(10));
    one.stop();
    two.stop();
}

#[tokio::test]
async fn a_method_that_one_node_changes_is_another_one_on_the_other() {
    let operator = operator().await;
    let (one, two) = (Node::start(&operator).await, Node::start(&operator).await);
    let tokens = one.sign_in("shop", "shop", "owner-password").await;
    let access = tokens["access_token"].as_str().unwrap();
    let define = json!({"method": "answer", "q": "select 42 as n"});
    let (status, _) = one.post("/api/v4/methods", Some(access), define).await;
    assert_eq!(status, StatusCode::CREATED);
    let call = || async {
        let call = json!({"jsonrpc": "2.0", "method": "answer", "id": 1});
        two.post("/api/v4/call", Some(access), call).await.1
    };
    assert_eq!(
        call().await["result"]["data"][0]["n"],
        42,
        "it is there at once"
    );
    let url = format!("{}/api/v4/methods/answer", one.url);
    let patch = one.client.patch(&url).bearer_auth(access);
    let patch = patch.json(&json!({"q": "select 43 as n"})).send().await;
    // The client has followed the redirect (303) to the method.
    assert_eq!(patch.unwrap().status(), StatusCode::OK);
    let started = Instant::now();
    eventually("the other node knows the change", || async {
        call().await["result"]["data"][0]["n"] == 43
    })
    .await;
    let dropped = one.client.delete(&url).bearer_auth(access).send().await;
    assert_eq!(dropped.unwrap().status(), StatusCode::NO_CONTENT);
    eventually("the other node knows the end", || async {
        call().await["error"]["code"] == -32601
    })
    .await;
    // Without a notification the other node would notice the change after a minute.
    assert!(started.elapsed() < Duration::from_secs(20));

    let define = json!({"method": "left", "q": "select 1 as n"});
    one.post("/api/v4/methods", Some(access), define).await;
    operator.succeeds(&["tenant", "drop", "shop", "--yes"], "");
    adopt(&operator);
    let tokens = two.sign_in("shop", "shop", "owner-password").await;
    let list = two.client.get(format!("{}/api/v4/methods", two.url));
    let list = list.bearer_auth(tokens["access_token"].as_str().unwrap());
    let list: Value = list.send().await.unwrap().json().await.unwrap();
    assert_eq!(list, json!([]), "a tenant's methods go with it");
    one.stop();
    two.stop();
}

#[tokio::test]
async fn a_rotated_key_signs_for_every_node() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let before = tokens["access_token"].as_str().unwrap();
    operator.succeeds(&["key", "rotate", "--compromised"], "");
    eventually("what the old key signed is refused", || async {
        node.status(before).await == 401
    })
    .await;
    let body = json!({
        "grant_type": "refresh_token", "refresh_token": tokens["refresh_token"],
        "client_id": "app",
    });
    let (status, response) = node.post("/api/v4/oauth", None, body).await;
    assert_eq!(status, StatusCode::OK, "{response}");
    assert_eq!(
        node.status(response["access_token"].as_str().unwrap())
            .await,
        StatusCode::OK
    );
    node.stop();
}

#[tokio::test]
async fn while_postgresql_is_away_a_node_says_so_and_it_comes_back_by_itself() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let access = tokens["access_token"].as_str().unwrap();
    // The fixture's cluster writes asynchronously, so after a crash the session would be gone.
    operator.cluster.halt(Shutdown::Fast).await.unwrap();
    let readiness = format!("{}/readyz", node.url);
    eventually("the node is not ready", || async {
        let response = node.client.get(&readiness).send().await;
        response.unwrap().status() == StatusCode::SERVICE_UNAVAILABLE
    })
    .await;
    let response = node.client.get(&readiness).send().await.unwrap();
    let response: Value = response.json().await.unwrap();
    let expected = json!({"database": "unavailable", "catalog": "degraded", "feed": "degraded"});
    assert_eq!(response["checks"], expected);
    let health = node
        .client
        .get(format!("{}/healthz", node.url))
        .send()
        .await;
    assert_eq!(health.unwrap().status(), StatusCode::OK);
    let refresh = json!({
        "grant_type": "refresh_token", "refresh_token": tokens["refresh_token"],
        "client_id": "app",
    });
    for path in [
        "/api/v4/oauth",
        "/api/v4/oauth/device",
        "/api/v4/oauth/guest",
        "/api/v4/oauth/introspect",
        "/api/v4/oauth/revoke",
    ] {
        let mut body = refresh.clone();
        body["database"] = "shop".into();
        body["token"] = tokens["refresh_token"].clone();
        let request = node.client.post(format!("{}{path}", node.url)).json(&body);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE, "{path}");
        assert!(response.headers().contains_key("retry-after"), "{path}");
        let text = response.text().await.unwrap();
        assert!(!text.contains(": "), "{path}: {text}");
        let error: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(error["error"], "temporarily_unavailable", "{path}");
        if path.ends_with("/guest") {
            assert_eq!(error["errorCode"], "temporarily_unavailable", "{error}");
            assert_eq!(
                (&error["success"], &error["code"]),
                (&json!(false), &json!(503))
            );
            assert_eq!(error["message"], error["error_description"], "{error}");
        }
    }
    let query = json!({"query": "{ __typename }"});
    let graphql = format!("{}/api/graphql/schema/public", node.url);
    let graphql = node.client.post(graphql).bearer_auth(access).json(&query);
    let response = graphql.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(response.headers().contains_key("retry-after"));
    let error: Value = response.json().await.unwrap();
    assert!(error["errors"][0]["message"].is_string(), "{error}");
    assert_eq!(error.get("success"), None, "{error}");
    assert_eq!(node.status(access).await, StatusCode::SERVICE_UNAVAILABLE);
    operator.cluster.resume().await.unwrap();
    eventually("statements run again", || async {
        node.status(access).await == StatusCode::OK
    })
    .await;
    eventually("tokens are given again", || async {
        node.post("/api/v4/oauth", None, refresh.clone()).await.0 == StatusCode::OK
    })
    .await;
    node.stop();
}

#[tokio::test]
async fn a_node_says_what_its_administrator_lacks_and_serves_all_the_same() {
    let mut operator = operator().await;
    let root = operator.root("postgres").await;
    let sql = "CREATE ROLE poor LOGIN CREATEROLE PASSWORD 'poor'; \
               GRANT ALL ON DATABASE tidegate TO poor";
    root.batch_execute(sql).await.unwrap();
    let rights = "GRANT ALL ON SCHEMA tidegate TO poor; \
                  GRANT ALL ON ALL TABLES IN SCHEMA tidegate TO poor; \
                  GRANT ALL ON ALL SEQUENCES IN SCHEMA tidegate TO poor";
    operator
        .root("tidegate")
        .await
        .batch_execute(rights)
        .await
        .unwrap();
    let port = operator.cluster.port();
    operator.admin_url = format!("postgresql://poor:poor@127.0.0.1:{port}/postgres");
    let node = Node::start(&operator).await;
    node.sign_in("shop", "shop", "owner-password").await;
    let log = node.stop();
    assert!(
        log.contains("GRANT pg_signal_backend TO \\\"poor\\\";"),
        "{log}"
    );
}

#[test]
fn an_address_that_is_taken_is_one_clear_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap().to_string();
    let mut command = tidegate(&["serve", "--listen", &listen]);
    command.env("TIDEGATE_ADMIN_URL", "postgresql://me@127.0.0.1:1/postgres");
    let output = command.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        (output.status.code(), message.lines().count()),
        (Some(1), 1),
        "{message}"
    );
    assert!(
        message.contains(&listen) && message.contains("--listen"),
        "{message}"
    );
}

#[tokio::test]
async fn a_node_that_starts_before_postgresql_waits_for_it() {
    let operator = Operator::new().await;
    // A reserved port, which refuses connections until the node has tried it. After that it
    // forwards connections to PostgreSQL.
    let listener = TcpSocket::new_v4().unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let password = operator.cluster.admin_password();
    let user = operator.cluster.admin_user();
    let url = format!("postgresql://{user}:{password}@{address}/postgres");
    let mut command = operator.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("TIDEGATE_ADMIN_URL", url);
    let mut process = Process(command.stderr(Stdio::piped()).spawn().unwrap());
    let log = ProcessOutput::of(process.0.stderr.take().unwrap());
    let line = log.wait_for("\n");
    assert!(
        line.contains("WARN") && line.contains("retry_in") && line.contains("refused"),
        "{line}"
    );

    let listener = listener.listen(16).unwrap();
    let postgresql = ("127.0.0.1", operator.cluster.port());
    tokio::spawn(async move {
        while let Ok((mut caller, _)) = listener.accept().await {
            let mut server = tokio::net::TcpStream::connect(postgresql).await.unwrap();
            tokio::spawn(async move {
                let _ = tokio::io::copy_bidirectional(&mut caller, &mut server).await;
            });
        }
    });
    let client = Client::new();
    let readiness = format!("http://127.0.0.1:{}/readyz", log.port().await);
    eventually("the node is ready", || async {
        let response = client.get(&readiness).send().await;
        response.is_ok_and(|response| response.status() == StatusCode::OK)
    })
    .await;
    let pid = process.0.id().to_string();
    Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert_eq!(process.end().code(), Some(0));
}

#[tokio::test]
async fn the_issuer_is_the_public_url_wherever_the_node_listens() {
    use base64::Engine as _;
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let path = "/.well-known/oauth-authorization-server";
    let metadata = node.client.get(format!("{}{path}", node.url)).send().await;
    let metadata: Value = metadata.unwrap().json().await.unwrap();
    for (name, value) in [
        ("issuer", "http://api.localhost"),
        ("token_endpoint", "http://api.localhost/api/v4/oauth"),
        ("jwks_uri", "http://api.localhost/.well-known/jwks.json"),
    ] {
        assert_eq!(metadata[name], value, "{name}");
    }
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let claims = tokens["access_token"].as_str().unwrap().split('.').nth(1);
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims.unwrap());
    let claims: Value = serde_json::from_slice(&claims.unwrap()).unwrap();
    for name in ["iss", "aud"] {
        assert_eq!(claims[name], "http://api.localhost", "{name}");
    }
    node.stop();
}
