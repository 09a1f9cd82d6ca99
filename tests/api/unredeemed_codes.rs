//! Tests codes and devices that a person has allowed on a page and that are not redeemed yet
//! (API.md, "Signing in with a browser").

use reqwest::Method;
use serde_json::{Value, json};

use crate::pages::{Browser, CALLBACK, VERIFIER, authorization};
use crate::service::demo;

const CLIENT: &str = "allowed-app";
const USER: &str = "allowing";

/// Sends a request as the owner. Returns the status.
async fn owner(method: Method, path: &str, body: &Value) -> u16 {
    let token = demo().token("demo").await;
    let request = demo().request(method, path).bearer_auth(token);
    let request = match body {
        Value::Null => request,
        _ => request.json(body),
    };
    request.send().await.unwrap().status().as_u16()
}

async fn new_user() {
    let user = json!({"name": USER, "password": format!("{USER}1234")});
    assert_eq!(owner(Method::POST, "/api/v4/users", &user).await, 201);
}

async fn new_client() {
    let client = json!({
        "id": CLIENT, "name": "Allowed", "redirect_uri": [CALLBACK], "public": true,
        "confirm": false,
    });
    assert_eq!(owner(Method::POST, "/api/v4/clients", &client).await, 201);
}

async fn oauth(path: &str, body: &Value) -> Value {
    let request = demo().request(Method::POST, path).json(body);
    request.send().await.unwrap().json().await.unwrap()
}

/// Gets a code with a browser and allows a device. Returns the requests that redeem them.
async fn allow(browser: &mut Browser<'_>) -> [Value; 2] {
    let page = browser.get(&authorization(CLIENT)).await;
    let response = match page.status {
        200 => browser.sign_in(&page, USER).await,
        _ => page,
    };
    let code = response.parameter("code");
    assert_eq!(code.len(), 43, "{} {}", response.location, response.text);
    let device = oauth("/api/v4/oauth/device", &json!({"client_id": CLIENT})).await;
    let user_code = device["user_code"].as_str().unwrap();
    let address = format!("/device?step=confirm&user_code={user_code}");
    let page = browser.get(&address).await;
    let fields = [("decision", "allow")];
    let done = browser.submit(&page, "decide", &fields).await;
    assert_eq!(done.status, 200, "{}", done.text);
    [
        json!({
            "grant_type": "authorization_code", "client_id": CLIENT, "code": code,
            "redirect_uri": CALLBACK, "code_verifier": VERIFIER,
        }),
        json!({
            "grant_type": "device_code", "client_id": CLIENT,
            "device_code": device["device_code"],
        }),
    ]
}

async fn assert_invalid(redemptions: &[Value], event: &str) {
    for body in redemptions {
        let response = oauth("/api/v4/oauth", body).await;
        assert_eq!(response["error"], "invalid_grant", "{event}: {body}");
    }
}

#[tokio::test]
async fn it_ends_with_the_password_the_user_the_browser_and_the_client() {
    new_client().await;
    new_user().await;
    let path = format!("/api/v4/users/{USER}");
    let mut browser = Browser::new(demo());

    let given = allow(&mut browser).await;
    let password = json!({"password": format!("{USER}1234")});
    assert_eq!(owner(Method::PATCH, &path, &password).await, 303);
    assert_invalid(&given, "a password, though the same").await;

    let given = allow(&mut browser).await;
    assert_eq!(owner(Method::DELETE, &path, &Value::Null).await, 204);
    new_user().await;
    assert_invalid(&given, "another user of this name").await;

    let given = allow(&mut browser).await;
    let page = browser.get("/signout").await;
    browser.submit(&page, "sign_out", &[]).await;
    assert_invalid(&given, "signed out").await;

    let given = allow(&mut browser).await;
    let client = format!("/api/v4/clients/{CLIENT}");
    assert_eq!(owner(Method::DELETE, &client, &Value::Null).await, 204);
    new_client().await;
    assert_invalid(&given, "another client of this id").await;

    for body in allow(&mut browser).await {
        let response = oauth("/api/v4/oauth", &body).await;
        assert!(response["access_token"].is_string(), "{response}");
    }
}
