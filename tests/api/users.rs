//! Tests `/api/v4/users` (API.md, "Users"): the users of a tenant, their groups and their roles.

use serde_json::{Value, json};

use crate::service::{RestResponse, Service, demo};

pub(crate) const SQL: (&str, &str) = ("POST", "/api/v4/sql");

pub(crate) async fn owner(method: &str, path: &str, body: Value) -> RestResponse {
    demo().rest(Some("demo"), (method, path), &body).await
}

pub(crate) async fn sign_in(service: &Service, user: &str, password: &str) -> RestResponse {
    let body = json!({
        "grant_type": "password", "username": user, "password": password,
        "database": "demo", "client_id": "demo-app",
    });
    let path = ("POST", "/api/v4/oauth");
    service.rest_with(None, path, &body).await
}

pub(crate) async fn token(service: &Service, user: &str, password: &str) -> String {
    let response = sign_in(service, user, password).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.body["access_token"].as_str().unwrap().to_owned()
}

/// The claims of a token.
pub(crate) fn claims(token: &str) -> Value {
    use base64::Engine as _;
    let payload = token.split('.').nth(1).unwrap();
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload);
    serde_json::from_slice(&bytes.unwrap()).unwrap()
}

#[tokio::test]
async fn a_user_is_created_signs_in_and_is_dropped() {
    let body = json!({
        "name": "bea", "email": "bea@example.com", "password": "bea-12345",
        "properties": {"desk": 7}, "user_group": "sales",
    });
    let made = owner("POST", "/api/v4/users", body).await;
    assert_eq!(
        (made.status, made.location.as_str()),
        (201, "/api/v4/users/bea"),
        "{made:?}"
    );
    assert_eq!(
        made.body.to_string(),
        r#"[{"_links":{"self":"/api/v4/users/bea"}}]"#
    );

    let shown = owner("GET", "/api/v4/users/bea", Value::Null).await;
    assert_eq!(shown.status, 200);
    assert_eq!(
        shown.body.to_string(),
        r#"{"name":"bea","email":"bea@example.com","properties":{"desk":7},"user_group":"sales","default_user":false,"kind":"role","id":"bea","disabled":false}"#
    );
    let token = token(demo(), "bea", "bea-12345").await;
    let claims = claims(&token);
    assert_eq!(claims["properties"], json!({"desk": 7}));
    assert_eq!(claims["email"], "bea@example.com");
    let ask = json!({"q": "select current_user::text as me"});
    let me = demo().rest_with(Some(&token), SQL, &ask).await;
    assert_eq!(me.body["data"], json!([{"me": "demo/bea"}]));

    let dropped = owner("DELETE", "/api/v4/users/bea", Value::Null).await;
    assert_eq!((dropped.status, dropped.body), (204, json!("")));
    // The session ends with its user, and the role is dropped.
    assert_eq!(demo().rest_with(Some(&token), SQL, &ask).await.status, 401);
    assert_eq!(
        owner("GET", "/api/v4/users/bea", Value::Null).await.status,
        404
    );
    let admin = demo().admin().await;
    let left = "select count(*) from pg_roles where rolname = 'demo/bea'";
    assert_eq!(
        admin.query_one(left, &[]).await.unwrap().get::<_, i64>(0),
        0
    );
    assert_eq!(sign_in(demo(), "bea", "bea-12345").await.status, 400);
}

#[tokio::test]
async fn several_are_made_shown_and_dropped_at_once() {
    let user = |name: &str| json!({"name": name, "password": "password-1"});
    let body = json!([user("c.1"), user("c+2@x")]);
    let made = owner("POST", "/api/v4/users", body).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.location, "/api/v4/users/c.1,c+2@x");
    let both = "/api/v4/users/c.1%2Cc+2@x";
    let shown = owner("GET", both, Value::Null).await;
    let names: Vec<_> = shown
        .body
        .as_array()
        .unwrap()
        .iter()
        .map(|u| &u["name"])
        .collect();
    assert_eq!(json!(names), json!(["c.1", "c+2@x"]));
    let all = owner("GET", "/api/v4/users/", Value::Null).await;
    let names: Vec<_> = all
        .body
        .as_array()
        .unwrap()
        .iter()
        .map(|u| &u["name"])
        .collect();
    for name in ["alice", "demo", "guest", "c.1"] {
        assert!(names.contains(&&json!(name)), "{names:?}");
    }
    // If a name is taken, the user before it is not created either.
    let refused = owner("POST", "/api/v4/users", json!([user("c.3"), user("alice")])).await;
    assert_eq!(
        (refused.error().0, refused.error().1),
        (409, "ALREADY_EXISTS")
    );
    assert!(refused.error().2.starts_with("[1]: "));
    assert_eq!(
        owner("GET", "/api/v4/users/c.3", Value::Null).await.status,
        404
    );
    assert_eq!(owner("DELETE", both, Value::Null).await.status, 204);
}

