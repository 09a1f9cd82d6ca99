//! Tests requests of anonymous clients to the OAuth endpoints (API.md, "Tokens"), valid and
//! malformed, against a server whose store is PostgreSQL.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use crate::pages::{authorization, encoded};
use crate::service::{Service, TextResponse, demo, demo_folder};

const ENDPOINTS: [&str; 5] = ["", "/device", "/guest", "/revoke", "/introspect"];
const SERVER: (&str, &str) = ("demo-server", "demo-server-secret");

/// The request members that every endpoint needs, except those that name the client.
fn members() -> Value {
    json!({
        "grant_type": "password", "username": "alice", "password": "alice1234",
        "database": "demo", "token": "x", "scope": "openid profile", "unknown": "ignored",
    })
}

fn form(body: &Value) -> String {
    let members = body.as_object().unwrap().iter();
    let pair = |(name, value): (&String, &Value)| {
        let text = value.as_str().unwrap_or_default();
        format!("{}={}", encoded(name), encoded(text))
    };
    members.map(pair).collect::<Vec<_>>().join("&")
}

async fn send(
    service: &Service,
    endpoint: &str,
    basic: Option<&str>,
    body: &[&str; 2],
) -> TextResponse {
    let mut request = service.request(reqwest::Method::POST, &format!("/api/v4/oauth{endpoint}"));
    if let Some(basic) = basic {
        let basic = STANDARD.encode(basic);
        request = request.header("authorization", format!("Basic {basic}"));
    }
    let [kind, text] = *body;
    TextResponse::of(request.header("content-type", kind).body(text.to_owned())).await
}

#[tokio::test]
async fn each_endpoint_takes_json_and_forms_and_credentials_in_body_and_header() {
    let (id, secret) = SERVER;
    let mut whole = members();
    whole["client_id"] = id.into();
    whole["client_secret"] = secret.into();
    let raw = format!("{id}:{secret}");
    let escaped = raw.replace('-', "%2D");
    for endpoint in ENDPOINTS {
        let status = if endpoint == "/guest" { 201 } else { 200 };
        for (basic, body) in [
            (None, &whole),
            (Some(&raw), &members()),
            (Some(&escaped), &members()),
        ] {
            let (json, form) = (body.to_string(), form(body));
            for body in [
                ["application/json", &json],
                ["application/x-www-form-urlencoded", &form],
            ] {
                let response = send(demo(), endpoint, basic.map(String::as_str), &body).await;
                assert_eq!(response.status, status, "{endpoint} {basic:?} {response:?}");
                assert_eq!(response.header("cache-control"), "no-store", "{endpoint}");
                assert_eq!(response.header("pragma"), "no-cache", "{endpoint}");
                let reported = response.json();
                if reported["access_token"].is_string() {
                    assert_eq!(reported["scope"], "openid profile");
                }
            }
        }
    }
}

#[tokio::test]
async fn a_wrong_secret_in_the_header_asks_for_the_header_and_no_other() {
    // The test has a demo of its own, because wrong secrets count against client and address.
    let folder = demo_folder();
    let own = Service::start(folder.path().to_str().unwrap(), &[]);
    for endpoint in ENDPOINTS {
        let body = members().to_string();
        let body = ["application/json", body.as_str()];
        let refused = send(&own, endpoint, Some("demo-server:wrong"), &body).await;
        assert_eq!(refused.status, 401, "{endpoint}");
        assert_eq!(refused.json()["error"], "invalid_client", "{endpoint}");
        assert_eq!(
            refused.header("www-authenticate"),
            "Basic realm=\"tidegate\", charset=\"UTF-8\"",
            "{endpoint}"
        );
        let mut body = members();
        body["client_id"] = "demo-server".into();
        let body = body.to_string();
        let refused = send(&own, endpoint, None, &["application/json", &body]).await;
        assert_eq!(refused.status, 401, "{endpoint}");
        assert_eq!(refused.header("www-authenticate"), "", "{endpoint}");
    }
}

