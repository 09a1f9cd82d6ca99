//! The OpenID Connect provider: ID tokens, discovery and userinfo (docs/API.md, "OpenID Connect";
//! OpenID Connect Core 1.0 and Discovery 1.0).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::Method;
use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use serde_json::{Value, json};

use crate::flows::{client, failure};
use crate::pages::{Browser, CALLBACK, Page, VERIFIER, authorization, encoded};
use crate::resource_metadata::challenge;
use crate::scopes::{GRAPHQL, send};
use crate::service::{TextResponse, demo};

pub(crate) const USER_INFO: &str = "/api/v4/oauth/userinfo";

/// Sends a token request that must succeed.
pub(crate) async fn tokens(body: &Value) -> Value {
    let response = demo()
        .rest_with(None, ("POST", "/api/v4/oauth"), body)
        .await;
    assert_eq!(response.status, 200, "{response:?}");
    response.body
}

/// The tokens of a user by the password grant with this scope.
async fn password_tokens(user: &str, scope: &str) -> Value {
    tokens(&json!({
        "grant_type": "password", "client_id": "demo-app", "database": "demo", "username": user,
        "password": format!("{user}1234"), "scope": scope,
    }))
    .await
}

/// The tokens for the code that a redirect brought to a public client.
pub(crate) async fn redeemed(client_id: &str, page: &Page) -> Value {
    let code = page.parameter("code");
    assert!(!code.is_empty(), "{} {}", page.location, page.text);
    tokens(&json!({
        "grant_type": "authorization_code", "client_id": client_id, "code": code,
        "redirect_uri": CALLBACK, "code_verifier": VERIFIER,
    }))
    .await
}

/// A part of a token: 0 for the header, 1 for the claims.
pub(crate) fn part(token: &str, index: usize) -> Value {
    let part = token.split('.').nth(index).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// The claims of the ID token in a token response. Its signature is checked with the published key.
pub(crate) async fn id_claims(response: &Value) -> Value {
    let token = response["id_token"]
        .as_str()
        .unwrap_or_else(|| panic!("{response}"));
    let header = part(token, 0);
    assert_eq!(
        (&header["alg"], &header["typ"]),
        (&json!("ES256"), &json!("JWT"))
    );
    let set = demo()
        .rest_with(None, ("GET", "/.well-known/jwks.json"), &Value::Null)
        .await;
    let keys = set.body["keys"].as_array().unwrap().clone();
    let key = keys.iter().find(|key| key["kid"] == header["kid"]).unwrap();
    let mut point = vec![4];
    for name in ["x", "y"] {
        point.extend(URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap()).unwrap());
    }
    let (signed, signature) = token.rsplit_once('.').unwrap();
    let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point)
        .verify(signed.as_bytes(), &signature)
        .unwrap();
    part(token, 1)
}

async fn user_info(token: &str) -> TextResponse {
    TextResponse::of(demo().request(Method::GET, USER_INFO).bearer_auth(token)).await
}

#[tokio::test]
async fn a_code_gives_an_id_token_with_the_claims_of_the_request() {
    client("id-code", json!({"public": true, "confirm": false})).await;
    let mut browser = Browser::new(demo());
    let start = format!(
        "{}&scope=openid%20profile%20email&nonce=n%2D0S6%5FWz%20%C3%A4",
        authorization("id-code")
    );
    let page = browser.get(&start).await;
    let response = redeemed("id-code", &browser.sign_in(&page, "alice").await).await;
    assert_eq!(response["scope"], "openid profile email");
    let claims = id_claims(&response).await;
    assert_eq!(claims["iss"], demo().url);
    assert_eq!(claims["sub"], "demo/alice");
    assert_eq!(claims["aud"], "id-code");
    assert_eq!(claims["nonce"], "n-0S6_Wz \u{e4}");
    assert_eq!(claims["name"], "alice");
    assert_eq!(claims["preferred_username"], "alice");
    assert_eq!(claims.get("azp"), None);
    let access = response["access_token"].as_str().unwrap();
    let time = |name: &str| claims[name].as_i64().unwrap();
    assert_eq!(time("exp"), part(access, 1)["exp"].as_i64().unwrap());
    assert!(time("auth_time") <= time("iat") && time("iat") < time("exp"));
    let hash = ring::digest::digest(&ring::digest::SHA256, access.as_bytes());
    let left = URL_SAFE_NO_PAD.encode(hash.as_ref().split_at(16).0);
    assert_eq!(claims["at_hash"], left);

    // A refresh gives another ID token, with the time of the sign-in and without the nonce.
    let refresh = |scope: &str| {
        json!({
            "grant_type": "refresh_token", "client_id": "id-code",
            "refresh_token": response["refresh_token"], "scope": scope,
        })
    };
    let again = id_claims(&tokens(&refresh("")).await).await;
    for name in ["iss", "sub", "aud", "auth_time", "name"] {
        assert_eq!(again[name], claims[name], "{name}");
    }
    assert_eq!(again.get("nonce"), None);
    assert_ne!(again["at_hash"], claims["at_hash"]);
    let less = id_claims(&tokens(&refresh("openid")).await).await;
    assert_eq!(less.get("name"), None, "{less}");
}

