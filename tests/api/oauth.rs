//! Tests the password, refresh and guest grants (API.md, "Tokens").

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::service::demo;

async fn post(path: &str, body: &Value) -> Response {
    demo()
        .request(Method::POST, path)
        .json(body)
        .send()
        .await
        .unwrap()
}

fn password(username: &str, password: &str) -> Value {
    json!({
        "grant_type": "password", "username": username, "password": password,
        "database": "demo", "client_id": "demo-app",
    })
}

async fn refused(answer: Response) -> (u16, String) {
    let status = answer.status().as_u16();
    assert_eq!(answer.headers()["cache-control"], "no-store");
    let text = answer.text().await.unwrap();
    assert!(!text.contains(": "), "a client in use splits on it: {text}");
    let body: Value = serde_json::from_str(&text).unwrap();
    assert!(body["error_description"].is_string(), "{text}");
    (status, body["error"].as_str().unwrap().to_owned())
}

async fn granted(answer: Response) -> Value {
    let status = answer.status();
    assert_eq!(answer.headers()["cache-control"], "no-store");
    assert_eq!(answer.headers()["pragma"], "no-cache");
    let text = answer.text().await.unwrap();
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
async fn every_case_of_the_error_table_has_its_answer() {
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
        let answer = post("/api/v4/oauth", &body).await;
        assert!(!answer.headers().contains_key("www-authenticate"), "{body}");
        assert_eq!(refused(answer).await, (status, error.to_owned()), "{body}");
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
        let answer = demo()
            .request(Method::POST, "/api/v4/oauth")
            .header("content-type", "application/json")
            .body(body)
            .send()
            .await
            .unwrap();
        assert_eq!(refused(answer).await, (400, "invalid_request".into()));
    }
    let twice =
        "grant_type=password&username=alice&username=alice&password=alice1234&client_id=demo-app";
    let answer = demo()
        .request(Method::POST, "/api/v4/oauth")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(twice)
        .send()
        .await
        .unwrap();
    assert_eq!(refused(answer).await, (400, "invalid_request".into()));
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
        let answer = demo()
            .request(Method::POST, "/api/v4/oauth")
            .header("authorization", format!("Basic {basic}"))
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form)
            .send()
            .await
            .unwrap();
        granted(answer).await;
    }
    let basic = STANDARD.encode("demo-server:wrong");
    let answer = demo()
        .request(Method::POST, "/api/v4/oauth")
        .header("authorization", format!("Basic {basic}"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(form)
        .send()
        .await
        .unwrap();
    assert!(
        answer.headers()["www-authenticate"]
            .to_str()
            .unwrap()
            .starts_with("Basic")
    );
    assert_eq!(refused(answer).await, (401, "invalid_client".into()));
}

async fn refresh(token: &str) -> Response {
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
        let answer = demo()
            .request(Method::POST, "/api/v4/sql")
            .bearer_auth(&access)
            .json(&json!({"q": "select 1"}));
        answer.send().await.unwrap().status() == 401
    })
    .await;
    assert!(started.elapsed().as_secs() < 6);
}

#[tokio::test]
async fn a_refresh_token_is_no_access_token() {
    let tokens = granted(post("/api/v4/oauth", &password("alice", "alice1234")).await).await;
    let answer = demo()
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(tokens["refresh_token"].as_str().unwrap())
        .json(&json!({"q": "select 1"}))
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 401);
    let answer = refresh(tokens["access_token"].as_str().unwrap()).await;
    assert_eq!(refused(answer).await, (400, "invalid_grant".into()));
}

#[tokio::test]
async fn a_guest_gets_the_default_user() {
    let answer = post(
        "/api/v4/oauth/guest",
        &json!({"database": "demo", "client_id": "demo-app"}),
    )
    .await;
    assert_eq!(answer.status(), 201);
    let body = granted(answer).await;
    assert_eq!(body["token_type"], "bearer");
    assert_eq!(body["scope"], "");
    assert!(body["refresh_token"].is_string());
    let answer = demo()
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(body["access_token"].as_str().unwrap())
        .json(&json!({"q": "select current_user::text as c"}))
        .send()
        .await
        .unwrap();
    assert_eq!(
        answer.json::<Value>().await.unwrap()["data"],
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
        let answer = post("/api/v4/oauth/guest", &body).await;
        let got = answer.status().as_u16();
        let error: Value = answer.json().await.unwrap();
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

#[tokio::test]
async fn guessing_passwords_is_slowed_down() {
    let mut last = None;
    for _ in 0..12 {
        last = Some(
            post(
                "/api/v4/oauth",
                &password("guessed-account", "wrong-password"),
            )
            .await,
        );
    }
    let last = last.unwrap();
    assert_eq!(last.status(), 429);
    assert!(
        last.headers()["retry-after"]
            .to_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
            > 0
    );
}