#[tokio::test]
async fn no_value_breaks_a_query_and_none_comes_back_with_a_colon_and_a_blank() {
    // The test has a demo of its own, because wrong attempts count against the address.
    let folder = demo_folder();
    let own = Service::start(folder.path().to_str().unwrap(), &[]);
    let long = "x".repeat(9000);
    let values = [
        "a\u{0}b",
        "' or 1=1 --",
        "\"; drop table tidegate.clients; --",
        "a: b",
        "<script>alert(1)</script>",
        "\u{202e}\u{fffd}\u{10ffff}\r\nX: y",
        "../../../etc/passwd",
        &long,
    ];
    let grants = [
        ("password", "username"),
        ("password", "database"),
        ("refresh_token", "refresh_token"),
        ("authorization_code", "code"),
        ("authorization_code", "code_verifier"),
        ("device_code", "device_code"),
        ("a: b", "client_id"),
    ];
    for (grant, member) in grants {
        for value in values {
            let mut body = json!({
                "grant_type": grant, "client_id": "demo-app", "username": "x", "password": "x",
                "database": "demo", "refresh_token": "x", "code": "x", "device_code": "x",
                "redirect_uri": "https://x.example/", "code_verifier": "x".repeat(43),
            });
            body[member] = value.into();
            let body = body.to_string();
            let response = send(&own, "", None, &["application/json", &body]).await;
            check(&response, &format!("{grant} {member} {value:.20}"));
        }
    }
    for (endpoint, member) in [
        ("/guest", "database"),
        ("/guest", "client_id"),
        ("/device", "client_id"),
        ("/revoke", "token"),
        ("/introspect", "token"),
        ("/introspect", "client_id"),
    ] {
        for value in values {
            let mut body = members();
            body["client_id"] = SERVER.0.into();
            body["client_secret"] = SERVER.1.into();
            body[member] = value.into();
            let form = form(&body);
            let kind = "application/x-www-form-urlencoded";
            let response = send(&own, endpoint, None, &[kind, &form]).await;
            check(&response, &format!("{endpoint} {member} {value:.20}"));
        }
    }
    for twice in ["a%3A%20b=1&a%3A%20b=2", "%00=1&%00=2", "%22%7D=1&%22%7D=2"] {
        let kind = "application/x-www-form-urlencoded";
        let response = send(&own, "", None, &[kind, twice]).await;
        assert_eq!(response.json()["error"], "invalid_request", "{twice}");
        check(&response, twice);
    }
    own.token("alice").await;
}

/// Checks that an error response is well formed and blames the caller.
fn check(response: &TextResponse, what: &str) {
    assert!(response.status < 500, "{what}: {response:?}");
    assert!(!response.text.contains(": "), "{what}: {response:?}");
    if response.status >= 400 {
        assert!(response.json()["error"].is_string(), "{what}: {response:?}");
    }
}

#[tokio::test]
async fn pages_survive_every_value_too() {
    let good = authorization("demo-app");
    for odd in [
        "%00",
        "a%00b",
        "%27%20or%201%3D1",
        "%0d%0aX-Injected%3A%20y",
        "%f0%9f%90%98",
    ] {
        let paths = [
            good.replace("demo-app", odd),
            good.replace("callback", odd),
            good.replace("state=xyz", &format!("state={odd}")),
            good.replace("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", odd),
            format!("/device?user_code={odd}"),
            format!("/signup/?client_id={odd}&parentdb={odd}&redirect_uri={odd}"),
            format!("/signout?redirect_uri={odd}"),
            format!("/reset?token={odd}"),
        ];
        for path in paths {
            let response = demo().ask(reqwest::Method::GET, &path, None, None).await;
            assert!(response.status < 500, "{path}: {response:?}");
            assert_eq!(response.header("x-injected"), "", "{path}");
        }
    }
    // The value of `state` is returned unchanged, in its own parameter.
    let odd = good
        .replace("state=xyz", "state=%0D%0AX-Injected%3A%20y%26code%3Dmine")
        .replace("S256", "plain");
    let response = demo().ask(reqwest::Method::GET, &odd, None, None).await;
    assert_eq!(response.status, 303);
    let location = response.header("location");
    let state = "state=%0D%0AX-Injected%3A%20y%26code%3Dmine";
    assert!(location.contains(state), "{location}");
}

#[tokio::test]
async fn forged_and_oversized_tokens_are_refused_wherever_a_token_is_taken() {
    let token = demo().cached_token("alice").await;
    let parts: Vec<_> = token.split('.').collect();
    let header = |header: Value| URL_SAFE_NO_PAD.encode(header.to_string());
    let kid = URL_SAFE_NO_PAD.decode(parts[0]).unwrap();
    let kid = serde_json::from_slice::<Value>(&kid).unwrap()["kid"].clone();
    let path = "/.well-known/jwks.json";
    let keys = demo().ask(reqwest::Method::GET, path, None, None).await;
    let keys = keys.json();
    let key = keys["keys"].as_array().unwrap().iter();
    let key = key.clone().find(|key| key["kid"] == kid).unwrap();
    let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap()).unwrap();
    let public = [vec![4], coordinate("x"), coordinate("y")].concat();
    let none = header(json!({"alg": "none", "typ": "at+jwt", "kid": kid}));
    let none = format!("{none}.{}.", parts[1]);
    let mac = header(json!({"alg": "HS256", "typ": "at+jwt", "kid": kid}));
    let mac = format!("{mac}.{}", parts[1]);
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &public);
    let tag = ring::hmac::sign(&secret, mac.as_bytes());
    let mac = format!("{mac}.{}", URL_SAFE_NO_PAD.encode(tag));
    let mut claims: Value =
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    claims["superUser"] = true.into();
    claims["uid"] = "demo".into();
    let raised = format!("{}.{}.{}", parts[0], header(claims), parts[2]);
    let huge = format!("{token}{}", "A".repeat(9000));
    for forged in [none, mac, raised, huge] {
        let request = demo().request(reqwest::Method::POST, "/api/v4/sql");
        let request = request.bearer_auth(&forged).json(&json!({"q": "select 1"}));
        let response = TextResponse::of(request).await;
        assert_eq!(
            response.error(),
            (401, "INVALID_TOKEN".to_owned()),
            "{forged:.60}"
        );
        assert!(
            response
                .header("www-authenticate")
                .contains("error=\"invalid_token\"")
        );
        let body = json!({"token": forged, "client_id": SERVER.0, "client_secret": SERVER.1});
        let body = body.to_string();
        let reported = send(demo(), "/introspect", None, &["application/json", &body]).await;
        assert_eq!(
            (reported.status, reported.text.as_str()),
            (200, r#"{"active":false}"#)
        );
        let body = json!({"token": forged, "client_id": "demo-app"}).to_string();
        let reported = send(demo(), "/revoke", None, &["application/json", &body]).await;
        assert_eq!(reported.status, 200, "{reported:?}");
    }
    // None of these revocations ended the session of the real token.
    let request = demo().request(reqwest::Method::POST, "/api/v4/sql");
    let request = request.bearer_auth(&token).json(&json!({"q": "select 1"}));
    assert_eq!(TextResponse::of(request).await.status, 200);
}