#[tokio::test]
async fn a_response_without_openid_has_no_id_token() {
    for scope in ["", "read", "profile email"] {
        let response = password_tokens("alice", scope).await;
        let names: Vec<_> = response.as_object().unwrap().keys().cloned().collect();
        let mut expected = [
            "access_token",
            "token_type",
            "expires_in",
            "refresh_token",
            "scope",
        ]
        .map(String::from);
        let mut names = names;
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected, "{scope}");
    }
    // A token of the default user is issued without a sign-in, so there is no ID token.
    let body = json!({"database": "demo", "client_id": "demo-app", "scope": "openid"});
    let guest = demo()
        .rest_with(None, ("POST", "/api/v4/oauth/guest"), &body)
        .await;
    assert_eq!((guest.status, guest.body.get("id_token")), (201, None));
}

#[tokio::test]
async fn password_and_device_grants_give_id_tokens_too() {
    let claims = id_claims(&password_tokens("alice", "openid read").await).await;
    assert_eq!(
        (&claims["sub"], &claims["aud"]),
        (&json!("demo/alice"), &json!("demo-app"))
    );
    assert_eq!((claims.get("name"), claims.get("email")), (None, None));
    let owner = id_claims(&password_tokens("demo", "openid").await).await;
    assert_eq!(owner["sub"], "demo");

    let body = json!({"client_id": "demo-app", "scope": "openid"});
    let codes = demo()
        .rest_with(None, ("POST", "/api/v4/oauth/device"), &body)
        .await
        .body;
    let mut browser = Browser::new(demo());
    let page = browser.get("/device").await;
    let typed = codes["user_code"].as_str().unwrap();
    let page = browser.submit(&page, "code", &[("user_code", typed)]).await;
    let page = browser.sign_in(&page, "alice").await;
    browser
        .submit(&page, "decide", &[("decision", "allow")])
        .await;
    let body = json!({
        "grant_type": "device_code", "client_id": "demo-app", "device_code": codes["device_code"],
    });
    let claims = id_claims(&tokens(&body).await).await;
    assert_eq!(claims["sub"], "demo/alice");
}

#[tokio::test]
async fn an_id_token_is_no_access_token() {
    let response = password_tokens("alice", "openid").await;
    let id = response["id_token"].as_str().unwrap();
    let read = json!({"query": "{__typename}"});
    let refused = send(id, Method::POST, GRAPHQL, &read).await;
    assert_eq!(refused.status, 401, "{refused:?}");
    let info = user_info(id).await;
    assert_eq!(info.status, 401);
    assert_eq!(
        info.header("www-authenticate"),
        challenge(&demo().url, "invalid_token")
    );
    let body = json!({
        "grant_type": "refresh_token", "client_id": "demo-app", "refresh_token": id,
    });
    assert_eq!(failure(&body).await, (400, "invalid_grant".into()));
    let body =
        json!({"token": id, "client_id": "demo-server", "client_secret": "demo-server-secret"});
    let reported = demo()
        .rest_with(None, ("POST", "/api/v4/oauth/introspect"), &body)
        .await;
    assert_eq!(reported.body, json!({"active": false}));
    // The access token in the same response is accepted.
    let access = response["access_token"].as_str().unwrap();
    assert_eq!(send(access, Method::POST, GRAPHQL, &read).await.status, 200);
}

