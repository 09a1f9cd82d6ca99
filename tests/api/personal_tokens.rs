//! Tests personal access tokens (docs/API.md, "Personal access tokens").

use reqwest::Method;
use serde_json::{Value, json};

use crate::audit::all_events;
use crate::node::{Node, operator};
use crate::open_connections::OpenConnections;
use crate::openid_identifiers::introspected;
use crate::operator::Operator;
use crate::service::{RestResponse, Service, demo, eventually};

const PATH: &str = "/api/v4/tokens";

/// A request with this bearer token.
async fn call(
    service: &Service,
    token: &str,
    method: Method,
    path: &str,
    body: &Value,
) -> RestResponse {
    let request = service.request(method, path).bearer_auth(token).json(body);
    let response = request.send().await.unwrap();
    let location = response.headers().get("location").cloned();
    let status = response.status().as_u16();
    let text = response.text().await.unwrap();
    RestResponse {
        status,
        location: location.map_or(String::new(), |at| at.to_str().unwrap().to_owned()),
        allow: String::new(),
        body: serde_json::from_str(&text).unwrap_or_else(|_| json!(text)),
    }
}

/// A new token of a user, and its id.
async fn token_of(user: &str, body: Value) -> (String, String) {
    let owner = demo().token(user).await;
    let made = call(demo(), &owner, Method::POST, PATH, &body).await;
    assert_eq!(made.status, 201, "{made:?}");
    let (token, id) = (made.body["token"].as_str(), made.body["id"].as_str());
    assert_eq!(made.location, format!("{PATH}/{}", id.unwrap()));
    (token.unwrap().to_owned(), id.unwrap().to_owned())
}

pub(crate) async fn current_user(token: &str) -> (u16, Value) {
    let body = json!({"q": "select current_user::text as name"});
    let response = call(demo(), token, Method::POST, "/api/v4/sql", &body).await;
    let name = response.body["data"][0]["name"].clone();
    (
        response.status,
        if name.is_null() {
            response.body["errorCode"].clone()
        } else {
            name
        },
    )
}

