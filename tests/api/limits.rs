//! Tests rate limits on secrets (API.md, "Errors of the OAuth endpoints"), refused requests of
//! clients, and transport security.

use reqwest::{Client, StatusCode};
use serde_json::{Value, json};

use crate::node::{Node, operator};
use crate::service::{TIMEOUT, demo};

/// Starts a node that trusts the test as a proxy, so that requests can come from any address.
async fn behind_a_proxy(operator: &crate::operator::Operator) -> Node {
    let client = Client::builder().timeout(TIMEOUT).build().unwrap();
    let flags = ["--trusted-proxies", "127.0.0.1"];
    Node::start_with(operator, &flags, ("http", client)).await
}

/// Requests a token from an address; returns the status, `error` and `Retry-After`.
async fn ask(node: &Node, address: &str, body: &Value) -> (StatusCode, String, Option<u64>) {
    let request = node.client.post(format!("{}/api/v4/oauth", node.url));
    let request = request
        .header("x-forwarded-for", address)
        .header("x-forwarded-proto", "https");
    let response = request.json(body).send().await.unwrap();
    let status = response.status();
    let after = response.headers().get("retry-after");
    let after = after.map(|value| value.to_str().unwrap().parse().unwrap());
    let text = response.text().await.unwrap();
    // An existing client splits the text at a colon, whatever the status is.
    assert!(!text.contains(": "), "{text}");
    let body: Value = serde_json::from_str(&text).unwrap();
    let error = body["error"].as_str().unwrap_or_default();
    (status, error.to_owned(), after)
}

fn password(username: &str, password: &str) -> Value {
    json!({
        "grant_type": "password", "username": username, "password": password,
        "database": "shop", "client_id": "app",
    })
}

#[tokio::test]
async fn an_address_has_thirty_wrong_passwords_a_minute_whatever_the_account() {
    let operator = operator().await;
    let node = behind_a_proxy(&operator).await;
    for n in 0..30 {
        let wrong = password(&format!("user-{n}"), "wrong-password");
        let refused = ask(&node, "203.0.113.7", &wrong).await;
        assert_eq!(
            (refused.0, &*refused.1),
            (StatusCode::BAD_REQUEST, "invalid_grant")
        );
    }
    // A request from this address must wait even if it has the right password of another account.
    let right = password("shop", "owner-password");
    let (status, error, after) = ask(&node, "203.0.113.7", &right).await;
    assert_eq!(
        (status, &*error),
        (StatusCode::TOO_MANY_REQUESTS, "temporarily_unavailable")
    );
    let after = after.unwrap();
    assert!((1..=60).contains(&after), "{after}");
    // Other addresses need not wait. Only the last address of the header counts, so an invented one
    // before it does not help.
    let address = "203.0.113.7, 203.0.113.8";
    assert_eq!(ask(&node, address, &right).await.0, StatusCode::OK);
    let address = "203.0.113.8, 203.0.113.7";
    let (status, ..) = ask(&node, address, &right).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    node.stop();
}

#[tokio::test]
async fn a_user_name_has_ten_wrong_passwords_whatever_the_address() {
    let operator = operator().await;
    let node = behind_a_proxy(&operator).await;
    let guess = password("guessed", "wrong-password");
    for n in 0..10 {
        let (status, error, _) = ask(&node, &format!("203.0.113.{n}"), &guess).await;
        assert_eq!(
            (status, &*error),
            (StatusCode::BAD_REQUEST, "invalid_grant")
        );
    }
    let (status, error, after) = ask(&node, "203.0.113.10", &guess).await;
    assert_eq!(
        (status, &*error),
        (StatusCode::TOO_MANY_REQUESTS, "temporarily_unavailable")
    );
    assert!(
        after.is_some_and(|after| (1..=30).contains(&after)),
        "{after:?}"
    );
    node.stop();
}