#[tokio::test]
async fn the_userinfo_endpoint_tells_what_the_scopes_say() {
    let email = json!({"email": "owner@demo.example", "properties": {"name": "Dora Demo"}});
    let changed = demo()
        .rest(Some("demo"), ("PATCH", "/api/v4/users/alice"), &email)
        .await;
    assert_eq!(changed.status, 303, "{changed:?}");
    for (scope, expected) in [
        ("openid", json!({"sub": "demo/alice", "user_id": "alice"})),
        (
            "openid profile read",
            json!({"sub": "demo/alice", "user_id": "alice", "name": "Dora Demo",
                "preferred_username": "alice"}),
        ),
        (
            "openid email",
            json!({"sub": "demo/alice", "user_id": "alice", "email": "owner@demo.example"}),
        ),
    ] {
        let response = password_tokens("alice", scope).await;
        let claims = id_claims(&response).await;
        let token = response["access_token"].as_str().unwrap();
        let info = user_info(token).await;
        assert_eq!(info.status, 200, "{info:?}");
        assert_eq!(
            info.header("content-type"),
            "application/json; charset=utf-8"
        );
        assert_eq!(info.header("cache-control"), "no-store");
        let reported: Value = serde_json::from_str(&info.text).unwrap();
        assert_eq!(reported, expected, "{scope}");
        for (name, value) in reported.as_object().unwrap() {
            assert_eq!(&claims[name], value, "{scope} {name}");
        }
        // The response to a POST is the same, with the token in the header or in a form.
        let posted = demo().request(Method::POST, USER_INFO).bearer_auth(token);
        assert_eq!(TextResponse::of(posted).await.text, info.text);
        let form = demo().request(Method::POST, USER_INFO);
        let form = form.form(&[("access_token", token)]);
        assert_eq!(TextResponse::of(form).await.text, info.text);
        let twice = demo().request(Method::POST, USER_INFO).bearer_auth(token);
        let twice = TextResponse::of(twice.form(&[("access_token", token)])).await;
        assert_eq!(twice.status, 400, "{twice:?}");
        assert!(twice.text.contains("access_token"), "{twice:?}");
    }
}

#[tokio::test]
async fn the_userinfo_endpoint_refuses_other_callers() {
    let url = demo().url.as_str();
    let refused = |response: &TextResponse| {
        let header = response.header("www-authenticate").to_owned();
        (response.status, header)
    };
    let anonymous = TextResponse::of(demo().request(Method::GET, USER_INFO)).await;
    assert_eq!(refused(&anonymous), (401, challenge(url, "")));
    let empty = TextResponse::of(demo().request(Method::POST, USER_INFO)).await;
    assert_eq!(refused(&empty), (401, challenge(url, "")));
    let invalid = (401, challenge(url, "invalid_token"));
    assert_eq!(refused(&user_info("nonsense").await), invalid);
    let form = demo()
        .request(Method::POST, USER_INFO)
        .form(&[("access_token", "nonsense")]);
    assert_eq!(refused(&TextResponse::of(form).await), invalid);
    for scope in ["", "read admin", "profile email"] {
        let response = password_tokens("alice", scope).await;
        let token = response["access_token"].as_str().unwrap();
        let reported = user_info(token).await;
        let expected = (403, challenge(url, "insufficient_scope"));
        assert_eq!(refused(&reported), expected, "{scope}");
        assert!(reported.text.contains("INSUFFICIENT_SCOPE") && reported.text.contains("openid"));
    }
    let query = format!("{USER_INFO}?access_token=x");
    let reported = TextResponse::of(demo().request(Method::GET, &query)).await;
    assert_eq!(reported.status, 401, "a token in the URL is not read");
}

