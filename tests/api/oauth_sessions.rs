//! Tests refresh tokens, guest tokens, revocation and introspection (API.md, "Tokens").

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::oauth::{granted, password, post, refused};
use crate::service::demo;

pub(crate) async fn refresh(token: &str) -> Response {
    let body =
        json!({"grant_type": "refresh_token", "refresh_token": token, "client_id": "demo-app"});
    post("/api/v4/oauth", &body).await
}

#[tokio::test]
async fn a_refresh_token_lives_until_a_successor_was_used() {
    let first = granted(post("/api/v4/oauth", &password("alice", "alice1234")).await).await;
    let first = first["refresh_token"].as_str().unwrap();
    let second = granted(refresh(first).await).await;
    let again = granted(refresh(first).await).await;
    let (left, right) = tokio::join!(refresh(first), refresh(first));
    granted(left).await;
    granted(right).await;
    assert_ne!(second["refresh_token"], first);
    let third = granted(refresh(again["refresh_token"].as_str().unwrap()).await).await;
    // A successor of `first` was used, so using `first` again ends the session.
    assert_eq!(
        refused(refresh(first).await).await,
        (400, "invalid_grant".into())
    );
    assert_eq!(
        refused(refresh(third["refresh_token"].as_str().unwrap()).await).await,
        (400, "invalid_grant".into())
    );
    // The session's access tokens are refused within 5 s.
    let access = third["access_token"].as_str().unwrap().to_owned();
    let started = std::time::Instant::now();
    crate::service::eventually("the access token is refused", || async {
        let response = demo()
            .request(Method::POST, "/api/v4/sql")
            .bearer_auth(&access)
            .json(&json!({"q": "select 1"}));
        response.send().await.unwrap().status() == 401
    })
    .await;
    assert!(started.elapsed().as_secs() < 6);
}

#[tokio::test]
async fn a_refresh_token_is_no_access_token() {
    let tokens = granted(post("/api/v4/oauth", &password("alice", "alice1234")).await).await;
    let response = demo()
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(tokens["refresh_token"].as_str().unwrap())
        .json(&json!({"q": "select 1"}))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 401);
    let response = refresh(tokens["access_token"].as_str().unwrap()).await;
    assert_eq!(refused(response).await, (400, "invalid_grant".into()));
}

#[tokio::test]
async fn a_guest_gets_the_default_user() {
    let response = post(
        "/api/v4/oauth/guest",
        &json!({"database": "demo", "client_id": "demo-app"}),
    )
    .await;
    assert_eq!(response.status(), 201);
    let body = granted(response).await;
    assert_eq!(body["token_type"], "bearer");
    assert_eq!(body["scope"], "");
    assert!(body["refresh_token"].is_string());
    let response = demo()
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(body["access_token"].as_str().unwrap())
        .json(&json!({"q": "select current_user::text as c"}))
        .send()
        .await
        .unwrap();
    assert_eq!(
        response.json::<Value>().await.unwrap()["data"],
        json!([{"c": "demo/guest"}])
    );
}

#[tokio::test]
async fn guest_errors_are_those_of_the_specification() {
    for (body, status, name) in [
        (
            json!({"database": "nowhere", "client_id": "demo-app"}),
            404,
            "NO_DEFAULT_USER_FOUND",
        ),
        (
            json!({"database": "demo", "client_id": "nobody"}),
            401,
            "invalid_grant",
        ),
        (
            json!({"database": "demo", "client_id": "demo-server", "client_secret": "x"}),
            401,
            "invalid_client",
        ),
    ] {
        let response = post("/api/v4/oauth/guest", &body).await;
        let got = response.status().as_u16();
        let error: Value = response.json().await.unwrap();
        assert_eq!(
            (got, error["error"].as_str()),
            (status, Some(name)),
            "{body}: {error}"
        );
        assert_eq!(error["errorCode"], name);
        assert_eq!(
            (&error["success"], &error["code"]),
            (&json!(false), &json!(status))
        );
        assert!(error["message"].is_string());
    }
}

#[tokio::test]
async fn revoking_ends_a_session_and_introspection_says_so_at_once() {
    let tokens = granted(post("/api/v4/oauth", &password("alice", "alice1234")).await).await;
    let introspect = |token: Value| async move {
        let body = json!({"token": token, "client_id": "demo-server", "client_secret": "demo-server-secret"});
        post("/api/v4/oauth/introspect", &body)
            .await
            .json::<Value>()
            .await
            .unwrap()
    };
    let active = introspect(tokens["access_token"].clone()).await;
    assert_eq!(active["active"], true, "{active}");
    assert_eq!(active["client_id"], "demo-app");
    assert_eq!(introspect(json!("x")).await, json!({"active": false}));
    let anonymous = post(
        "/api/v4/oauth/introspect",
        &json!({"token": "x", "client_id": "demo-app"}),
    )
    .await;
    assert_eq!(anonymous.status(), 401);
    let revoke = json!({"token": tokens["refresh_token"], "client_id": "demo-app"});
    assert_eq!(post("/api/v4/oauth/revoke", &revoke).await.status(), 200);
    assert_eq!(
        introspect(tokens["access_token"].clone()).await,
        json!({"active": false})
    );
    assert_eq!(
        post(
            "/api/v4/oauth/revoke",
            &json!({"token": "x", "client_id": "demo-app"})
        )
        .await
        .status(),
        200
    );
}
