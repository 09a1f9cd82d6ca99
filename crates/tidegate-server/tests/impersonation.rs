//! Tests of `POST /api/v4/users/{name}/token`, by which an owner acts as a user of its tenant.

use std::time::Duration;

use http::{Method, StatusCode};
use serde_json::json;

use crate::fixture::{Api, TestResponse, request};
use crate::ports::connected;

async fn token(api: &Api, caller: &str, name: &str) -> TestResponse {
    let bearer = format!("Bearer {}", api.token(caller).await);
    let path = format!("/api/v4/users/{name}/token");
    let asked = request(Method::POST, &path).header("authorization", bearer);
    api.call(asked.body(String::new()).unwrap()).await
}

#[tokio::test]
async fn the_owner_acts_as_a_user_for_a_quarter_of_an_hour() {
    let (api, _) = connected().await;
    let response = token(&api, "demo", "alice").await;
    assert_eq!(response.status, 200, "{}", response.text());
    let body = response.json();
    assert_eq!(
        (
            &body["token_type"],
            &body["expires_in"],
            &body["refresh_token"]
        ),
        (&json!("Bearer"), &json!(900), &json!(null))
    );
    assert_eq!(response.header("cache-control"), "no-store");
    let users = api.get_as("/api/v4/users", &body).await;
    assert_eq!(users.json()[0]["name"], "alice", "{}", users.text());
    api.clock.advance(Duration::from_mins(16));
    let users = api.get_as("/api/v4/users", &body).await;
    assert_eq!(users.error().1, "INVALID_TOKEN");
}

#[tokio::test]
async fn it_is_in_the_audit_log_and_among_the_sessions_which_can_be_ended() {
    let (api, _) = connected().await;
    let token = token(&api, "demo", "alice").await.json();
    let owner = json!({"access_token": api.token("demo").await});
    let log = api.get_as("/api/v4/audit", &owner).await.json();
    let mut events = log["events"].as_array().unwrap().iter();
    let event = events
        .find(|event| event["event"] == "impersonated")
        .unwrap();
    assert_eq!(
        (&event["actor"], &event["user"]),
        (&json!("demo"), &json!("alice"))
    );
    let session = event["session"].as_str().unwrap();
    let sessions = api
        .get_as("/api/v4/sessions?user=alice", &owner)
        .await
        .json();
    assert_eq!(sessions[0]["id"], session);
    assert_eq!(sessions[0]["grant"], "impersonation");
    let bearer = format!("Bearer {}", owner["access_token"].as_str().unwrap());
    let path = format!("/api/v4/sessions/{session}");
    let ended = request(Method::DELETE, &path).header("authorization", bearer);
    let ended = api.call(ended.body(String::new()).unwrap()).await;
    assert_eq!(ended.status, StatusCode::NO_CONTENT, "{}", ended.text());
    let users = api.get_as("/api/v4/users", &token).await;
    assert_eq!(users.error().1, "INVALID_TOKEN");
}

#[tokio::test]
async fn only_the_owner_may_act_as_a_user() {
    let (api, _) = connected().await;
    for (caller, name, status, code) in [
        ("alice", "guest", 403, "INSUFFICIENT_PRIVILEGES"),
        ("alice", "alice", 403, "INSUFFICIENT_PRIVILEGES"),
        ("demo", "demo", 403, "INSUFFICIENT_PRIVILEGES"),
        ("demo", "nobody", 404, "NOT_FOUND"),
        // The user belongs to another tenant.
        ("demo", "lonely", 404, "NOT_FOUND"),
    ] {
        let response = token(&api, caller, name).await;
        assert_eq!(
            response.error(),
            (status, code.to_owned()),
            "{caller} as {name}"
        );
    }
    // A token with which the owner acts as a user has none of the owner's privileges.
    let acting = token(&api, "demo", "alice").await.json();
    let bearer = format!("Bearer {}", acting["access_token"].as_str().unwrap());
    let again = request(Method::POST, "/api/v4/users/guest/token").header("authorization", bearer);
    let again = api.call(again.body(String::new()).unwrap()).await;
    assert_eq!(again.error().0, 403);
}

#[tokio::test]
async fn a_setting_of_the_tenant_switches_it_off() {
    let (api, _) = connected().await;
    let bearer = format!("Bearer {}", api.token("demo").await);
    let change = request(Method::PATCH, "/api/v4/tenant")
        .header("authorization", &bearer)
        .header("content-type", "application/json");
    let changed = api.call(
        change
            .body(r#"{"impersonation":false}"#.to_owned())
            .unwrap(),
    );
    assert_eq!(changed.await.status, 303);
    let owner = json!({"access_token": api.token("demo").await});
    let shown = api.get_as("/api/v4/tenant", &owner).await.json();
    assert_eq!(shown["impersonation"], false);
    let response = token(&api, "demo", "alice").await;
    assert_eq!(response.error().0, 403);
    assert!(response.text().contains("`impersonation`"));
}