#[tokio::test]
async fn the_discovery_document_agrees_with_that_of_the_authorization_server() {
    let document = |name: &str| {
        let path = format!("/.well-known/{name}");
        async move {
            demo()
                .rest_with(None, ("GET", &path), &Value::Null)
                .await
                .body
        }
    };
    let openid = document("openid-configuration").await;
    let server = document("oauth-authorization-server").await;
    for (name, value) in server.as_object().unwrap() {
        if name != "scopes_supported" {
            assert_eq!(&openid[name], value, "{name}");
        }
    }
    let list = |value: &Value| -> Vec<String> { serde_json::from_value(value.clone()).unwrap() };
    let scopes = list(&openid["scopes_supported"]);
    for scope in list(&server["scopes_supported"])
        .iter()
        .chain(&["openid".to_owned()])
    {
        assert!(scopes.contains(scope), "{scope}");
    }
    let url = &demo().url;
    assert_eq!(openid["issuer"], **url);
    for (name, path) in [
        ("userinfo_endpoint", USER_INFO),
        ("jwks_uri", "/.well-known/jwks.json"),
        ("authorization_endpoint", "/auth"),
        ("end_session_endpoint", "/signout"),
    ] {
        assert_eq!(openid[name], format!("{url}{path}"), "{name}");
    }
    for (name, value) in [
        ("subject_types_supported", json!(["public"])),
        ("id_token_signing_alg_values_supported", json!(["ES256"])),
        ("response_types_supported", json!(["code"])),
        ("request_parameter_supported", json!(false)),
        ("request_uri_parameter_supported", json!(false)),
        ("claims_parameter_supported", json!(false)),
    ] {
        assert_eq!(openid[name], value, "{name}");
    }
    // The document lists every claim of an ID token.
    let response = password_tokens("alice", "openid profile email").await;
    let claims = id_claims(&response).await;
    for name in claims.as_object().unwrap().keys() {
        assert!(list(&openid["claims_supported"]).contains(name), "{name}");
    }
}

#[tokio::test]
async fn malformed_and_unsupported_parameters_are_refused_by_name() {
    let mut browser = Browser::new(demo());
    let start = format!("{}&scope=openid", authorization("demo-app"));
    for (more, error, text) in [
        ("request=x", "request_not_supported", "request"),
        (
            "request_uri=https%3A%2F%2Fa.example",
            "request_uri_not_supported",
            "request_uri",
        ),
        (
            "registration=%7B%7D",
            "registration_not_supported",
            "registration",
        ),
        ("nonce=a%00b", "invalid_request", "nonce"),
        ("max_age=soon", "invalid_request", "max_age"),
        ("max_age=-1", "invalid_request", "max_age"),
        ("max_age=99999999999999999999", "invalid_request", "max_age"),
        ("prompt=none%20login", "invalid_request", "prompt"),
        ("response_mode=fragment", "invalid_request", "response_mode"),
        (
            "response_mode=form_post",
            "invalid_request",
            "response_mode",
        ),
        ("nonce=a&nonce=b", "invalid_request", "nonce"),
    ] {
        let page = browser.get(&format!("{start}&{more}")).await;
        assert_eq!(
            (page.status, page.parameter("error")),
            (303, error.to_owned()),
            "{more}"
        );
        assert_eq!(page.parameter("state"), "xyz", "{more}");
        assert!(
            page.parameter("error_description").contains(text),
            "{more}: {}",
            page.location
        );
    }
    // The challenge may be in the request object only, so its absence is not the error.
    let bare = format!(
        "/auth?response_type=code&client_id=demo-app&redirect_uri={}&scope=openid&request=x",
        encoded(CALLBACK)
    );
    let page = browser.get(&bare).await;
    assert_eq!(page.parameter("error"), "request_not_supported");
    let long = format!("{start}&nonce={}", encoded(&"\u{e4}".repeat(513)));
    assert_eq!(
        browser.get(&long).await.parameter("error"),
        "invalid_request"
    );
    // Parameters that the provider need not know are ignored.
    for more in [
        "display=popup&ui_locales=da&acr_values=1&claims_locales=da&unknown=1",
        "claims=%7B%22userinfo%22%3A%7B%22name%22%3A%7B%22essential%22%3Atrue%7D%7D%7D",
        "prompt=create",
    ] {
        let page = browser.get(&format!("{start}&{more}")).await;
        assert_eq!(page.status, 200, "{more}: {}", page.location);
    }
    // Without `openid` these are parameters that OAuth does not know.
    let plain = authorization("demo-app");
    for more in ["request=x", "max_age=soon", "prompt=none", "nonce=a%00b"] {
        let page = browser.get(&format!("{plain}&{more}")).await;
        assert_eq!(page.status, 200, "{more}: {}", page.location);
    }
}
