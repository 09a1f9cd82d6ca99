//! Tests `resource` (RFC 8707; docs/API.md, "Errors of the OAuth endpoints"): tokens are for this
//! service only, which is their audience.

use reqwest::Method;
use serde_json::{Value, json};

use crate::flows::{client, redemption};
use crate::openid::part;
use crate::pages::{Browser, authorization, encoded};
use crate::scopes::{GRAPHQL, send};
use crate::service::demo;

/// Sends a request, and returns the body of the response.
async fn post(path: &str, body: &Value) -> Value {
    let response = demo().rest_with(None, ("POST", path), body).await;
    response.body
}

/// An authorization code for a request with this resource; otherwise the error.
async fn code_for(resource: &str) -> Result<String, String> {
    let address = format!(
        "{}&resource={}",
        authorization("resourced"),
        encoded(resource)
    );
    let mut browser = Browser::new(demo());
    let page = browser.get(&address).await;
    if !page.parameter("error").is_empty() {
        return Err(page.parameter("error"));
    }
    Ok(browser.sign_in(&page, "alice").await.parameter("code"))
}

/// The bodies of token requests of all grants but the device grant, without `resource`.
async fn token_requests(secret: &str) -> Vec<Value> {
    let code = code_for(&demo().url).await.unwrap();
    let mut bodies = vec![
        redemption("resourced", &code),
        json!({"grant_type": "client_credentials"}),
        json!({"grant_type": "password", "username": "alice", "password": "alice1234",
            "database": "demo"}),
    ];
    for body in &mut bodies {
        body["client_id"] = json!("resourced");
        body["client_secret"] = json!(secret);
    }
    let response = post("/api/v4/oauth", &bodies[2]).await;
    bodies.push(
        json!({"grant_type": "refresh_token", "client_id": "resourced",
        "client_secret": secret, "refresh_token": response["refresh_token"]}),
    );
    bodies
}

#[tokio::test]
async fn a_resource_other_than_this_service_is_refused_by_every_grant() {
    let url = demo().url.as_str();
    let more = json!({"confirm": false, "service_user": "alice"});
    let made = client("resourced", more).await;
    let secret = made["secret"].as_str().unwrap();
    let device = |resource: &str| json!({"client_id": "resourced", "client_secret": secret, "resource": resource});
    for resource in [
        "https://elsewhere.example",
        &format!("{url}.example"),
        &format!("{url}/api/v4"),
        &format!("{url}//"),
        &format!("{url}/#x"),
        &format!("{url}?x"),
        "x",
        "/",
    ] {
        let error = code_for(resource).await.unwrap_err();
        assert_eq!(error, "invalid_target", "{resource}");
        let response = post("/api/v4/oauth/device", &device(resource)).await;
        assert_eq!(response["error"], "invalid_target", "{resource} {response}");
    }
    for mut body in token_requests(secret).await {
        body["resource"] = json!("https://elsewhere.example");
        let response = post("/api/v4/oauth", &body).await;
        assert_eq!(response["error"], "invalid_target", "{body} {response}");
        // The refusal has used up neither the code nor the refresh token.
        for resource in [url.to_owned(), format!("{url}/")] {
            body["resource"] = json!(resource);
            let response = post("/api/v4/oauth", &body).await;
            let token = response["access_token"].as_str();
            let token = token.unwrap_or_else(|| panic!("{body} {response}"));
            assert_eq!(part(token, 1)["aud"], url, "{body}");
            let read = json!({"query": "{__typename}"});
            assert_eq!(send(token, Method::POST, GRAPHQL, &read).await.status, 200);
            if body["grant_type"] == "authorization_code" {
                break;
            }
        }
    }

    let codes = post("/api/v4/oauth/device", &device(url)).await;
    let mut browser = Browser::new(demo());
    let page = browser.get("/device").await;
    let typed = codes["user_code"]
        .as_str()
        .unwrap_or_else(|| panic!("{codes}"));
    let page = browser.submit(&page, "code", &[("user_code", typed)]).await;
    let page = browser.sign_in(&page, "alice").await;
    browser
        .submit(&page, "decide", &[("decision", "allow")])
        .await;
    let mut body = json!({"grant_type": "device_code", "client_id": "resourced",
        "client_secret": secret, "device_code": codes["device_code"],
        "resource": "https://elsewhere.example"});
    let response = post("/api/v4/oauth", &body).await;
    assert_eq!(response["error"], "invalid_target", "{response}");
    body["resource"] = json!(url);
    let response = post("/api/v4/oauth", &body).await;
    let token = response["access_token"].as_str();
    let token = token.unwrap_or_else(|| panic!("{response}"));
    assert_eq!(part(token, 1)["aud"], url);
}
