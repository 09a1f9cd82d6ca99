//! Requests that members may not send: SQL, methods of their own, and the management of others.

use serde_json::{Value, json};

use crate::members::{USERS, member, two};
use crate::methods::METHODS;
use crate::service::demo;
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
        let answer = demo().rest_with(Some(&a.token), (verb, path), &body).await;
        let (status, code, _) = answer.error();
        let expected = (403, "INSUFFICIENT_PRIVILEGES");
        assert_eq!((status, code), expected, "{verb} {path} {body}");
    }
    // The owner's method may be called, and nothing has changed it.
    let answer = a.post("/api/v4/call", call).await;
    assert_eq!(
        answer.body["result"]["data"],
        json!([{"n": 1}]),
        "{answer:?}"
    );
    // A user's method is not the owner's: its author could read what members leave in the session.
    let method = json!({"method": "mraw_user", "q": "select 1 as n"});
    let alice = demo().rest(Some("alice"), ("POST", METHODS), &method);
    assert_eq!(alice.await.status, 201);
    let call = json!({"jsonrpc": "2.0", "method": "mraw_user", "id": 1});
    let answer = a.post("/api/v4/call", call).await;
    assert!(
        answer.body["error"].to_string().contains("owner"),
        "{answer:?}"
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
