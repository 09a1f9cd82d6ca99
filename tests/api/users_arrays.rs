//! Arrays of users in `POST /api/v4/users` (docs/API.md, "Users" and "Members"): all are created or
//! none, an error names the first user that is refused, and each gets its own password.

use serde_json::{Value, json};

use crate::members::{USERS, member};
use crate::service::demo;
use crate::users::{owner, sign_in};

fn user(name: &str) -> Value {
    json!({"name": name, "password": format!("{name}-password"), "user_group": "uarray"})
}

fn with_password(mut user: Value, password: &str) -> Value {
    user["password"] = json!(password);
    user
}

/// How many users and roles have a name that begins with `uarray-`.
async fn created() -> (usize, i64) {
    let users = owner(
        "GET",
        &format!("{USERS}?after=uarray&limit=100"),
        Value::Null,
    )
    .await;
    let users = users.body.as_array().unwrap().clone();
    let names = users.iter().filter_map(|user| user["name"].as_str());
    let roles = "select count(*) from pg_roles where rolname like 'demo/uarray-%'";
    let roles = demo().admin().await.query_one(roles, &[]).await.unwrap();
    (
        names.filter(|name| name.starts_with("uarray-")).count(),
        roles.get(0),
    )
}

#[tokio::test]
async fn an_array_is_created_all_or_none() {
    let (role, other) = (|| user("uarray-a"), || user("uarray-b"));
    let (one, two) = (
        || member("uarray-c", "uarray"),
        || member("uarray-d", "uarray"),
    );
    let short = |user: Value| with_password(user, "short");
    let taken = || with_password(user("alice"), "uarray-password");
    for (list, status, refused) in [
        (json!([one(), role(), short(two())]), 400, "[2]: `password`"),
        (
            json!([one(), short(role()), short(two())]),
            400,
            "[1]: `password`",
        ),
        (
            json!([role(), short(one()), taken()]),
            400,
            "[1]: `password`",
        ),
        (json!([one(), role(), taken(), other()]), 409, "[2]: "),
        (json!([one(), role(), two(), one()]), 409, "[3]: "),
    ] {
        let response = owner("POST", USERS, list.clone()).await;
        assert_eq!(response.error().0, status, "{list}: {response:?}");
        assert!(
            response.error().2.starts_with(refused),
            "{list}: {response:?}"
        );
        assert_eq!(created().await, (0, 0), "{list}");
    }
    let made = owner("POST", USERS, json!([one(), role(), two(), other()])).await;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(
        made.location,
        "/api/v4/users/uarray-c,uarray-a,uarray-d,uarray-b"
    );
    for name in ["uarray-a", "uarray-b", "uarray-c", "uarray-d"] {
        let own = sign_in(demo(), name, &format!("{name}-password")).await;
        assert_eq!(own.status, 200, "{own:?}");
    }
    let others = sign_in(demo(), "uarray-c", "uarray-d-password").await;
    assert_eq!(others.status, 400, "{others:?}");
}
