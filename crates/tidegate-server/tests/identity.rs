//! Tests of the identity with which a request runs.

use http::Method;
use serde_json::{Value, json};
use tidegate_identity::{UserChange, UserKey};

use crate::fixture::{Api, TestResponse, challenge, request};

async fn run_statement(api: &Api, headers: &[(&str, &str)], path: &str) -> TestResponse {
    let mut request = request(Method::POST, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    api.call(
        request
            .body(json!({"q": "select who"}).to_string())
            .unwrap(),
    )
    .await
}

fn principal(response: &TestResponse) -> String {
    assert_eq!(response.status, 200, "{}", response.text());
    response.json()["data"][0]["s"].as_str().unwrap().to_owned()
}

const SQL: &str = "/api/v4/sql";

#[tokio::test]
async fn a_token_decides_database_and_role() {
    let api = Api::start().await;
    for (user, expected) in [("demo", "demo demo one"), ("alice", "demo demo/alice one")] {
        let bearer = format!("Bearer {}", api.token(user).await);
        assert_eq!(
            principal(&run_statement(&api, &[("authorization", &bearer)], SQL).await),
            expected
        );
        let lower = bearer.replace("Bearer", "bearer");
        assert_eq!(
            principal(&run_statement(&api, &[("authorization", &lower)], SQL).await),
            expected
        );
    }
}

#[tokio::test]
async fn a_guests_role_is_shared() {
    let api = Api::start().await;
    let body = json!({"database": "demo", "client_id": "app"});
    let guest = api.post("/api/v4/oauth/guest", &body).await.json();
    let bearer = format!("Bearer {}", guest["access_token"].as_str().unwrap());
    let response = run_statement(&api, &[("authorization", &bearer)], SQL).await;
    assert_eq!(principal(&response), "demo demo/guest strangers");
}

#[tokio::test]
async fn without_a_token_path_header_and_setting_name_the_database() {
    let api = Api::with(|builder| builder.anonymous_database(None)).await;
    let guest = "demo demo/guest strangers";
    assert_eq!(
        principal(&run_statement(&api, &[("tidegate-database", "demo")], SQL).await),
        guest
    );
    assert_eq!(
        principal(&run_statement(&api, &[], "/api/v4/sql/database/demo").await),
        guest
    );
    let nobody = run_statement(&api, &[], SQL).await;
    assert_eq!(nobody.error(), (401, "MISSING_TOKEN".to_owned()));
    assert_eq!(nobody.header("www-authenticate"), challenge(""));

    let api = Api::start().await;
    assert_eq!(principal(&run_statement(&api, &[], SQL).await), guest);
    for database in ["lonely", "nowhere", "\u{fe}"] {
        let response = run_statement(&api, &[("tidegate-database", database)], SQL).await;
        assert_eq!(
            response.error(),
            (401, "MISSING_TOKEN".to_owned()),
            "{database}"
        );
    }
}

#[tokio::test]
async fn two_headers_that_name_a_database_are_refused() {
    let api = Api::start().await;
    let twice = [
        ("tidegate-database", "demo"),
        ("tidegate-database", "lonely"),
    ];
    let refused = run_statement(&api, &twice, SQL).await;
    assert_eq!(refused.error(), (400, "INPUT_VALIDATION_ERROR".to_owned()));
    assert!(refused.text().contains("Tidegate-Database"));
    assert!(api.executor.calls().is_empty());
}

#[tokio::test]
async fn a_request_without_token_gets_a_hint_how_to_name_a_database() {
    let api = Api::with(|builder| builder.anonymous_database(None)).await;
    for response in [
        run_statement(&api, &[], SQL).await,
        run_statement(&api, &[("tidegate-database", "lonely")], SQL).await,
    ] {
        assert_eq!(response.error(), (401, "MISSING_TOKEN".to_owned()));
        assert!(
            response.text().contains("`Tidegate-Database`"),
            "{}",
            response.text()
        );
    }
}

#[tokio::test]
async fn the_database_in_the_path_makes_every_caller_anonymous() {
    let api = Api::start().await;
    let bearer = format!("Bearer {}", api.token("demo").await);
    for token in [&*bearer, "Bearer nonsense"] {
        let response = run_statement(
            &api,
            &[("authorization", token)],
            "/api/v4/sql/database/demo/",
        )
        .await;
        assert_eq!(principal(&response), "demo demo/guest strangers");
    }
    for database in ["lonely", "nowhere"] {
        let response = run_statement(&api, &[], &format!("/api/v4/sql/database/{database}")).await;
        assert_eq!(response.error(), (404, "NO_DEFAULT_USER_FOUND".to_owned()));
    }
}

#[tokio::test]
async fn an_invalid_token_never_falls_back_to_anonymous() {
    let api = Api::start().await;
    let token = api.token("alice").await;
    let forged = format!("Bearer {}x", &token[..token.len() - 1]);
    for value in [
        "Bearer",
        "Bearer ",
        "Bearer x",
        "Bearer a.b.c",
        "Basic YTpi",
        &forged,
    ] {
        let response = run_statement(&api, &[("authorization", value)], SQL).await;
        assert_eq!(
            response.error(),
            (401, "INVALID_TOKEN".to_owned()),
            "{value}"
        );
        assert_eq!(
            response.header("www-authenticate"),
            challenge("invalid_token")
        );
    }
    let good = format!("Bearer {token}");
    let twice = run_statement(
        &api,
        &[("authorization", &good), ("authorization", &good)],
        SQL,
    )
    .await;
    assert_eq!(twice.error(), (401, "INVALID_TOKEN".to_owned()));
    assert!(api.executor.calls().is_empty());
}

#[tokio::test]
async fn an_expired_token_is_not_accepted() {
    let api = Api::start().await;
    let bearer = format!("Bearer {}", api.token("alice").await);
    assert_eq!(
        run_statement(&api, &[("authorization", &bearer)], SQL)
            .await
            .status,
        200
    );
    api.clock.advance(std::time::Duration::from_secs(3_700));
    let response = run_statement(&api, &[("authorization", &bearer)], SQL).await;
    assert_eq!(response.error(), (401, "INVALID_TOKEN".to_owned()));
}

#[tokio::test]
async fn a_notice_makes_a_change_of_the_default_user_seen_at_once() {
    let api = Api::start().await;
    assert_eq!(run_statement(&api, &[], SQL).await.status, 200);
    let nobody = UserChange {
        default_user: Some(false),
        ..UserChange::default()
    };
    api.directory
        .change_user(&UserKey::new("demo", "guest"), nobody)
        .await
        .unwrap();
    api.app.forget_users("demo");
    assert_eq!(
        run_statement(&api, &[], SQL).await.error(),
        (401, "MISSING_TOKEN".to_owned())
    );
}

#[tokio::test]
async fn a_missing_privilege_asks_an_anonymous_caller_for_a_token() {
    let api = Api::start().await;
    let body = json!({"q": "select fail 0 42501"});
    let stranger = api.sql(&body).await;
    assert_eq!(stranger.error(), (401, "SQL_ERROR".to_owned()));
    assert_eq!(stranger.header("www-authenticate"), challenge(""));
    let bearer = format!("Bearer {}", api.token("alice").await);
    let alice = api.sql_with("authorization", &bearer, &body).await;
    assert_eq!(alice.error(), (403, "SQL_ERROR".to_owned()));
    assert_eq!(alice.json()["sqlstate"], Value::from("42501"));
}