#[tokio::test]
async fn a_change_keeps_what_it_does_not_name() {
    let body = json!({
        "name": "dora", "email": "dora@example.com", "password": "dora-12345",
        "properties": {"a": 1}, "user_group": "dorm",
    });
    assert_eq!(owner("POST", "/api/v4/users", body).await.status, 201);
    let path = "/api/v4/users/dora";
    let mut expected = owner("GET", path, Value::Null).await.body;
    for (member, value) in [
        ("email", json!("d@example.com")),
        ("properties", json!({"b": [2, {"c": null}]})),
        ("user_group", json!("lounge")),
        ("email", Value::Null),
        ("properties", Value::Null),
        ("user_group", Value::Null),
    ] {
        let changed = owner("PATCH", path, json!({member: value})).await;
        assert_eq!(
            (changed.status, changed.location.as_str()),
            (303, path),
            "{changed:?}"
        );
        assert_eq!(changed.body, json!([{"_links": {"self": path}}]));
        expected[member] = value;
        assert_eq!(
            owner("GET", path, Value::Null).await.body,
            expected,
            "{member}"
        );
    }
    assert_eq!(sign_in(demo(), "dora", "dora-12345").await.status, 200);
    owner("DELETE", path, Value::Null).await;
}

#[tokio::test]
async fn a_new_password_ends_the_sessions() {
    let body = json!({"name": "emil", "password": "emil-12345"});
    owner("POST", "/api/v4/users", body).await;
    let old = token(demo(), "emil", "emil-12345").await;
    let path = "/api/v4/users/emil";
    assert_eq!(
        owner("PATCH", path, json!({"password": "emil-67890"}))
            .await
            .status,
        303
    );
    let ask = json!({"q": "select 1"});
    assert_eq!(demo().rest_with(Some(&old), SQL, &ask).await.status, 401);
    assert_eq!(sign_in(demo(), "emil", "emil-12345").await.status, 400);
    assert_eq!(sign_in(demo(), "emil", "emil-67890").await.status, 200);
    owner("DELETE", path, Value::Null).await;
}

#[tokio::test]
async fn a_sub_user_sees_and_changes_itself_only() {
    let body = json!({"name": "ida", "password": "ida-123456", "email": "ida@example.com"});
    owner("POST", "/api/v4/users", body).await;
    let ida = token(demo(), "ida", "ida-123456").await;
    let call = |method: &'static str, path: &'static str, body: Value| {
        let ida = ida.clone();
        async move { demo().rest_with(Some(&ida), (method, path), &body).await }
    };
    let itself = call("GET", "/api/v4/users/ida", Value::Null).await;
    assert_eq!((itself.status, &itself.body["name"]), (200, &json!("ida")));
    let list = call("GET", "/api/v4/users", Value::Null).await;
    assert_eq!(list.body, json!([itself.body]));
    let changed = call(
        "PATCH",
        "/api/v4/users/ida",
        json!({"email": "i@example.com"}),
    )
    .await;
    assert_eq!(changed.status, 303, "{changed:?}");
    // A sub-user may not see or change other users, existing or not, nor anything that determines
    // its own privileges.
    for (method, path, body) in [
        ("GET", "/api/v4/users/alice", Value::Null),
        ("GET", "/api/v4/users/nobody", Value::Null),
        ("GET", "/api/v4/users/ida,alice", Value::Null),
        (
            "PATCH",
            "/api/v4/users/alice",
            json!({"email": "x@example.com"}),
        ),
        (
            "PATCH",
            "/api/v4/users/demo",
            json!({"password": "taken-over-1"}),
        ),
        (
            "PATCH",
            "/api/v4/users/ida",
            json!({"user_group": "admins"}),
        ),
        (
            "PATCH",
            "/api/v4/users/ida",
            json!({"properties": {"admin": true}}),
        ),
        ("PATCH", "/api/v4/users/ida", json!({"default_user": true})),
        ("DELETE", "/api/v4/users/ida", Value::Null),
        ("DELETE", "/api/v4/users/alice", Value::Null),
        (
            "POST",
            "/api/v4/users",
            json!({"name": "x", "password": "password-1"}),
        ),
    ] {
        let refused = call(method, path, body).await;
        assert_eq!(
            (refused.error().0, refused.error().1),
            (403, "INSUFFICIENT_PRIVILEGES"),
            "{method} {path}"
        );
    }
    let changed = call(
        "PATCH",
        "/api/v4/users/ida",
        json!({"password": "ida-654321"}),
    )
    .await;
    assert_eq!(changed.status, 303);
    assert_eq!(sign_in(demo(), "ida", "ida-654321").await.status, 200);
    owner("DELETE", "/api/v4/users/ida", Value::Null).await;
    let stranger = demo()
        .rest(None, ("GET", "/api/v4/users"), &Value::Null)
        .await;
    assert_eq!(
        (stranger.error().0, stranger.error().1),
        (401, "MISSING_TOKEN")
    );
}

