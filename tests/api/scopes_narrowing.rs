//! Tests that a token never gives more scopes than it has (docs/API.md, "Scopes").

use reqwest::Method;
use serde_json::{Value, json};

use crate::flows::failure;
use crate::pages::{Browser, CALLBACK, VERIFIER, authorization};
use crate::scopes::{GRAPHQL, code, send, token, token_response};
use crate::service::demo;

#[tokio::test]
async fn a_refresh_narrows_the_token_and_never_widens_it() {
    let first = token_response(json!({"scope": "read methods"})).await;
    let refresh = |scope: Option<&str>| {
        let mut body = json!({
            "grant_type": "refresh_token", "client_id": "demo-app",
            "refresh_token": first["refresh_token"],
        });
        if let Some(scope) = scope {
            body["scope"] = json!(scope);
        }
        body
    };
    for wider in [
        "sql",
        "read sql",
        "admin",
        "read write methods sql admin",
        "openid",
        "root",
    ] {
        let refused = failure(&refresh(Some(wider))).await;
        assert_eq!(refused, (400, "invalid_scope".to_owned()), "{wider}");
    }
    let post = ("POST", "/api/v4/oauth");
    for (asked, granted) in [
        (Some("read"), "read"),
        // The refresh token keeps what was granted (RFC 6749, section 6).
        (None, "read methods"),
        (Some(""), "read methods"),
        (Some("methods"), "methods"),
    ] {
        let response = demo().rest_with(None, post, &refresh(asked)).await.body;
        assert_eq!(response["scope"], granted, "{response}");
        let token = response["access_token"].as_str().unwrap();
        let sql = send(
            token,
            Method::POST,
            "/api/v4/sql",
            &json!({"q": "select 1"}),
        )
        .await;
        assert_eq!(code(&sql), "INSUFFICIENT_SCOPE", "{asked:?}");
    }
}

#[tokio::test]
async fn an_unknown_scope_is_refused_by_every_grant() {
    for body in [
        json!({"grant_type": "password", "username": "alice", "password": "alice1234",
               "database": "demo", "client_id": "demo-app", "scope": "root"}),
        json!({"grant_type": "client_credentials", "client_id": "demo-server",
               "client_secret": "demo-server-secret", "scope": "READ"}),
        json!({"grant_type": "refresh_token", "refresh_token": "x", "client_id": "demo-app",
               "scope": "read,write"}),
    ] {
        assert_eq!(
            failure(&body).await,
            (400, "invalid_scope".to_owned()),
            "{body}"
        );
    }
    for path in ["/api/v4/oauth/device", "/api/v4/oauth/guest"] {
        let body = json!({"client_id": "demo-app", "database": "demo", "scope": "root"});
        let refused = demo().rest_with(None, ("POST", path), &body).await;
        assert_eq!(
            (refused.status, &refused.body["error"]),
            (400, &json!("invalid_scope")),
            "{path}"
        );
    }
    let mut browser = Browser::new(demo());
    let page = browser
        .get(&format!("{}&scope=root", authorization("demo-app")))
        .await;
    assert_eq!(
        (page.status, &*page.parameter("error")),
        (303, "invalid_scope")
    );
}

#[tokio::test]
async fn a_narrowed_token_makes_no_wider_one() {
    let admin = token("admin").await;
    let body = |scopes: Value| json!({"name": "scoped", "scopes": scopes});
    let wider = send(
        &admin,
        Method::POST,
        "/api/v4/tokens",
        &body(json!(["sql"])),
    )
    .await;
    assert_eq!(
        (wider.status, code(&wider)),
        (400, "INPUT_VALIDATION_ERROR".to_owned())
    );
    // A token that is requested without scopes gets those of the caller, and not all.
    let unscoped = json!({"name": "scoped"});
    let same = send(&admin, Method::POST, "/api/v4/tokens", &unscoped).await;
    let same = same.json();
    let token = same["token"].as_str().unwrap();
    let sql = send(
        token,
        Method::POST,
        "/api/v4/sql",
        &json!({"q": "select 1"}),
    )
    .await;
    assert_eq!(code(&sql), "INSUFFICIENT_SCOPE");

    let own = demo().token("alice").await;
    let made = send(
        &own,
        Method::POST,
        "/api/v4/tokens",
        &body(json!(["read", "methods"])),
    )
    .await;
    let made = made.json();
    let token = made["token"].as_str().unwrap();
    let read = send(
        token,
        Method::POST,
        GRAPHQL,
        &json!({"query": "{__typename}"}),
    )
    .await;
    assert_eq!(read.status, 200, "{read:?}");
    let sql = send(
        token,
        Method::POST,
        "/api/v4/sql",
        &json!({"q": "select 1"}),
    )
    .await;
    assert_eq!(code(&sql), "INSUFFICIENT_SCOPE");
    let tokens = send(token, Method::GET, "/api/v4/tokens", &Value::Null).await;
    assert_eq!(code(&tokens), "INSUFFICIENT_SCOPE");

    // An owner who acts as a user has no more scopes than its own token.
    let mut owner = json!({"username": "demo", "password": "demo1234"});
    owner["scope"] = json!("admin");
    let owner = token_response(owner).await;
    let owner = owner["access_token"].as_str().unwrap();
    let acting = send(owner, Method::POST, "/api/v4/users/alice/token", &json!({})).await;
    let acting = acting.json();
    assert_eq!(acting["scope"], "admin");
    let token = acting["access_token"].as_str().unwrap();
    let sql = send(
        token,
        Method::POST,
        "/api/v4/sql",
        &json!({"q": "select 1"}),
    )
    .await;
    assert_eq!(code(&sql), "INSUFFICIENT_SCOPE");
}

#[tokio::test]
async fn the_redemption_of_a_code_does_not_widen_what_was_allowed() {
    crate::flows::client("narrow-code", json!({"public": true, "confirm": false})).await;
    let mut browser = Browser::new(demo());
    let start = format!("{}&scope=read", authorization("narrow-code"));
    let page = browser.get(&start).await;
    let page = browser.sign_in(&page, "alice").await;
    let body = json!({
        "grant_type": "authorization_code", "client_id": "narrow-code",
        "code": page.parameter("code"), "redirect_uri": CALLBACK, "code_verifier": VERIFIER,
        "scope": "read sql admin",
    });
    let post = ("POST", "/api/v4/oauth");
    let response = demo().rest_with(None, post, &body).await.body;
    assert_eq!(response["scope"], "read", "{response}");
}
