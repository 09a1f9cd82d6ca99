//! Tests of the OAuth endpoints over HTTP.

use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use serde_json::{Value, json};
use tidegate_server::Peer;

use crate::fixture::{Api, TestResponse, password, request};

const FORM: &str = "application/x-www-form-urlencoded";

async fn send(api: &Api, path: &str, headers: &[(&str, &str)], body: &str) -> TestResponse {
    let mut request = request(Method::POST, path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = api.call(request.body(body.to_owned()).unwrap()).await;
    assert_eq!(response.header("cache-control"), "no-store");
    assert_eq!(response.header("pragma"), "no-cache");
    assert_eq!(
        response.header("content-type"),
        "application/json; charset=utf-8"
    );
    assert!(
        !response.text().contains(": "),
        "a client in use splits on it: {}",
        response.text()
    );
    response
}

async fn token(api: &Api, headers: &[(&str, &str)], body: &str) -> TestResponse {
    send(api, "/api/v4/oauth", headers, body).await
}

fn error(response: &TestResponse) -> (u16, String) {
    let body = response.json();
    assert!(body["error_description"].is_string(), "{body}");
    (
        response.status.as_u16(),
        body["error"].as_str().unwrap().to_owned(),
    )
}

#[tokio::test]
async fn json_and_forms_give_tokens() {
    let api = Api::start().await;
    let form = "grant_type=password&username=alice&password=alice1234&database=demo&client_id=app";
    for (kind, body) in [
        ("application/json", password("alice").to_string()),
        (FORM, form.to_owned()),
        (
            "application/x-www-form-urlencoded; charset=utf-8",
            form.to_owned(),
        ),
    ] {
        let response = token(&api, &[("content-type", kind)], &body).await;
        assert_eq!(response.status, 200, "{}", response.text());
        let body = response.json();
        let keys: Vec<_> = body
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            keys,
            [
                "access_token",
                "token_type",
                "expires_in",
                "refresh_token",
                "scope"
            ]
        );
        assert_eq!(body["token_type"], "Bearer");
    }
}

#[tokio::test]
async fn a_refresh_token_gives_the_next() {
    let api = Api::start().await;
    let first = token(&api, &[], &password("alice").to_string())
        .await
        .json();
    let body = json!({"grant_type": "refresh_token", "refresh_token": first["refresh_token"], "client_id": "app"});
    let second = token(&api, &[], &body.to_string()).await;
    assert_eq!(second.status, 200);
    assert_ne!(second.json()["refresh_token"], first["refresh_token"]);
}

#[tokio::test]
async fn client_credentials_come_by_basic_raw_and_encoded() {
    let api = Api::start().await;
    let form = "grant_type=password&username=alice&password=alice1234&database=demo";
    for credentials in ["server:a:b c/secret", "server:a%3Ab+c%2Fsecret"] {
        let basic = format!("Basic {}", STANDARD.encode(credentials));
        let response = token(
            &api,
            &[("content-type", FORM), ("authorization", &basic)],
            form,
        )
        .await;
        assert_eq!(response.status, 200, "{credentials}: {}", response.text());
    }
    let wrong = format!("basic {}", STANDARD.encode("server:wrong"));
    let response = token(
        &api,
        &[("content-type", FORM), ("authorization", &wrong)],
        form,
    )
    .await;
    assert_eq!(error(&response), (401, "invalid_client".to_owned()));
    assert!(response.header("www-authenticate").starts_with("Basic "));
    let in_body = format!("{form}&client_id=server&client_secret=wrong");
    let response = token(&api, &[("content-type", FORM)], &in_body).await;
    assert_eq!(error(&response), (401, "invalid_client".to_owned()));
    assert!(response.header("www-authenticate").is_empty());
}

#[tokio::test]
async fn what_is_no_request_is_an_invalid_request() {
    let api = Api::start().await;
    let good = password("alice").to_string();
    for (kind, body) in [
        ("application/json", "{"),
        ("application/json", ""),
        ("application/json", "[1]"),
        ("text/plain", good.as_str()),
        (FORM, "grant_type=password&grant_type=password"),
    ] {
        let response = token(&api, &[("content-type", kind)], body).await;
        assert_eq!(
            error(&response),
            (400, "invalid_request".to_owned()),
            "{kind} {body}"
        );
    }
    let in_address = send(&api, "/api/v4/oauth?client_secret=x", &[], &good).await;
    assert_eq!(error(&in_address), (400, "invalid_request".to_owned()));
    let large = json!({"grant_type": "password", "pad": "x".repeat(70_000)}).to_string();
    assert_eq!(
        error(&token(&api, &[], &large).await),
        (413, "invalid_request".to_owned())
    );
}

#[tokio::test]
async fn wrong_passwords_are_slowed_down() {
    let api = Api::start().await;
    let mut wrong = password("alice");
    wrong["password"] = "not-the-one".into();
    for _ in 0..10 {
        let response = token(&api, &[], &wrong.to_string()).await;
        assert_eq!(error(&response), (400, "invalid_grant".to_owned()));
    }
    let response = token(&api, &[], &wrong.to_string()).await;
    assert_eq!(response.status, 429, "{}", response.text());
    assert!(response.header("retry-after").parse::<u64>().unwrap() > 0);
}

