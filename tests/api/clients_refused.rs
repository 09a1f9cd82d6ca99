//! Tests the requests about OAuth clients that are refused (API.md, "Clients").

use serde_json::{Value, json};

use crate::clients::{URI, owner};
use crate::service::demo;

#[tokio::test]
async fn a_wrong_member_is_named_with_what_was_expected() {
    let good = json!({"id": "never", "name": "Never", "redirect_uri": [URI]});
    let with = |member: &str, value: Value| {
        let mut body = good.clone();
        body[member] = value;
        body
    };
    let without = |member: &str| {
        let mut body = good.clone();
        body.as_object_mut().unwrap().remove(member);
        body
    };
    for (body, expected) in [
        (without("name"), "`name`: missing"),
        (without("redirect_uri"), "`redirect_uri`: missing"),
        (with("name", json!(7)), "`name`: expected a string"),
        (with("name", json!(" ")), "`name`: expected a text of"),
        (
            with("name", json!("a\u{0}b")),
            "`name`: expected a text of at most 1024 bytes without control characters",
        ),
        (
            with("description", json!("a\u{0}b")),
            "`description`: expected a text of",
        ),
        (
            with("id", json!("a/b")),
            "`id`: expected 1 to 64 characters",
        ),
        (
            with("redirect_uri", json!(URI)),
            "`redirect_uri`: expected an array of strings",
        ),
        (
            with("redirect_uri", json!([])),
            "`redirect_uri`: expected 1 to 100",
        ),
        (
            with("redirect_uri", json!(["javascript:alert(1)"])),
            "`redirect_uri[0]`: expected an absolute address",
        ),
        (
            with("redirect_uri", json!(["https://a.example/#x"])),
            "`redirect_uri[0]`: expected an absolute address",
        ),
        (
            with("redirect_uri", json!(["http://a.example/callback"])),
            "`redirect_uri[0]`: expected an absolute address",
        ),
        (
            with("redirect_uri", json!([URI, "myapp:/callback"])),
            "`redirect_uri[1]`: expected an absolute address",
        ),
        (
            with("homepage", json!("javascript:alert(1)")),
            "`homepage`: expected an http",
        ),
        (
            with("public", json!("yes")),
            "`public`: expected true or false",
        ),
        (
            with("redirect_uri", json!([URI, 7])),
            "`redirect_uri[1]`: expected a string",
        ),
        (
            with("grants", json!(["password", "magic"])),
            "`grants[1]`: expected one of password",
        ),
        (
            with("secret", json!("mine")),
            "`secret`: unknown member; known are id, name",
        ),
        (json!("text"), "the body must be an object or an array"),
        (json!([]), "the body is an array without an object"),
        (json!([good, 7]), "[1]: must be an object"),
        (json!([good, {"name": "x"}]), "[1]: `redirect_uri`: missing"),
    ] {
        let refused = owner("POST", "/api/v4/clients", body).await;
        let (status, code, message) = refused.error();
        assert_eq!((status, code), (400, "INPUT_VALIDATION_ERROR"), "{message}");
        assert!(message.starts_with(expected), "{message} is not {expected}");
    }
    for (patch, expected) in [
        (json!({"id": "other"}), "`id`: a client keeps its id"),
        (
            json!({"colour": 1}),
            "`colour`: unknown member; known are name,",
        ),
        (json!({"name": null}), "`name`: expected a string"),
        (json!([{"name": "x"}]), "the body must be an object"),
    ] {
        let refused = owner("PATCH", "/api/v4/clients/demo-app", patch).await;
        let (status, _, message) = refused.error();
        assert!(status == 400 && message.starts_with(expected), "{message}");
    }
    let taken = owner("POST", "/api/v4/clients", with("id", json!("demo-app"))).await;
    assert_eq!(taken.error().0, 409);
    assert_eq!(taken.error().1, "ALREADY_EXISTS");
    let malformed = demo()
        .request(reqwest::Method::POST, "/api/v4/clients")
        .bearer_auth(demo().token("demo").await)
        .header("content-type", "application/json")
        .body("{")
        .send()
        .await
        .unwrap();
    let malformed: Value = malformed.json().await.unwrap();
    assert_eq!(malformed["errorCode"], "INVALID_JSON", "{malformed}");
    let empty = owner("GET", "/api/v4/clients/a,,b", Value::Null).await;
    assert_eq!(empty.error().0, 400);
}

#[tokio::test]
async fn clients_are_the_owners() {
    for (method, path, body) in [
        ("GET", "/api/v4/clients", Value::Null),
        ("GET", "/api/v4/clients/demo-app", Value::Null),
        (
            "POST",
            "/api/v4/clients",
            json!({"name": "x", "redirect_uri": [URI]}),
        ),
        ("PATCH", "/api/v4/clients/demo-app", json!({"name": "x"})),
        ("DELETE", "/api/v4/clients/demo-app", Value::Null),
    ] {
        let refused = demo().rest(Some("alice"), (method, path), &body).await;
        assert_eq!(refused.error().0, 403, "{method} {path}");
        assert_eq!(refused.error().1, "INSUFFICIENT_PRIVILEGES");
        // The demo has a default user, but management requires a token.
        let stranger = demo().rest(None, (method, path), &body).await;
        assert_eq!(stranger.error().0, 401, "{method} {path}");
        assert_eq!(stranger.error().1, "MISSING_TOKEN");
    }
    for (method, path, allow) in [
        ("DELETE", "/api/v4/clients", "GET, HEAD, POST, OPTIONS"),
        (
            "POST",
            "/api/v4/clients/demo-app",
            "GET, HEAD, PATCH, DELETE, OPTIONS",
        ),
    ] {
        let refused = owner(method, path, Value::Null).await;
        assert_eq!((refused.status, refused.allow.as_str()), (405, allow));
    }
}
