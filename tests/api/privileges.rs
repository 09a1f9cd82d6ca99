//! Tests `/api/v4/schemas/{s}/tables/{t}/privileges`: the privileges of sub-users on a table.

use serde_json::{Value, json};

use crate::service::{RestResponse, Service, demo};

/// Creates a schema for one test, with a table and a sub-user without privileges.
async fn fixture(name: &str) -> (&'static Service, String) {
    let demo = demo();
    let body = json!({"name": name, "password": "password-1"});
    let made = demo
        .rest(Some("demo"), ("POST", "/api/v4/users"), &body)
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    for q in [
        format!("create schema p_{name}"),
        format!("create table p_{name}.t (id serial primary key, a int, b int)"),
        format!("create table p_{name}.other (id int)"),
    ] {
        demo.rows("demo", &q, json!({})).await;
    }
    (
        demo,
        format!("/api/v4/schemas/p_{name}/tables/t/privileges"),
    )
}

async fn owner(method: &str, path: &str, body: Value) -> RestResponse {
    demo().rest(Some("demo"), (method, path), &body).await
}

async fn set(path: &str, user: &str, privilege: &str) -> RestResponse {
    owner(
        "PATCH",
        path,
        json!({"subuser": user, "privilege": privilege}),
    )
    .await
}

async fn privileges_of(path: &str, user: &str) -> Value {
    let shown = owner("GET", path, Value::Null).await;
    assert_eq!(shown.status, 200, "{shown:?}");
    let list = shown.body.as_array().unwrap();
    list.iter()
        .find(|entry| entry["subuser"] == user)
        .unwrap()
        .clone()
}

async fn attempt(user: &str, q: String) -> u16 {
    let body = json!({
        "grant_type": "password", "username": user, "password": "password-1",
        "database": "demo", "client_id": "demo-app",
    });
    let tokens = demo()
        .rest_with(None, ("POST", "/api/v4/oauth"), &body)
        .await;
    let token = tokens.body["access_token"].as_str();
    let sql = ("POST", "/api/v4/sql");
    demo().rest_with(token, sql, &json!({"q": q})).await.status
}

#[tokio::test]
async fn each_word_is_granted_and_revoked_in_postgresql() {
    let (_, path) = fixture("pia").await;
    let select = || attempt("pia", "select * from p_pia.t".to_owned());
    let insert = || attempt("pia", "insert into p_pia.t (a) values (1)".to_owned());
    assert_eq!(
        privileges_of(&path, "pia").await.to_string(),
        r#"{"subuser":"pia","privilege":"none","privileges":[],"columns":{},"usage":false}"#
    );
    assert_eq!(select().await, 403);

    let response = set(&path, "pia", "read").await;
    assert_eq!(
        (response.status, &response.location),
        (303, &path),
        "{response:?}"
    );
    assert_eq!(response.body, json!([{"_links": {"self": path}}]));
    let shown = privileges_of(&path, "pia").await;
    assert_eq!(shown["privilege"], "read");
    assert_eq!(
        (&shown["privileges"], &shown["usage"]),
        (&json!(["SELECT"]), &json!(true))
    );
    assert_eq!((select().await, insert().await), (200, 403));
    // The user has also got USAGE on the schema, but nothing on another table in it.
    assert_eq!(
        attempt("pia", "select * from p_pia.other".to_owned()).await,
        403
    );

    // `write` includes the sequence of the column's default.
    assert_eq!(set(&path, "pia", "write").await.status, 303);
    assert_eq!(insert().await, 200);
    assert_eq!(
        attempt("pia", "update p_pia.t set a = 2".to_owned()).await,
        200
    );
    assert_eq!(attempt("pia", "delete from p_pia.t".to_owned()).await, 200);
    assert_eq!(attempt("pia", "truncate p_pia.t".to_owned()).await, 403);
    let shown = privileges_of(&path, "pia").await;
    assert_eq!(shown["privilege"], "write");
    assert_eq!(
        shown["privileges"],
        json!(["SELECT", "INSERT", "UPDATE", "DELETE"])
    );

    assert_eq!(set(&path, "pia", "read").await.status, 303);
    assert_eq!((select().await, insert().await), (200, 403));
    let next = "select nextval('p_pia.t_id_seq')".to_owned();
    assert_eq!(attempt("pia", next).await, 403);
    assert_eq!(set(&path, "pia", "none").await.status, 303);
    assert_eq!(select().await, 403);
    assert_eq!(privileges_of(&path, "pia").await["privilege"], "none");
}