#[tokio::test]
async fn a_guest_is_created_and_its_errors_have_both_shapes() {
    let api = Api::start().await;
    let guest = |body: Value| async move { body.to_string() };
    let body = guest(json!({"database": "demo", "client_id": "app"})).await;
    let response = send(&api, "/api/v4/oauth/guest", &[], &body).await;
    assert_eq!(
        (response.status.as_u16(), &response.json()["token_type"]),
        (201, &json!("bearer"))
    );
    for (body, status, name) in [
        (
            json!({"database": "nowhere", "client_id": "app"}),
            404,
            "NO_DEFAULT_USER_FOUND",
        ),
        (
            json!({"database": "demo", "client_id": "nobody"}),
            401,
            "invalid_grant",
        ),
        (
            json!({"database": "demo", "client_id": "server", "client_secret": "x"}),
            401,
            "invalid_client",
        ),
        (json!({"client_id": "app"}), 400, "invalid_request"),
    ] {
        let response = send(&api, "/api/v4/oauth/guest", &[], &body.to_string()).await;
        assert_eq!(error(&response), (status, name.to_owned()), "{body}");
        let shown = response.json();
        let keys: Vec<_> = shown
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .collect();
        assert_eq!(
            keys,
            [
                "error",
                "error_description",
                "success",
                "message",
                "code",
                "errorCode"
            ]
        );
        assert_eq!(shown["errorCode"], name);
        assert_eq!(
            (&shown["success"], &shown["code"]),
            (&json!(false), &json!(status))
        );
    }
}

#[tokio::test]
async fn a_revoked_session_is_over_at_once() {
    let api = Api::start().await;
    let tokens = token(&api, &[], &password("alice").to_string())
        .await
        .json();
    let about = json!({"token": tokens["access_token"], "client_id": "server", "client_secret": "a:b c/secret"}).to_string();
    let active = send(&api, "/api/v4/oauth/introspect", &[], &about).await;
    assert_eq!(
        (active.status.as_u16(), &active.json()["active"]),
        (200, &json!(true))
    );
    let revoke = json!({"token": tokens["refresh_token"], "client_id": "app"}).to_string();
    assert_eq!(
        send(&api, "/api/v4/oauth/revoke", &[], &revoke)
            .await
            .text(),
        "{}"
    );
    let inactive = send(&api, "/api/v4/oauth/introspect", &[], &about).await;
    assert_eq!(inactive.text(), r#"{"active":false}"#);
    let bearer = format!("Bearer {}", tokens["access_token"].as_str().unwrap());
    let refused = api
        .sql_with("authorization", &bearer, &json!({"q": "select who"}))
        .await;
    assert_eq!(refused.error(), (401, "INVALID_TOKEN".to_owned()));
}

fn remote_peer(address: [u8; 4]) -> Peer {
    Peer {
        address: IpAddr::from(address),
        encrypted: false,
        loopback: false,
    }
}

#[tokio::test]
async fn credentials_are_not_taken_over_a_network_in_the_clear() {
    let mut api =
        Api::with(|builder| builder.trusted_proxies(vec!["10.0.0.0/8".parse().unwrap()])).await;
    let body = password("alice").to_string();
    let https = [("x-forwarded-proto", "https")];
    api.peer = remote_peer([203, 0, 113, 9]);
    for headers in [&[][..], &https] {
        assert_eq!(
            error(&token(&api, headers, &body).await),
            (400, "invalid_request".to_owned())
        );
    }
    // Requests without credentials are still accepted.
    assert_eq!(api.sql(&json!({"q": "select who"})).await.status, 200);
    api.peer.encrypted = true;
    assert_eq!(token(&api, &[], &body).await.status, 200);
    api.peer = remote_peer([10, 1, 2, 3]);
    assert_eq!(token(&api, &https, &body).await.status, 200);
    assert_eq!(
        token(&api, &[("x-forwarded-proto", "http")], &body)
            .await
            .status,
        400
    );
    assert_eq!(token(&api, &[], &body).await.status, 400);

    let mut api = Api::with(|builder| builder.insecure_http(true)).await;
    api.peer = remote_peer([203, 0, 113, 9]);
    assert_eq!(token(&api, &[], &body).await.status, 200);
}

#[tokio::test]
async fn attempts_are_counted_by_the_forwarded_address() {
    let mut api =
        Api::with(|builder| builder.trusted_proxies(vec!["10.0.0.0/8".parse().unwrap()])).await;
    api.peer = remote_peer([10, 1, 2, 3]);
    let attempt = |api: &Api, n: usize, from: &'static str| {
        let mut body = password("alice");
        body["username"] = format!("nobody{n}").into();
        let headers = [("x-forwarded-proto", "https"), ("x-forwarded-for", from)];
        let body = body.to_string();
        let api = Api {
            app: api.app.clone(),
            executor: api.executor.clone(),
            directory: api.directory.clone(),
            clients: api.clients.clone(),
            clock: api.clock.clone(),
            issuer: api.issuer.clone(),
            peer: api.peer,
        };
        async move { token(&api, &headers, &body).await.status.as_u16() }
    };
    let mut last = 0;
    for n in 0..31 {
        last = attempt(&api, n, "198.51.100.7").await;
    }
    assert_eq!(last, 429, "one address has tried thirty times");
    assert_eq!(attempt(&api, 32, "198.51.100.8").await, 400);
    assert_eq!(attempt(&api, 33, "198.51.100.7, 198.51.100.8").await, 400);
}