#[tokio::test]
async fn the_host_header_does_not_change_urls_in_responses() {
    let metadata = "/.well-known/oauth-authorization-server";
    let request = demo().request(reqwest::Method::GET, metadata);
    let reported = TextResponse::of(request.header("host", "evil.example")).await;
    assert_eq!(reported.status, 200);
    assert!(!reported.text.contains("evil.example"), "{}", reported.text);
    let request = demo().request(reqwest::Method::POST, "/api/v4/oauth/device");
    let request = request
        .header("host", "evil.example")
        .header("x-forwarded-host", "evil.example");
    let reported = TextResponse::of(request.json(&json!({"client_id": "demo-app"}))).await;
    assert_eq!(reported.status, 200);
    assert!(!reported.text.contains("evil.example"), "{}", reported.text);
}

#[tokio::test]
async fn no_secret_is_stored_as_it_was_given() {
    let client =
        json!({"id": "at-rest", "name": "At rest", "redirect_uri": ["https://a.example/"]});
    let path = ("POST", "/api/v4/clients");
    let made = demo().rest(Some("demo"), path, &client).await;
    let device = json!({"client_id": "demo-app"});
    let path = ("POST", "/api/v4/oauth/device");
    let codes = demo().rest_with(None, path, &device).await;
    let body = json!({"database": "demo", "client_id": "demo-app"});
    let path = ("POST", "/api/v4/oauth/guest");
    let tokens = demo().rest_with(None, path, &body).await;
    let given = [
        &made.body["secret"],
        &codes.body["device_code"],
        &tokens.body["access_token"],
        &tokens.body["refresh_token"],
        &json!("alice1234"),
        &json!(SERVER.1),
    ];
    let control = demo().control().await;
    let tables = "select format('select coalesce(string_agg(t::text, e''\\n''), '''') from %s t', \
                  oid::regclass) from pg_class where relkind = 'r' \
                  and relnamespace = 'tidegate'::regnamespace";
    let mut kept = String::new();
    for table in control.query(tables, &[]).await.unwrap() {
        let rows = control.query_one(table.get::<_, &str>(0), &[]).await;
        kept.push_str(rows.unwrap().get(0));
    }
    assert!(
        kept.contains("at-rest") && kept.contains("$argon2id$"),
        "these are the tables"
    );
    for secret in given {
        let secret = secret.as_str().unwrap();
        assert!(!kept.contains(secret), "in clear");
        let hex = |bytes: &[u8]| {
            let pairs = bytes.iter().map(|byte| format!("{byte:02x}"));
            pairs.collect::<Vec<_>>().concat()
        };
        assert!(
            !kept.contains(&hex(secret.as_bytes())),
            "in clear, as bytes"
        );
        if let Ok(bytes) = URL_SAFE_NO_PAD.decode(secret) {
            assert!(bytes.len() < 8 || !kept.contains(&hex(&bytes)), "decoded");
        }
    }
    let path = ("DELETE", "/api/v4/clients/at-rest");
    assert_eq!(
        demo().rest(Some("demo"), path, &Value::Null).await.status,
        204
    );
}

#[tokio::test]
async fn the_rate_limit_of_the_guest_endpoint_is_reported_in_both_forms() {
    // The test has a demo of its own, because wrong secrets count against client and address.
    let folder = demo_folder();
    let own = Service::start(folder.path().to_str().unwrap(), &[]);
    let mut body = members();
    body["client_id"] = SERVER.0.into();
    body["client_secret"] = "wrong".into();
    let body = body.to_string();
    let body = ["application/json", body.as_str()];
    for n in 0..20 {
        let refused = send(&own, "/guest", None, &body).await;
        assert_eq!(refused.status, 401, "{n}: {refused:?}");
    }
    let refused = send(&own, "/guest", None, &body).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
    check(&refused, "429");
    let reported = refused.json();
    assert_eq!(reported["errorCode"], reported["error"], "{reported}");
    assert_eq!(
        reported["message"], reported["error_description"],
        "{reported}"
    );
    assert_eq!(
        (&reported["success"], &reported["code"]),
        (&json!(false), &json!(429)),
        "{reported}"
    );
}