#[tokio::test]
async fn privileges_are_shown_as_postgresql_reports_them_for_any_grantor() {
    let (demo, path) = fixture("quin").await;
    let shown = |q: &'static str| {
        let path = path.clone();
        async move {
            demo.rows("demo", q, json!({})).await;
            privileges_of(&path, "quin").await
        }
    };
    demo.rows(
        "demo",
        "grant usage on schema p_quin to \"demo/quin\"",
        json!({}),
    )
    .await;
    let columns = shown("grant select (a), update (a, b) on p_quin.t to \"demo/quin\"").await;
    assert_eq!(columns["privilege"], "other");
    assert_eq!(
        columns["columns"],
        json!({"SELECT": ["a"], "UPDATE": ["a", "b"]})
    );
    // Revoking from the table revokes from its columns too.
    assert_eq!(set(&path, "quin", "none").await.status, 303);
    assert_eq!(privileges_of(&path, "quin").await["columns"], json!({}));
    let more = shown("grant select, trigger on p_quin.t to \"demo/quin\"").await;
    assert_eq!(more["privilege"], "other");
    assert_eq!(more["privileges"], json!(["SELECT", "TRIGGER"]));

    // A privilege of PUBLIC cannot be revoked from one role, and nothing is changed.
    let all = shown("grant select on p_quin.t to public").await;
    assert_eq!(all["privileges"], json!(["SELECT", "TRIGGER"]));
    let refused = set(&path, "quin", "none").await;
    let (status, code, message) = refused.error();
    assert_eq!((status, code), (409, "CONFLICT"));
    assert!(message.contains("SELECT through PUBLIC"), "{message}");
    assert_eq!(
        privileges_of(&path, "quin").await["privileges"],
        json!(["SELECT", "TRIGGER"])
    );
    // Privileges that the user has by a group are reported too.
    let group = json!({"user_group": "p_club"});
    owner("PATCH", "/api/v4/users/quin", group).await;
    shown("revoke select on p_quin.t from public").await;
    let club = shown("grant insert on p_quin.t to \"demo/group/p_club\"").await;
    assert_eq!(club["privileges"], json!(["SELECT", "INSERT", "TRIGGER"]));
    let refused = set(&path, "quin", "read").await;
    assert!(
        refused
            .error()
            .2
            .contains("INSERT through demo/group/p_club"),
        "{refused:?}"
    );
}

#[tokio::test]
async fn the_objects_owner_grants_or_who_holds_the_grant_option() {
    let (demo, path) = fixture("rosa").await;
    fixture("sven").await;
    let admin = demo.admin().await;
    // A sub-user owns the table in the owner's schema.
    admin
        .batch_execute(
            "grant usage on schema p_rosa to \"demo/sven\"; \
                        alter table p_rosa.t owner to \"demo/sven\"",
        )
        .await
        .unwrap();
    assert_eq!(set(&path, "rosa", "write").await.status, 303);
    let read = || attempt("rosa", "insert into p_rosa.t (a) values (1)".to_owned());
    assert_eq!(read().await, 200);
    let granted = "select distinct grantor::text as g from information_schema.role_table_grants \
                   where table_schema = 'p_rosa' and grantee = 'demo/rosa'";
    let by = admin.query_one(granted, &[]).await.unwrap();
    assert_eq!(by.get::<_, String>(0), "demo/sven");
    let own = set(&path, "sven", "none").await;
    assert_eq!(own.error().0, 409, "{own:?}");
    assert_eq!(set(&path, "rosa", "none").await.status, 303);

    // The table belongs to the cluster's administrator, so the tenant's owner may not grant.
    admin
        .batch_execute("alter table p_rosa.t owner to current_user")
        .await
        .unwrap();
    let refused = set(&path, "rosa", "read").await;
    let (status, code, message) = refused.error();
    assert_eq!((status, code), (409, "CONFLICT"), "{message}");
    let administrator = admin
        .query_one("select current_user::text", &[])
        .await
        .unwrap();
    let administrator: String = administrator.get(0);
    assert!(
        message.contains(&format!("{administrator} owns it")),
        "{message}"
    );
    // A role with the grant option may grant, but only what it holds itself.
    admin
        .batch_execute("grant select on p_rosa.t to \"demo/sven\" with grant option")
        .await
        .unwrap();
    assert_eq!(set(&path, "rosa", "read").await.status, 303);
    assert_eq!(privileges_of(&path, "rosa").await["privilege"], "read");
    assert_eq!(set(&path, "rosa", "write").await.error().0, 409);
    assert_eq!(set(&path, "rosa", "none").await.status, 303);
    assert_eq!(privileges_of(&path, "rosa").await["privilege"], "none");
    // Only the administrator can revoke a privilege that it has granted itself.
    admin
        .batch_execute("grant select on p_rosa.t to \"demo/rosa\"")
        .await
        .unwrap();
    let refused = set(&path, "rosa", "none").await;
    assert!(
        refused
            .error()
            .2
            .contains(&format!("SELECT from {administrator}")),
        "{refused:?}"
    );
}

