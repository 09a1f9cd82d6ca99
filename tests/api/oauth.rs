//! Tests the password grant, errors of the OAuth endpoints and their metadata (API.md, "Tokens").

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::service::demo;

pub(crate) async fn post(path: &str, body: &Value) -> Response {
    demo()
        .request(Method::POST, path)
        .json(body)
        .send()
        .await
        .unwrap()
}

pub(crate) fn password(username: &str, password: &str) -> Value {
    json!({
        "grant_type": "password", "username": username, "password": password,
        "database": "demo", "client_id": "demo-app",
    })
}

pub(crate) async fn refused(response: Response) -> (u16, String) {
    let status = response.status().as_u16();
    assert_eq!(response.headers()["cache-control"], "no-store");
    let text = response.text().await.unwrap();
    assert!(!text.contains(": "), "a client in use splits on it: {text}");
    let body: Value = serde_json::from_str(&text).unwrap();
    assert!(body["error_description"].is_string(), "{text}");
    (status, body["error"].as_str().unwrap().to_owned())
}

pub(crate) async fn granted(response: Response) -> Value {
    let status = response.status();
    assert_eq!(response.headers()["cache-control"], "no-store");
    assert_eq!(response.headers()["pragma"], "no-cache");
    let text = response.text().await.unwrap();
    assert!(status.is_success(), "{status} {text}");
    serde_json::from_str(&text).unwrap()
}

