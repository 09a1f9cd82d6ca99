//! Tests what all grants have in common (API.md, "Tokens"): the form of success, one session for
//! each, clients of one tenant.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::flows::client;
use crate::node::{Node, operator};
use crate::pages::{Browser, CALLBACK, VERIFIER, authorization};
use crate::service::{TextResponse, demo};

const FORM: &str = "application/x-www-form-urlencoded";

/// Sends a request to an OAuth endpoint of the demo.
async fn ask(path: &str, body: &Value) -> TextResponse {
    let path = format!("/api/v4/oauth{path}");
    TextResponse::of(demo().request(reqwest::Method::POST, &path).json(body)).await
}

/// The response of each grant, by its name.
async fn every_grant() -> Vec<(&'static str, TextResponse)> {
    client("every-grant", json!({"public": true, "confirm": false})).await;
    let with = |grant: &str, mut more: Value| {
        more["grant_type"] = grant.into();
        more["client_id"] = "every-grant".into();
        more
    };
    let password = json!({"username": "alice", "password": "alice1234", "database": "demo"});
    let password = ask("", &with("password", password)).await;
    let refresh = json!({"refresh_token": password.json()["refresh_token"]});
    let refresh = ask("", &with("refresh_token", refresh)).await;

    let mut browser = Browser::new(demo());
    let page = browser.get(&authorization("every-grant")).await;
    let signed_in = browser.sign_in(&page, "alice").await;
    let code = json!({
        "code": signed_in.parameter("code"), "redirect_uri": CALLBACK, "code_verifier": VERIFIER,
    });
    let code = ask("", &with("authorization_code", code)).await;

    let device = ask("/device", &json!({"client_id": "every-grant"})).await;
    let complete = device.json()["verification_uri_complete"].clone();
    let complete = complete.as_str().unwrap().strip_prefix(&demo().url);
    let page = browser.get(complete.unwrap()).await;
    let typed = device.json()["user_code"].clone();
    let typed = [("user_code", typed.as_str().unwrap())];
    let page = browser.submit(&page, "code", &typed).await;
    let decision = [("decision", "allow")];
    assert_eq!(browser.submit(&page, "decide", &decision).await.status, 200);
    let device = json!({"device_code": device.json()["device_code"]});
    let device = ask("", &with("device_code", device)).await;

    let guest = json!({"database": "demo", "client_id": "every-grant"});
    let guest = ask("/guest", &guest).await;
    vec![
        ("password", password),
        ("refresh_token", refresh),
        ("authorization_code", code),
        ("device_code", device),
        ("guest", guest),
    ]
}

#[tokio::test]
async fn every_grant_answers_in_one_form() {
    for (grant, response) in every_grant().await {
        let reported = response.json();
        let (status, kind) = match grant {
            "guest" => (201, "bearer"),
            _ => (200, "Bearer"),
        };
        assert_eq!(response.status, status, "{grant} {response:?}");
        let expected = format!(
            r#"{{"access_token":{},"token_type":"{kind}","expires_in":3600,"refresh_token":{},"scope":""}}"#,
            reported["access_token"], reported["refresh_token"]
        );
        assert_eq!(response.text, expected, "{grant}");
        for token in ["access_token", "refresh_token"] {
            assert_eq!(reported[token].as_str().unwrap().split('.').count(), 3);
        }
        for (name, value) in [
            ("content-type", "application/json; charset=utf-8"),
            ("cache-control", "no-store"),
            ("pragma", "no-cache"),
        ] {
            assert_eq!(response.header(name), value, "{grant}");
        }
        // The refresh token of the response is valid too.
        let body = json!({
            "grant_type": "refresh_token", "client_id": "every-grant",
            "refresh_token": reported["refresh_token"],
        });
        let again = ask("", &body).await;
        assert_eq!(again.status, 200, "{grant} {again:?}");
        assert_eq!(again.json()["token_type"], "Bearer", "{grant}");
    }
}

#[tokio::test]
async fn refreshing_leaves_nothing_but_the_row_of_the_session() {
    let control = demo().control().await;
    // The test has a user of its own, because others sign in at the same time.
    let user = json!({"name": "one-row", "password": "one-row-1234"});
    let path = ("POST", "/api/v4/users");
    assert_eq!(demo().rest(Some("demo"), path, &user).await.status, 201);
    let body = json!({
        "grant_type": "password", "client_id": "demo-app", "username": "one-row",
        "password": "one-row-1234", "database": "demo",
    });
    let mut tokens = ask("", &body).await.json();
    let counts = async || {
        let counts = "select (select count(*) from tidegate.sessions where user_name = 'one-row'), \
            (select count(*) from tidegate.audit_events where user_name = 'one-row')";
        let row = control.query_one(counts, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, i64>(1))
    };
    let before = counts().await;
    assert_eq!(before.0, 1);
    for _ in 0..10 {
        let body = json!({
            "grant_type": "refresh_token", "client_id": "demo-app",
            "refresh_token": tokens["refresh_token"],
        });
        tokens = ask("", &body).await.json();
        assert!(tokens["access_token"].is_string(), "{tokens}");
    }
    assert_eq!(counts().await, before);
}