#[tokio::test]
async fn names_are_quoted_wherever_they_stand() {
    let demo = demo();
    for q in [
        "create schema \"p \"\"x;/ :y\"",
        "create table \"p \"\"x;/ :y\".\"drop table t;--\" (id int)",
    ] {
        demo.rows("demo", q, json!({})).await;
    }
    let path = "/api/v4/schemas/p%20%22x%3B%2F%20%3Ay/tables/drop%20table%20t%3B--/privileges";
    let response = set(path, "alice", "write").await;
    assert_eq!(
        (response.status, response.location.as_str()),
        (303, path),
        "{response:?}"
    );
    assert_eq!(privileges_of(path, "alice").await["privilege"], "write");
}

#[tokio::test]
async fn several_are_set_in_order_and_wrong_ones_are_named() {
    let (_, path) = fixture("uwe").await;
    let body = json!([
        {"subuser": "uwe", "privilege": "write"}, {"subuser": "guest", "privilege": "read"},
    ]);
    assert_eq!(owner("PATCH", &path, body).await.status, 303);
    assert_eq!(privileges_of(&path, "uwe").await["privilege"], "write");
    assert_eq!(privileges_of(&path, "guest").await["privilege"], "read");
    let shown = owner("GET", &path, Value::Null).await;
    let owner_is_shown = shown
        .body
        .as_array()
        .unwrap()
        .iter()
        .any(|e| e["subuser"] == "demo");
    assert!(!owner_is_shown, "{shown:?}");
    for (body, expected) in [
        (json!({"subuser": "uwe"}), "`privilege`: missing"),
        (
            json!({"subuser": "uwe", "privilege": "all"}),
            "`privilege`: expected none, read or write",
        ),
        (
            json!({"subuser": "nobody", "privilege": "read"}),
            "`subuser`: there is no such sub-user",
        ),
        (
            json!({"subuser": "demo", "privilege": "none"}),
            "`subuser`: there is no such sub-user",
        ),
        (
            json!({"subuser": "uwe", "privilege": "none", "x": 1}),
            "`x`: unknown member; known are",
        ),
        (
            json!([{"subuser": "uwe", "privilege": "none"}, {}]),
            "[1]: `subuser`: missing",
        ),
    ] {
        let refused = owner("PATCH", &path, body).await;
        let (status, code, message) = refused.error();
        assert_eq!((status, code), (400, "INPUT_VALIDATION_ERROR"), "{message}");
        assert!(message.starts_with(expected), "{message}");
    }
    assert_eq!(
        privileges_of(&path, "uwe").await["privilege"],
        "write",
        "nothing was done by halves"
    );
    let missing = path.replace("/t/", "/nothing/");
    assert_eq!(owner("GET", &missing, Value::Null).await.error().0, 404);
    assert_eq!(set(&missing, "uwe", "read").await.error().0, 404);
    for (user, status) in [(Some("alice"), 403), (None, 401)] {
        for method in ["GET", "PATCH"] {
            let refused = demo().rest(user, (method, &path), &json!({})).await;
            assert_eq!(refused.error().0, status);
        }
    }
    let posted = owner("POST", &path, json!({})).await;
    assert_eq!(
        (posted.status, posted.allow.as_str()),
        (405, "GET, HEAD, PATCH, OPTIONS")
    );
}