fn part(token: &str, n: usize) -> Value {
    let part = token.split('.').nth(n).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

#[tokio::test]
async fn the_password_grant_gives_tokens() {
    let body = granted(post("/api/v4/oauth", &password("alice", "alice1234")).await).await;
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
    assert_eq!(
        (&body["token_type"], &body["expires_in"], &body["scope"]),
        (&json!("Bearer"), &json!(3600), &json!(""))
    );
    let access = body["access_token"].as_str().unwrap();
    let header = part(access, 0);
    assert_eq!(
        (&header["alg"], &header["typ"]),
        (&json!("ES256"), &json!("at+jwt"))
    );
    let claims = part(access, 1);
    for name in [
        "iss",
        "sub",
        "aud",
        "client_id",
        "iat",
        "exp",
        "jti",
        "sid",
        "scope",
        "database",
        "uid",
        "superUser",
        "properties",
        "email",
        "user_id",
        "response_type",
    ] {
        assert!(claims.get(name).is_some(), "{name}: {claims}");
    }
    assert_eq!(claims["iss"], demo().url);
    assert_eq!(claims["database"], "demo");
    assert_eq!(claims["superUser"], false);
    assert_eq!(claims["response_type"], "token");
    let refresh = part(body["refresh_token"].as_str().unwrap(), 1);
    assert_eq!(refresh["response_type"], "refresh");
    assert!(refresh["exp"].as_u64().unwrap() > claims["exp"].as_u64().unwrap());
}

#[tokio::test]
async fn an_owner_may_leave_the_database_out() {
    let body = json!({"grant_type": "password", "username": "demo", "password": "demo1234", "client_id": "demo-app"});
    let body = granted(post("/api/v4/oauth", &body).await).await;
    assert_eq!(
        part(body["access_token"].as_str().unwrap(), 1)["superUser"],
        true
    );
}

#[tokio::test]
async fn every_case_of_the_error_table_has_its_response() {
    let wrong = |name: &str, value: Value| {
        let mut body = password("alice", "alice1234");
        body[name] = value;
        body
    };
    let mut missing = password("alice", "alice1234");
    missing.as_object_mut().unwrap().remove("username");
    for (body, status, error) in [
        (missing, 400, "invalid_request"),
        (json!([1]), 400, "invalid_request"),
        (wrong("username", json!(5)), 400, "invalid_request"),
        (
            wrong("grant_type", json!("implicit")),
            400,
            "unsupported_grant_type",
        ),
        (wrong("client_id", json!("nobody")), 401, "invalid_client"),
        (
            wrong("client_id", json!("demo-server")),
            401,
            "invalid_client",
        ),
        (wrong("username", json!("nobody")), 400, "invalid_grant"),
        (
            wrong("password", json!("wrong-password")),
            400,
            "invalid_grant",
        ),
        (
            wrong("database", json!("nowhere")),
            400,
            "unauthorized_client",
        ),
        (
            json!({"grant_type": "refresh_token", "refresh_token": "x", "client_id": "demo-app"}),
            400,
            "invalid_grant",
        ),
    ] {
        let response = post("/api/v4/oauth", &body).await;
        assert!(
            !response.headers().contains_key("www-authenticate"),
            "{body}"
        );
        assert_eq!(
            refused(response).await,
            (status, error.to_owned()),
            "{body}"
        );
    }
    let mut secret = wrong("client_id", json!("demo-server"));
    secret["client_secret"] = json!("wrong");
    assert_eq!(
        refused(post("/api/v4/oauth", &secret).await).await,
        (401, "invalid_client".into())
    );
    secret["client_secret"] = json!("demo-server-secret");
    granted(post("/api/v4/oauth", &secret).await).await;
    for body in ["{", ""] {
        let response = demo()
            .request(Method::POST, "/api/v4/oauth")
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await
            .unwrap();
        assert_eq!(refused(response).await, (400, "invalid_request".into()));
    }
    let twice =
        "grant_type=password&username=alice&username=alice&password=alice1234&client_id=demo-app";
    let response = demo()
        .request(Method::POST, "/api/v4/oauth")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(twice)
        .send()
        .await
        .unwrap();
    assert_eq!(refused(response).await, (400, "invalid_request".into()));
}

#[tokio::test]
async fn no_endpoint_takes_any_parameter_twice() {
    for path in [
        "/api/v4/oauth",
        "/api/v4/oauth/guest",
        "/api/v4/oauth/device",
        "/api/v4/oauth/revoke",
        "/api/v4/oauth/introspect",
    ] {
        let good = "grant_type=password&username=alice&password=alice1234&database=demo\
                    &token=x&client_id=demo-server&client_secret=demo-server-secret";
        let ask = |kind, body: String| {
            let request = demo().request(Method::POST, path);
            request.header("content-type", kind).body(body).send()
        };
        let form = "application/x-www-form-urlencoded";
        let once = ask(form, format!("{good}&audience=a")).await.unwrap();
        assert!(once.status().is_success(), "{path} {}", once.status());
        let twice = ask(form, format!("{good}&audience=a&audience=a")).await;
        let named = twice.unwrap();
        assert_eq!(named.status(), 400, "{path}");
        let body: Value = named.json().await.unwrap();
        assert_eq!(
            (&body["error"], &body["error_description"]),
            (
                &json!("invalid_request"),
                &json!("the parameter audience is given more than once")
            ),
            "{path}"
        );
        let members = good
            .split('&')
            .map(|pair| format!("\"{}\"", pair.replace('=', "\":\"")));
        let members = members.collect::<Vec<_>>().join(",");
        let twice = ask("application/json", format!("{{{members},\"x\":1,\"x\":1}}")).await;
        assert_eq!(
            refused(twice.unwrap()).await,
            (400, "invalid_request".into())
        );
    }
}

#[tokio::test]
async fn forms_and_basic_credentials_are_accepted() {
    let form = "grant_type=password&username=alice&password=alice1234&database=demo";
    for (user, secret) in [
        ("demo-server", "demo-server-secret"),
        ("demo%2Dserver", "demo%2Dserver%2Dsecret"),
    ] {
        let basic = STANDARD.encode(format!("{user}:{secret}"));
        let response = demo()
            .request(Method::POST, "/api/v4/oauth")
            .header("authorization", format!("Basic {basic}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form)
            .send()
            .await
            .unwrap();
        granted(response).await;
    }
    let basic = STANDARD.encode("demo-server:wrong");
    let response = demo()
        .request(Method::POST, "/api/v4/oauth")
        .header("authorization", format!("Basic {basic}"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await
        .unwrap();
    assert!(
        response.headers()["www-authenticate"]
            .to_str()
            .unwrap()
            .starts_with("Basic")
    );
    assert_eq!(refused(response).await, (401, "invalid_client".into()));
}

#[tokio::test]
async fn metadata_and_keys_are_published_and_true() {
    let metadata: Value = demo()
        .request(Method::GET, "/.well-known/oauth-authorization-server")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(metadata["issuer"], demo().url);
    for (name, path) in [
        ("token_endpoint", "/api/v4/oauth"),
        ("revocation_endpoint", "/api/v4/oauth/revoke"),
        ("introspection_endpoint", "/api/v4/oauth/introspect"),
        ("jwks_uri", "/.well-known/jwks.json"),
    ] {
        assert_eq!(metadata[name], format!("{}{path}", demo().url));
    }
    let keys: Value = demo()
        .request(Method::GET, "/.well-known/jwks.json")
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let token = demo().token("alice").await;
    let kid = part(&token, 0)["kid"].clone();
    let key = keys["keys"]
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["kid"] == kid)
        .unwrap();
    assert_eq!(
        (&key["kty"], &key["crv"], &key["alg"]),
        (&json!("EC"), &json!("P-256"), &json!("ES256"))
    );
    assert!(key.get("d").is_none());
}