/// A user of the demo for one test.
pub(crate) async fn user(name: &str) -> String {
    let body = json!({"name": name, "password": "password-1234"});
    let made = demo()
        .rest(Some("demo"), ("POST", "/api/v4/users"), &body)
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    let body = json!({
        "grant_type": "password", "client_id": "demo-app", "database": "demo",
        "username": name, "password": "password-1234",
    });
    let response = demo()
        .rest_with(None, ("POST", "/api/v4/oauth"), &body)
        .await;
    response.body["access_token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_token_acts_as_its_user_is_listed_with_its_last_use_and_revoked_at_once() {
    let (token, id) = token_of("alice", json!({"name": "backup job"})).await;
    assert!(token.starts_with("tgp_") && token.len() == 47, "{token}");
    let own = demo().token("alice").await;
    let listed = || async {
        let list = call(demo(), &own, Method::GET, PATH, &Value::Null).await;
        assert_eq!(list.status, 200, "{list:?}");
        assert!(!list.body.to_string().contains(&token), "{list:?}");
        let found = list
            .body
            .as_array()
            .unwrap()
            .iter()
            .find(|one| one["id"] == *id);
        found.cloned()
    };
    let shown = listed().await.unwrap();
    assert_eq!(
        (&shown["name"], &shown["user"]),
        (&json!("backup job"), &json!("alice"))
    );
    assert_eq!(
        (&shown["scopes"], &shown["last_used_at"]),
        (&json!([]), &Value::Null)
    );

    assert_eq!(current_user(&token).await, (200, json!("demo/alice")));
    assert!(listed().await.unwrap()["last_used_at"].is_string());

    // The owner of the database sees the token, and another user does not.
    let (owner, other) = (demo().token("demo").await, user("pat-other").await);
    for (other, visible) in [(&owner, true), (&other, false)] {
        let list = call(demo(), other, Method::GET, PATH, &Value::Null).await;
        assert_eq!(list.body.to_string().contains(&id), visible, "{list:?}");
    }
    let path = format!("{PATH}/{id}");
    let foreign = call(demo(), &other, Method::DELETE, &path, &Value::Null).await;
    assert_eq!(foreign.error(), (404, "NOT_FOUND", "token not found"));

    // The revocation endpoint is for tokens of clients, and does not report that it has revoked a
    // personal token.
    let body = json!({"client_id": "demo-app", "token": token});
    let refused = demo()
        .rest_with(None, ("POST", "/api/v4/oauth/revoke"), &body)
        .await;
    assert_eq!(
        (refused.status, &refused.body["error"]),
        (400, &json!("unauthorized_client"))
    );

    let revoked = call(demo(), &own, Method::DELETE, &path, &Value::Null).await;
    assert_eq!(revoked.status, 204, "{revoked:?}");
    assert_eq!(current_user(&token).await, (401, json!("INVALID_TOKEN")));
    assert_eq!(listed().await, None);
    let again = call(demo(), &own, Method::DELETE, &path, &Value::Null).await;
    assert_eq!(again.status, 404, "{again:?}");

    // The audit log has the creation and the revocation, without the secret.
    let events = all_events(demo()).await;
    for kind in ["token_created", "token_revoked"] {
        let event = events
            .iter()
            .find(|one| one["event"] == kind && one["session"] == *id);
        let event = event.unwrap_or_else(|| panic!("{kind}"));
        assert_eq!(
            (&event["detail"], &event["actor"]),
            (&json!("backup job"), &json!("alice"))
        );
    }
    assert!(!json!(events).to_string().contains(&token));
}

#[tokio::test]
async fn a_token_is_stored_as_a_hash_only() {
    let (token, _) = token_of("alice", json!({"name": "hashed"})).await;
    let control = demo().control().await;
    let sql = "select count(*) from tidegate.sessions s where s.token_name = 'hashed' \
               and s.token_hash = sha256($1::text::bytea) and s::text not like '%' || $1::text || '%'";
    let row = control.query_one(sql, &[&token]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
}

#[tokio::test]
async fn what_a_new_token_may_not_be_is_refused_by_name() {
    let own = demo().token("alice").await;
    for (body, member) in [
        (json!({}), "`name`"),
        (json!({"name": " "}), "`name`"),
        (json!({"name": "x".repeat(101)}), "`name`"),
        (
            json!({"name": "a\u{0}b"}),
            "`name`: expected a text of 1 to 100 bytes without control characters",
        ),
        (json!({"name": "a\nb"}), "`name`"),
        (
            json!({"name": "x", "expires_at": "tomorrow"}),
            "`expires_at`",
        ),
        (
            json!({"name": "x", "expires_at": "2020-01-01T00:00:00Z"}),
            "`expires_at`",
        ),
        (
            json!({"name": "x", "expires_at": "2999-01-01T00:00:00Z"}),
            "`expires_at`",
        ),
        (
            json!({"name": "x", "scopes": ["read", "root"]}),
            "`scopes[1]`: ",
        ),
        (
            json!({"name": "x", "scopes": ["read", 7]}),
            "`scopes[1]`: expected a string",
        ),
        (json!({"name": "x", "scopes": "read"}), "`scopes`"),
        (json!({"name": "x", "scopes": []}), "`scopes`"),
        (json!({"name": "x", "scopes": [""]}), "`scopes`"),
        // The scopes of OpenID Connect narrow nothing.
        (
            json!({"name": "x", "scopes": ["openid"]}),
            "`scopes`: expected one scope or more of read",
        ),
        (json!({"name": "x", "user": "demo"}), "`user`"),
    ] {
        let refused = call(demo(), &own, Method::POST, PATH, &body).await;
        let (status, code, message) = refused.error();
        assert_eq!(
            (status, code),
            (400, "INPUT_VALIDATION_ERROR"),
            "{body} {message}"
        );
        assert!(message.contains(member), "{body} {message}");
    }
}

#[tokio::test]
async fn a_token_makes_no_token_and_no_one_makes_one_for_another_user() {
    let body = json!({"name": "child"});
    let (token, _) = token_of("alice", json!({"name": "parent"})).await;
    let refused = call(demo(), &token, Method::POST, PATH, &body).await;
    assert_eq!(
        (refused.status, refused.error().1),
        (403, "INSUFFICIENT_PRIVILEGES")
    );
    // The caller is the owner, who acts as a user.
    let acting = demo()
        .rest(
            Some("demo"),
            ("POST", "/api/v4/users/alice/token"),
            &json!({}),
        )
        .await;
    let acting = acting.body["access_token"].as_str().unwrap();
    let refused = call(demo(), acting, Method::POST, PATH, &body).await;
    assert_eq!(
        (refused.status, refused.error().1),
        (403, "INSUFFICIENT_PRIVILEGES")
    );
    // The caller has a token of the default user.
    let guest = json!({"client_id": "demo-app", "database": "demo"});
    let guest = demo()
        .rest_with(None, ("POST", "/api/v4/oauth/guest"), &guest)
        .await;
    let guest = guest.body["access_token"].as_str().unwrap();
    let refused = call(demo(), guest, Method::POST, PATH, &body).await;
    assert_eq!(
        (refused.status, refused.error().1),
        (403, "INSUFFICIENT_PRIVILEGES")
    );
}

#[tokio::test]
async fn invented_and_mistyped_tokens_are_refused() {
    let (token, _) = token_of("alice", json!({"name": "mistyped"})).await;
    let mut changed = token.clone().into_bytes();
    changed[20] = if changed[20] == b'A' { b'B' } else { b'A' };
    let changed = String::from_utf8(changed).unwrap();
    let invented = format!("tgp_{}", "A".repeat(43));
    for wrong in [
        &*changed,
        &invented,
        "tgp_",
        &token[4..],
        &format!("{token}x"),
    ] {
        assert_eq!(
            current_user(wrong).await,
            (401, json!("INVALID_TOKEN")),
            "{wrong}"
        );
    }
    assert_eq!(current_user(&token).await.0, 200);
}

#[tokio::test]
async fn the_tokens_of_a_dropped_user_end_and_a_new_user_of_its_name_does_not_get_them() {
    let own = user("pat-gone").await;
    let made = call(demo(), &own, Method::POST, PATH, &json!({"name": "job"})).await;
    let token = made.body["token"].as_str().unwrap();
    assert_eq!(current_user(token).await.0, 200);
    let path = "/api/v4/users/pat-gone";
    assert_eq!(
        demo()
            .rest(Some("demo"), ("DELETE", path), &Value::Null)
            .await
            .status,
        204
    );
    assert_eq!(current_user(token).await, (401, json!("INVALID_TOKEN")));
    user("pat-gone").await;
    assert_eq!(current_user(token).await, (401, json!("INVALID_TOKEN")));
}

#[tokio::test]
async fn a_new_password_ends_the_tokens_of_the_user() {
    let own = user("pat-password").await;
    let made = call(demo(), &own, Method::POST, PATH, &json!({"name": "job"})).await;
    let token = made.body["token"].as_str().unwrap();
    assert_eq!(current_user(token).await.0, 200);
    let body = json!({"password": "another-1234"});
    let path = "/api/v4/users/pat-password";
    assert_eq!(
        demo()
            .rest(Some("demo"), ("PATCH", path), &body)
            .await
            .status,
        303
    );
    assert_eq!(current_user(token).await, (401, json!("INVALID_TOKEN")));
}

#[tokio::test]
async fn a_token_expires() {
    let (token, id) = token_of("alice", json!({"name": "short"})).await;
    assert_eq!(current_user(&token).await.0, 200);
    let control = demo().control().await;
    // The cached claims hold the time of expiry, so this waits for the cache as well.
    let sql = "update tidegate.sessions set expires_at = now(), closes_at = now() \
               where token_name = 'short'";
    control.execute(sql, &[]).await.unwrap();
    eventually("the token is refused", || async {
        current_user(&token).await == (401, json!("INVALID_TOKEN"))
    })
    .await;
    let list = demo().rest(Some("demo"), ("GET", PATH), &Value::Null).await;
    assert!(!list.body.to_string().contains(&id), "{list:?}");
}

#[tokio::test]
async fn a_token_has_the_expiry_that_it_was_given() {
    let tomorrow = "select to_char(at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), \
        extract(epoch from at)::bigint \
        from (select date_trunc('second', now()) + interval '1 day' as at) as tomorrow";
    let control = demo().control().await;
    let row = control.query_one(tomorrow, &[]).await.unwrap();
    let (text, seconds): (String, i64) = (row.get(0), row.get(1));
    let body = json!({"name": "until tomorrow", "expires_at": text});
    let (token, id) = token_of("alice", body).await;
    assert_eq!(introspected(&token).await["exp"], seconds);
    let own = demo().token("alice").await;
    let list = call(demo(), &own, Method::GET, PATH, &Value::Null).await;
    let list = list.body.as_array().unwrap();
    let shown = list.iter().find(|one| one["id"] == *id).unwrap();
    assert_eq!(shown["expires_at"], text);
}

#[tokio::test]
async fn another_node_refuses_a_revoked_token_within_five_seconds_and_the_command_line_manages_them()
 {
    let operator = operator().await;
    let nodes = (Node::start(&operator).await, Node::start(&operator).await);
    let create = [
        "token", "create", "shop", "shop", "nightly", "--scopes", "sql,read",
    ];
    let made = operator.succeeds(&create, "");
    let token = made
        .lines()
        .find_map(|line| line.strip_prefix("token  "))
        .unwrap();
    let id = made
        .lines()
        .find_map(|line| line.strip_prefix("id     "))
        .unwrap();
    for node in [&nodes.0, &nodes.1] {
        assert_eq!(node.status(token).await, 200);
    }
    let query = "subscription { OrdersMessageAdded { id } }";
    let open = OpenConnections::of(&nodes.1, token, query).await;
    let list = operator.succeeds(&["token", "list", "shop"], "");
    assert!(
        list.contains("nightly") && list.contains("read sql"),
        "{list}"
    );
    assert!(!list.contains(token), "{list}");
    operator.succeeds(&["token", "revoke", "shop", id], "");
    let since = std::time::Instant::now();
    for node in [&nodes.0, &nodes.1] {
        eventually("the token is refused", || async {
            node.status(token).await == 401
        })
        .await;
    }
    open.are_refused().await;
    assert!(since.elapsed().as_secs_f64() < 5.0, "{:?}", since.elapsed());
    assert!(
        !operator
            .succeeds(&["token", "list", "shop"], "")
            .contains("nightly")
    );
    check_refused_commands(&operator, id);
}

/// Checks which commands about tokens fail, and why. `id` is that of a revoked token.
fn check_refused_commands(operator: &Operator, id: &str) {
    let (_, reported) = operator.fails(&["token", "revoke", "shop", id], "");
    assert!(reported.contains("there is no token"), "{reported}");
    for (scopes, expected) in [
        ("read,root", "--scopes root: "),
        ("", "one scope or more"),
        ("openid", "one scope or more"),
    ] {
        let wrong = ["token", "create", "shop", "shop", "x", "--scopes", scopes];
        let (_, reported) = operator.fails(&wrong, "");
        assert!(reported.contains(expected), "{scopes}: {reported}");
    }
    let guest = [
        "user",
        "create",
        "shop",
        "guest",
        "--default",
        "--no-password",
    ];
    operator.succeeds(&guest, "");
    let (_, reported) = operator.fails(&["token", "create", "shop", "guest", "x"], "");
    assert!(reported.contains("the default user"), "{reported}");
}