#[tokio::test]
async fn anonymous_callers_cannot_change_the_default_user() {
    let body = json!({"database": "demo", "client_id": "demo-app"});
    let path = ("POST", "/api/v4/oauth/guest");
    let guest = demo().rest_with(None, path, &body).await;
    let guest = guest.body["access_token"].as_str().map(str::to_owned);
    let change = ("PATCH", "/api/v4/users/guest");
    let refused = demo()
        .rest_with(guest.as_deref(), change, &json!({"password": "mine-12345"}))
        .await;
    assert_eq!(refused.error().0, 403);
    let itself = demo()
        .rest_with(
            guest.as_deref(),
            ("GET", "/api/v4/users/guest"),
            &Value::Null,
        )
        .await;
    assert_eq!(itself.body["default_user"], true);
}

#[tokio::test]
async fn changes_at_the_same_time_do_not_undo_one_another() {
    let path = "/api/v4/users/together";
    let owner = async |method, path, body: Value| {
        let response = demo().rest(Some("demo"), (method, path), &body).await;
        assert!(response.status < 400, "{response:?}");
        response
    };
    let new = json!({"name": "together", "password": "password1"});
    owner("POST", "/api/v4/users", new).await;
    for round in 0..5 {
        let email = format!("a{round}@example.org");
        tokio::join!(
            owner("PATCH", path, json!({"email": email})),
            owner("PATCH", path, json!({"properties": {"round": round}})),
        );
        let shown = owner("GET", path, Value::Null).await.body;
        assert_eq!(shown["email"], email);
        assert_eq!(shown["properties"], json!({"round": round}));
    }
}

/// PostgreSQL stores all privileges on a database as one value, of which each user's are a part.
#[tokio::test]
async fn parallel_creation_and_deletion_of_users_does_not_conflict() {
    let user = |n: u32| json!({"name": format!("crowd-{n}"), "password": "password-1"});
    let made = (0..12).map(|n| tokio::spawn(owner("POST", "/api/v4/users", user(n))));
    for made in made.collect::<Vec<_>>() {
        let made = made.await.unwrap();
        assert_eq!(made.status, 201, "{made:?}");
    }
    for schema in ["create schema crowd", "create table crowd.t (id int)"] {
        demo().rows("demo", schema, json!({})).await;
    }
    let allow = |n: u32| async move {
        let path = "/api/v4/schemas/crowd/tables/t/privileges";
        let read = json!({"subuser": format!("crowd-{n}"), "privilege": "read"});
        owner("PATCH", path, read).await
    };
    for allowed in (0..12).map(|n| tokio::spawn(allow(n))).collect::<Vec<_>>() {
        let allowed = allowed.await.unwrap();
        assert_eq!(allowed.status, 303, "{allowed:?}");
    }
    let drop = |n: u32| async move {
        let path = format!("/api/v4/users/crowd-{n}");
        owner("DELETE", &path, Value::Null).await
    };
    for dropped in (0..12).map(|n| tokio::spawn(drop(n))).collect::<Vec<_>>() {
        let dropped = dropped.await.unwrap();
        assert_eq!(dropped.status, 204, "{dropped:?}");
    }
}

#[tokio::test]
async fn of_several_users_all_go_or_none() {
    for name in ["gone", "going"] {
        let new = json!({"name": name, "password": "long-enough"});
        assert_eq!(owner("POST", "/api/v4/users", new).await.status, 201);
    }
    let admin = demo().admin().await;
    let own = "create table of_going (id int); alter table of_going owner to \"demo/going\"";
    admin.batch_execute(own).await.unwrap();
    for (names, status) in [
        ("gone,demo", 400),
        ("gone,nobody", 404),
        ("gone,going", 409),
    ] {
        let path = format!("/api/v4/users/{names}");
        let refused = owner("DELETE", &path, Value::Null).await;
        assert_eq!(refused.error().0, status, "{names}");
        let there = owner("GET", "/api/v4/users/gone", Value::Null).await;
        assert_eq!(there.status, 200, "{names}");
    }
    let path = "/api/v4/users/gone,going?reassign=true";
    assert_eq!(owner("DELETE", path, Value::Null).await.status, 204);
}