#[tokio::test]
async fn the_endpoints_of_oauth_are_posted_to() {
    for path in ["", "/device", "/guest", "/revoke", "/introspect"] {
        for method in ["GET", "PUT", "PATCH", "DELETE"] {
            let path = format!("/api/v4/oauth{path}");
            let request = demo().request(method.parse().unwrap(), &path);
            let response = TextResponse::of(request.header("content-type", FORM)).await;
            assert_eq!(response.status, 405, "{method} {path}");
            assert_eq!(response.header("allow"), "POST, OPTIONS", "{method} {path}");
            assert!(!response.text.contains(": "), "{}", response.text);
        }
    }
}

#[tokio::test]
async fn a_client_is_of_one_tenant_and_of_no_other() {
    let operator = operator().await;
    let arguments = ["tenant", "create", "quiet", "--password-file", "-"];
    operator.succeeds(&arguments, "quiet-password\n");
    let node = Node::start(&operator).await;
    let shop = node.sign_in("shop", "shop", "owner-password").await;
    let shop = shop["access_token"].as_str();
    // The database of the other tenant exists, and its owner's password is right.
    let body = json!({
        "grant_type": "password", "username": "quiet", "password": "quiet-password",
        "database": "quiet", "client_id": "app",
    });
    let guest = json!({"database": "quiet", "client_id": "app"});
    for (path, body) in [("/api/v4/oauth", &body), ("/api/v4/oauth/guest", &guest)] {
        let (status, reported) = node.post(path, None, body.clone()).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{reported}");
        assert_eq!(reported["error"], "unauthorized_client");
    }
    // An owner without clients gets an empty list, and not the clients of others.
    let uri = ["--redirect-uri", "https://quiet.example/"];
    let made = [
        "client",
        "create",
        "quiet",
        "Q",
        "--id",
        "quiet-app",
        "--public",
    ];
    operator.succeeds(&[&made[..], &uri].concat(), "");
    let mut own = body;
    own["client_id"] = "quiet-app".into();
    let (_, tokens) = node.post("/api/v4/oauth", None, own).await;
    let quiet = tokens["access_token"].as_str().unwrap();
    let of = |method: &str, path: &str| {
        let url = format!("{}/api/v4/clients{path}", node.url);
        let request = node.client.request(method.parse().unwrap(), url);
        TextResponse::of(request.bearer_auth(quiet))
    };
    for method in ["GET", "DELETE"] {
        assert_eq!(of(method, "/app").await.error().0, 404, "{method}");
    }
    let foreign = json!({"id": "app", "name": "Mine", "redirect_uri": ["https://quiet.example/"]});
    let (status, _) = node.post("/api/v4/clients", Some(quiet), foreign).await;
    assert_eq!(status, StatusCode::CONFLICT);
    // Without the operator's setting, sign-up is closed, whatever the client allows.
    let open = json!({
        "id": "open", "name": "Open", "public": true, "allow_signup": true,
        "redirect_uri": ["https://quiet.example/"],
    });
    let (status, _) = node.post("/api/v4/clients", shop, open).await;
    assert_eq!(status, StatusCode::CREATED);
    let page = "/signup/?client_id=open&parentdb=shop&redirect_uri=https%3A%2F%2Fquiet.example%2F";
    let page = node.client.get(format!("{}{page}", node.url)).send().await;
    assert_eq!(page.unwrap().status(), StatusCode::FORBIDDEN);
    node.stop();
}

#[tokio::test]
async fn the_list_of_no_clients_is_an_empty_array() {
    let operator = operator().await;
    let node = Node::start(&operator).await;
    let owner = node.sign_in("shop", "shop", "owner-password").await;
    let owner = owner["access_token"].as_str().unwrap();
    let control = operator.root("tidegate").await;
    // This state arises if a client is dropped without its sessions.
    let gone = "delete from tidegate.clients where id = 'app'";
    assert_eq!(control.execute(gone, &[]).await.unwrap(), 1);
    let url = format!("{}/api/v4/clients", node.url);
    let list = TextResponse::of(node.client.get(url).bearer_auth(owner)).await;
    assert_eq!((list.status, list.text.as_str()), (200, "[]"));
    node.stop();
}