#[tokio::test]
async fn a_right_client_secret_is_never_refused_and_wrong_ones_are_twenty_a_minute_an_address() {
    let operator = operator().await;
    let uri = ["--redirect-uri", "http://127.0.0.1:5000/callback"];
    let client = ["client", "create", "shop", "Server", "--id", "server"];
    let printed = operator.succeeds(&[&client[..], &uri].concat(), "");
    let mut secret = printed
        .lines()
        .filter_map(|line| line.strip_prefix("client_secret"));
    let secret = secret.next().unwrap().trim();
    let node = behind_a_proxy(&operator).await;
    let with = |secret: &str| {
        let mut body = password("shop", "owner-password");
        body["client_id"] = json!("server");
        body["client_secret"] = json!(secret);
        body
    };
    let (status, error, _) = ask(&node, "198.51.100.99", &with(secret)).await;
    assert_eq!((status, &*error), (StatusCode::OK, ""), "{printed}");
    let attackers = ["198.51.100.1", "198.51.100.2", "198.51.100.3"];
    for _ in 0..20 {
        for address in attackers {
            let refused = ask(&node, address, &with("wrong")).await;
            assert_eq!(
                (refused.0, &*refused.1),
                (StatusCode::UNAUTHORIZED, "invalid_client")
            );
        }
    }
    for address in attackers {
        let (status, error, after) = ask(&node, address, &with("wrong")).await;
        assert_eq!(
            (status, &*error),
            (StatusCode::TOO_MANY_REQUESTS, "temporarily_unavailable")
        );
        assert!(
            after.is_some_and(|after| (1..=60).contains(&after)),
            "{after:?}"
        );
    }
    for address in ["198.51.100.99", attackers[0]] {
        let (status, error, _) = ask(&node, address, &with(secret)).await;
        assert_eq!((status, &*error), (StatusCode::OK, ""), "{address}");
    }
    node.stop();
}

#[tokio::test]
async fn a_grant_that_is_not_enabled_is_refused_to_the_client() {
    let grants = [
        ("password", "/api/v4/oauth"),
        ("refresh_token", "/api/v4/oauth"),
        ("authorization_code", "/api/v4/oauth"),
        ("device_code", "/api/v4/oauth"),
        (
            "urn:ietf:params:oauth:grant-type:device_code",
            "/api/v4/oauth",
        ),
        ("device_code", "/api/v4/oauth/device"),
        ("guest", "/api/v4/oauth/guest"),
    ];
    let demo = demo();
    for (grant, path) in grants {
        let kind = grant.rsplit(':').next().unwrap();
        let others: Vec<_> = [
            "password",
            "refresh_token",
            "authorization_code",
            "device_code",
            "guest",
        ]
        .into_iter()
        .filter(|other| *other != kind)
        .collect();
        let client = json!({
            "name": "Few grants", "public": true, "grants": others,
            "redirect_uri": ["https://app.example/callback"],
        });
        let made = demo
            .rest(Some("demo"), ("POST", "/api/v4/clients"), &client)
            .await;
        assert_eq!(made.status, 201, "{made:?}");
        let body = json!({
            "grant_type": grant, "client_id": made.body["id"], "database": "demo",
            "username": "alice", "password": "alice1234", "refresh_token": "x", "code": "x",
            "redirect_uri": "https://app.example/callback", "device_code": "x",
            "code_verifier": "x".repeat(43),
        });
        let refused = demo.rest_with(None, ("POST", path), &body).await;
        assert_eq!(
            (refused.status, refused.body["error"].as_str()),
            (400, Some("unauthorized_client")),
            "{grant} at {path}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn an_unknown_grant_is_unsupported() {
    for grant in ["implicit", "token", "PASSWORD", "", "urn:x"] {
        let body = json!({"grant_type": grant, "client_id": "demo-app"});
        let refused = demo()
            .rest_with(None, ("POST", "/api/v4/oauth"), &body)
            .await;
        let expected = if grant.is_empty() {
            "invalid_request"
        } else {
            "unsupported_grant_type"
        };
        assert_eq!(
            (refused.status, refused.body["error"].as_str()),
            (400, Some(expected)),
            "{grant:?}: {refused:?}"
        );
    }
}

#[tokio::test]
async fn credentials_travel_in_the_clear_only_where_the_settings_say_so() {
    let operator = operator().await;
    let proxy = ["--trusted-proxies", "127.0.0.1"];
    let open = ["--trusted-proxies", "127.0.0.1", "--insecure-http"];
    for (flags, expected) in [
        (&proxy[..], StatusCode::BAD_REQUEST),
        (&open[..], StatusCode::OK),
    ] {
        let client = Client::builder().timeout(TIMEOUT).build().unwrap();
        let node = Node::start_with(&operator, flags, ("http", client)).await;
        let request = node.client.post(format!("{}/api/v4/oauth", node.url));
        // A client on another machine used plain HTTP to the proxy.
        let request = request.header("x-forwarded-for", "203.0.113.7");
        let body = password("shop", "owner-password");
        let response = request.json(&body).send().await.unwrap();
        assert_eq!(response.status(), expected, "{flags:?}");
        let reported: Value = response.json().await.unwrap();
        let refused = (expected == StatusCode::BAD_REQUEST).then_some("invalid_request");
        assert_eq!(reported["error"].as_str(), refused, "{reported}");
        // The public documents need no credentials.
        let keys = node
            .client
            .get(format!("{}/.well-known/jwks.json", node.url));
        let keys = keys.header("x-forwarded-for", "203.0.113.7").send().await;
        assert_eq!(keys.unwrap().status(), StatusCode::OK, "{flags:?}");
        node.stop();
    }
}
