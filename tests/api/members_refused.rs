//! Requests that members may not send: SQL, methods of their own, and the management of others. And
//! what they may read over REST.

use reqwest::Method;
use serde_json::{Value, json};

use crate::members::{SignedIn, USERS, member, two};
use crate::methods::METHODS;
use crate::service::{TextResponse, demo};
use crate::users::{SQL, owner};

#[tokio::test]
async fn members_run_no_sql_and_define_nothing() {
    let (a, _) = two("mraw").await;
    let method = json!({"method": "mraw_owner", "q": "select 1 as n"});
    assert_eq!(owner("POST", METHODS, method).await.status, 201);
    let of_owner = format!("{METHODS}/mraw_owner");
    let other = format!("{USERS}/mraw_b");
    let select = json!({"q": "select 1 as n"});
    let define = json!({"method": "mraw_own", "q": "select 1 as n"});
    let call = json!({"jsonrpc": "2.0", "method": "mraw_owner", "id": 1});
    for (verb, path, body) in [
        ("POST", SQL.1, select.clone()),
        ("POST", SQL.1, json!([select])),
        ("POST", SQL.1, define.clone()),
        ("POST", METHODS, define.clone()),
        ("POST", METHODS, json!([define])),
        ("PATCH", &of_owner, select),
        ("DELETE", &of_owner, Value::Null),
        ("POST", "/api/v4/call/dry", call.clone()),
        ("POST", USERS, member("mraw_c", "mraw_people")),
        ("PATCH", &other, json!({"email": "b@example.org"})),
        ("DELETE", &other, Value::Null),
        (
            "POST",
            "/api/v4/clients",
            json!({"name": "Own", "redirect_uri": ["https://own.example/"]}),
        ),
        ("PATCH", "/api/v4/tenant", json!({"anonymous_sql": "on"})),
    ] {
        let response = demo().rest_with(Some(&a.token), (verb, path), &body).await;
        let (status, code, _) = response.error();
        let expected = (403, "INSUFFICIENT_PRIVILEGES");
        assert_eq!((status, code), expected, "{verb} {path} {body}");
    }
    // The owner's method may be called, and nothing has changed it.
    let response = a.post("/api/v4/call", call).await;
    assert_eq!(
        response.body["result"]["data"],
        json!([{"n": 1}]),
        "{response:?}"
    );
    // A user's method is not the owner's: its author could read what members leave in the session.
    let method = json!({"method": "mraw_user", "q": "select 1 as n"});
    let alice = demo().rest(Some("alice"), ("POST", METHODS), &method);
    assert_eq!(alice.await.status, 201);
    let call = json!({"jsonrpc": "2.0", "method": "mraw_user", "id": 1});
    let response = a.post("/api/v4/call", call).await;
    assert!(
        response.body["error"].to_string().contains("owner"),
        "{response:?}"
    );
    // A member sees itself and may change its password and email address, and nothing else.
    let me = "/api/v4/users/mraw_a";
    let shown = demo()
        .rest_with(Some(&a.token), ("GET", me), &Value::Null)
        .await;
    assert_eq!((shown.status, &shown.body["id"]), (200, &json!(a.id)));
    let others = demo().rest_with(
        Some(&a.token),
        ("GET", "/api/v4/users/mraw_b"),
        &Value::Null,
    );
    assert_eq!(others.await.status, 403);
    for (change, status) in [
        (json!({"email": "a@example.org"}), 303),
        (json!({"kind": "role"}), 403),
        (json!({"user_group": "readers"}), 403),
        (json!({"properties": {"org": "globex"}}), 403),
    ] {
        let changed = demo()
            .rest_with(Some(&a.token), ("PATCH", me), &change)
            .await;
        assert_eq!(changed.status, status, "{change}: {changed:?}");
    }
}

/// A response to a `GET` with the token of a member.
async fn get(member: &SignedIn, path: &str) -> TextResponse {
    let request = demo().request(Method::GET, path);
    TextResponse::of(request.bearer_auth(&member.token)).await
}

/// What members may read, each with a text that the response has.
const READABLE: [(&str, &str); 9] = [
    ("/api/v4/sql/schema", "mpath_notes"),
    ("/api/v4/sql/schema/public", "mpath_notes"),
    ("/api/v4/methods", "mpath_owner"),
    ("/api/v4/methods/mpath_owner", "mpath_owner"),
    ("/api/v4/interfaces", "mpath_owner"),
    ("/api/v4/openrpc.json", "mpath_owner"),
    ("/api/graphql/schema/public/sdl", "type MpathNotes"),
    ("/api/v4/users", "mpath_a"),
    ("/api/v4/sessions", "mpath_a"),
];

/// Further requests that only the owner may send: the verb, the path and the body.
const OWNERS: [(&str, &str, &str); 12] = [
    ("GET", "/api/v4/audit", ""),
    ("GET", "/api/v4/activity", ""),
    ("GET", "/api/v4/tenant", ""),
    ("GET", "/api/v4/clients", ""),
    ("GET", "/api/v4/clients/demo-app", ""),
    ("GET", "/api/v4/issuers", ""),
    ("POST", "/api/v4/issuers", "{}"),
    ("GET", "/api/v4/issuers/none", ""),
    ("POST", "/api/v4/users/mpath_b/token", ""),
    ("GET", "/api/v4/users/mpath_b/credentials", ""),
    ("GET", PRIVILEGES, ""),
    (
        "PATCH",
        PRIVILEGES,
        r#"{"subuser": "alice", "privilege": "write"}"#,
    ),
];

const PRIVILEGES: &str = "/api/v4/schemas/public/tables/mpath_notes/privileges";

#[tokio::test]
async fn members_read_the_descriptions_and_their_own_records_and_manage_nothing() {
    let (a, b) = two("mpath").await;
    let method = json!({"method": "mpath_owner", "q": "select 1 as n"});
    assert_eq!(owner("POST", METHODS, method).await.status, 201);
    for (path, text) in READABLE {
        let response = get(&a, path).await;
        assert_eq!(response.status, 200, "{path}: {response:?}");
        assert!(response.text.contains(text), "{path}: {response:?}");
        assert!(!response.text.contains("mpath_b"), "{path}: {response:?}");
    }
    for (verb, path, body) in OWNERS {
        let body = serde_json::from_str(body).unwrap_or_default();
        let response = demo().rest_with(Some(&a.token), (verb, path), &body).await;
        let (status, code, _) = response.error();
        let expected = (403, "INSUFFICIENT_PRIVILEGES");
        assert_eq!((status, code), expected, "{verb} {path}");
    }
    // A member ends its own sessions only.
    let list = get(&a, "/api/v4/sessions").await.json();
    let [session] = list.as_array().unwrap().as_slice() else {
        panic!("{list}");
    };
    assert_eq!(
        (&session["user"], &session["current"]),
        (&json!("mpath_a"), &json!(true))
    );
    let path = format!("/api/v4/sessions/{}", session["id"].as_str().unwrap());
    let end = async |member: &SignedIn| {
        let token = Some(member.token.as_str());
        demo()
            .rest_with(token, ("DELETE", &path), &Value::Null)
            .await
            .status
    };
    assert_eq!((end(&b).await, a.status().await), (404, 200));
    let others = get(&a, "/api/v4/sessions?user=mpath_b").await;
    assert_eq!(others.status, 404, "{others:?}");
    assert_eq!((end(&a).await, a.status().await), (204, 401));
}
