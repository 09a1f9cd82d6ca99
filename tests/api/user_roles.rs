//! Tests users in PostgreSQL: groups, ownership, the default user.

use serde_json::{Value, json};

use crate::service::{Service, demo, demo_folder};
use crate::users::{SQL, owner, sign_in, token};

#[tokio::test]
async fn a_group_is_a_role_whose_rights_its_members_have() {
    for name in ["fay", "gus"] {
        let body = json!({"name": name, "password": "password-1"});
        assert_eq!(owner("POST", "/api/v4/users", body).await.status, 201);
    }
    assert_eq!(
        owner(
            "PATCH",
            "/api/v4/users/fay",
            json!({"user_group": "editors"})
        )
        .await
        .status,
        303
    );
    let admin = demo().rows("demo", "create table u_drafts (id int)", json!({}));
    admin.await;
    let grant = "grant select on u_drafts to \"demo/group/editors\"";
    demo().rows("demo", grant, json!({})).await;
    let read = json!({"q": "select count(*) from u_drafts"});
    let (fay, gus) = (
        token(demo(), "fay", "password-1").await,
        token(demo(), "gus", "password-1").await,
    );
    assert_eq!(demo().rest_with(Some(&fay), SQL, &read).await.status, 200);
    assert_eq!(demo().rest_with(Some(&gus), SQL, &read).await.status, 403);
    // The membership changes at once, even for tokens that exist.
    for (name, group) in [("gus", json!("editors")), ("fay", json!("others"))] {
        let path = format!("/api/v4/users/{name}");
        assert_eq!(
            owner("PATCH", &path, json!({"user_group": group}))
                .await
                .status,
            303
        );
    }
    assert_eq!(demo().rest_with(Some(&fay), SQL, &read).await.status, 403);
    assert_eq!(demo().rest_with(Some(&gus), SQL, &read).await.status, 200);
    for name in ["a b", "", "x/y", &"g".repeat(33)] {
        let refused = owner("PATCH", "/api/v4/users/gus", json!({"user_group": name})).await;
        let (status, _, message) = refused.error();
        assert!(
            status == 400 && message.starts_with("`user_group`: expected 1 to 32"),
            "{message}"
        );
    }
    assert_eq!(
        owner("DELETE", "/api/v4/users/fay,gus", Value::Null)
            .await
            .status,
        204
    );
}

#[tokio::test]
async fn record_and_role_agree_after_changes_of_the_group_at_once() {
    let body = json!({"name": "ivo", "password": "password-1"});
    assert_eq!(owner("POST", "/api/v4/users", body).await.status, 201);
    let control = demo().control().await;
    for round in 0..4 {
        let changes = (0..6).map(|n| {
            // Two users get the same new group at once. Its role is created once.
            let group = json!({"user_group": format!("r{round}-{}", n / 2)});
            tokio::spawn(owner("PATCH", "/api/v4/users/ivo", group))
        });
        for change in changes.collect::<Vec<_>>() {
            let response = change.await.unwrap();
            assert_eq!(response.status, 303, "{response:?}");
        }
        let shown = owner("GET", "/api/v4/users/ivo", Value::Null).await;
        let groups = "select g.rolname::text from pg_auth_members m \
                      join pg_roles g on g.oid = m.roleid join pg_roles r on r.oid = m.member \
                      where r.rolname = 'demo/ivo' and g.rolname like 'demo/group/%'";
        let rows = control.query(groups, &[]).await.unwrap();
        let groups: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let record = shown.body["user_group"].as_str().unwrap();
        assert_eq!(groups, [format!("demo/group/{record}")], "round {round}");
    }
    let gone = owner("DELETE", "/api/v4/users/ivo", Value::Null).await;
    assert_eq!(gone.status, 204);
}

#[tokio::test]
async fn an_interrupted_change_of_the_group_is_completed_by_the_next_change() {
    let body = json!({"name": "jon", "password": "password-1", "user_group": "crew"});
    assert_eq!(owner("POST", "/api/v4/users", body).await.status, 201);
    let control = demo().control().await;
    let groups = async || {
        let groups = "select g.rolname::text from pg_auth_members m \
                      join pg_roles g on g.oid = m.roleid join pg_roles r on r.oid = m.member \
                      where r.rolname = 'demo/jon' and g.rolname like 'demo/group/%'";
        let rows = control.query(groups, &[]).await.unwrap();
        rows.iter().map(|row| row.get(0)).collect::<Vec<String>>()
    };
    // This state arises if the node stops after it has written the record and before it changes the
    // role.
    let record = "update tidegate.users set user_group = 'next' where name = 'jon'";
    assert_eq!(control.execute(record, &[]).await.unwrap(), 1);
    assert_eq!(groups().await, ["demo/group/crew"]);
    let again = json!({"user_group": "next"});
    let mended = owner("PATCH", "/api/v4/users/jon", again).await;
    assert_eq!(mended.status, 303, "{mended:?}");
    assert_eq!(groups().await, ["demo/group/next"]);
    let gone = owner("DELETE", "/api/v4/users/jon", Value::Null).await;
    assert_eq!(gone.status, 204);
}

#[tokio::test]
async fn a_user_of_several_groups_has_the_rights_of_all() {
    let body = json!({
        "name": "moe", "password": "password-1", "user_group": ["cooks", "waiters"],
        "properties": "{\"desk\": 7}",
    });
    assert_eq!(owner("POST", "/api/v4/users", body).await.status, 201);
    let path = "/api/v4/users/moe";
    let shown = async || owner("GET", path, Value::Null).await.body;
    let created = shown().await;
    assert_eq!(created["user_group"], json!(["cooks", "waiters"]));
    assert_eq!(created["properties"], json!({"desk": 7}));
    let tables = "create table u_menu (id int)";
    demo().rows("demo", tables, json!({})).await;
    let grant = "grant select on u_menu to \"demo/group/staff\"";
    let admin = demo().admin().await;
    let nested =
        "create role \"demo/group/staff\"; grant \"demo/group/staff\" to \"demo/group/waiters\"";
    admin.batch_execute(nested).await.unwrap();
    demo().rows("demo", grant, json!({})).await;
    let moe = token(demo(), "moe", "password-1").await;
    let read = json!({"q": "select count(*) from u_menu"});
    let may = async || demo().rest_with(Some(&moe), SQL, &read).await.status;
    assert_eq!(may().await, 200);
    for (groups, expected, status) in [
        (json!(["cooks"]), json!("cooks"), 403),
        (
            json!(["waiters", "cooks"]),
            json!(["waiters", "cooks"]),
            200,
        ),
        (json!([]), Value::Null, 403),
        (json!("waiters"), json!("waiters"), 200),
        (Value::Null, Value::Null, 403),
    ] {
        let changed = owner("PATCH", path, json!({"user_group": groups})).await;
        assert_eq!(changed.status, 303, "{changed:?}");
        assert_eq!(shown().await["user_group"], expected);
        assert_eq!(may().await, status, "{groups}");
    }
    for (member, value, message) in [
        (
            "user_group",
            json!(["a", "a"]),
            "at most 32 different groups",
        ),
        ("user_group", json!(["a", 1]), "[1]`: expected a string"),
        ("user_group", json!(["a,b"]), "expected 1 to 32 characters"),
        ("properties", json!("[]"), "a string that is a JSON object"),
        ("properties", json!("{"), "a string that is a JSON object"),
    ] {
        let refused = owner("PATCH", path, json!({member: value})).await;
        let (status, _, reported) = refused.error();
        assert!(status == 400 && reported.contains(message), "{reported}");
    }
    let gone = owner("DELETE", path, Value::Null).await;
    assert_eq!(gone.status, 204);
    let clean = "drop table u_menu; drop role \"demo/group/staff\"";
    let admin = demo().admin().await;
    admin.batch_execute(clean).await.unwrap();
}

#[tokio::test]
async fn a_change_that_is_refused_leaves_the_group_as_it_was() {
    let body = json!({"name": "kim", "password": "password-1", "user_group": "crew"});
    assert_eq!(owner("POST", "/api/v4/users", body).await.status, 201);
    let control = demo().control().await;
    for (more, status) in [
        (json!({"default_user": true}), 409),
        (json!({"password": "short"}), 400),
        (json!({"email": "nobody"}), 400),
    ] {
        for group in [json!("other"), Value::Null] {
            let mut change = more.clone();
            change["user_group"] = group;
            let refused = owner("PATCH", "/api/v4/users/kim", change).await;
            assert_eq!(refused.error().0, status, "{refused:?}");
            let groups = "select array_agg(g.rolname::text) from pg_auth_members m \
                          join pg_roles g on g.oid = m.roleid join pg_roles r on r.oid = m.member \
                          where r.rolname = 'demo/kim' and g.rolname like 'demo/group/%'";
            let row = control.query_one(groups, &[]).await.unwrap();
            assert_eq!(row.get::<_, Vec<String>>(0), ["demo/group/crew"], "{more}");
            let shown = owner("GET", "/api/v4/users/kim", Value::Null).await;
            assert_eq!(shown.body["user_group"], "crew");
        }
    }
    let gone = owner("DELETE", "/api/v4/users/kim", Value::Null).await;
    assert_eq!(gone.status, 204);
}

#[tokio::test]
async fn an_existing_role_is_not_taken_over() {
    let admin = demo().admin().await;
    admin
        .batch_execute("create role \"demo/lea\" login password 'of-somebody-else'")
        .await
        .unwrap();
    let secret = "select rolpassword from pg_authid where rolname = 'demo/lea'";
    let before: String = admin.query_one(secret, &[]).await.unwrap().get(0);
    let body = json!({"name": "lea", "password": "password-1"});
    let refused = owner("POST", "/api/v4/users", body.clone()).await;
    let (status, code, message) = refused.error();
    assert_eq!((status, code), (409, "ALREADY_EXISTS"), "{message}");
    assert!(message.contains("Tidegate did not create"), "{message}");
    let shown = owner("GET", "/api/v4/users/lea", Value::Null).await;
    assert_eq!(shown.status, 404, "no record is left behind");
    assert_eq!(sign_in(demo(), "lea", "password-1").await.status, 400);
    let after: String = admin.query_one(secret, &[]).await.unwrap().get(0);
    assert_eq!(before, after);
    admin.batch_execute("drop role \"demo/lea\"").await.unwrap();
    assert_eq!(owner("POST", "/api/v4/users", body).await.status, 201);
    let gone = owner("DELETE", "/api/v4/users/lea", Value::Null).await;
    assert_eq!(gone.status, 204);
}

#[tokio::test]
async fn a_user_with_objects_is_dropped_only_if_they_are_reassigned() {
    let body = json!({"name": "hal", "password": "password-1"});
    owner("POST", "/api/v4/users", body).await;
    demo().rows("demo", "create schema u_hal", json!({})).await;
    demo()
        .rows(
            "demo",
            "grant all on schema u_hal to \"demo/hal\"",
            json!({}),
        )
        .await;
    let hal = token(demo(), "hal", "password-1").await;
    let create = json!({"q": "create table u_hal.mine (id int)"});
    assert_eq!(demo().rest_with(Some(&hal), SQL, &create).await.status, 200);
    let refused = owner("DELETE", "/api/v4/users/hal", Value::Null).await;
    let (status, code, message) = refused.error();
    assert_eq!((status, code), (409, "CONFLICT"));
    assert!(
        message.contains("1 objects") && message.contains("u_hal.mine"),
        "{message}"
    );
    assert_eq!(sign_in(demo(), "hal", "password-1").await.status, 200);
    let wrong = owner("DELETE", "/api/v4/users/hal?reassign=maybe", Value::Null).await;
    assert_eq!(wrong.error().2, "`reassign`: expected true or false");
    let unknown = owner("DELETE", "/api/v4/users/hal?force=true", Value::Null).await;
    assert_eq!(unknown.error().0, 400);
    let dropped = owner("DELETE", "/api/v4/users/hal?reassign=true", Value::Null).await;
    assert_eq!(dropped.status, 204, "{dropped:?}");
    let whose = "select tableowner::text as o from pg_tables where schemaname = 'u_hal'";
    let whose = demo().rows("demo", whose, json!({})).await;
    assert_eq!(whose["data"], json!([{"o": "demo"}]));
}

#[tokio::test]
async fn objects_of_a_dropped_user_do_not_run_with_the_owners_rights() {
    let body = json!({"name": "oda", "password": "password-1"});
    assert_eq!(owner("POST", "/api/v4/users", body).await.status, 201);
    demo().rows("demo", "create schema u_oda", json!({})).await;
    let grant = "grant all on schema u_oda to \"demo/oda\"";
    demo().rows("demo", grant, json!({})).await;
    let oda = token(demo(), "oda", "password-1").await;
    let create = "create function u_oda.pwn() returns text language sql security definer \
                  as 'select current_user::text'";
    let create = json!({"q": create});
    assert_eq!(demo().rest_with(Some(&oda), SQL, &create).await.status, 200);
    let drop = || owner("DELETE", "/api/v4/users/oda?reassign=true", Value::Null);
    let refused = drop().await;
    let (status, code, message) = refused.error();
    assert_eq!((status, code), (409, "CONFLICT"));
    assert!(
        message.contains("function u_oda.pwn() is SECURITY DEFINER"),
        "{message}"
    );
    let table = json!({"q": "create table u_oda.kept (id int)"});
    let oda = token(demo(), "oda", "password-1").await;
    assert_eq!(demo().rest_with(Some(&oda), SQL, &table).await.status, 200);
    demo()
        .rows("demo", "drop function u_oda.pwn()", json!({}))
        .await;
    assert_eq!(drop().await.status, 204);
    let whose = "select relowner::regrole::text as o from pg_class where relname = 'kept'";
    let whose = demo().rows("demo", whose, json!({})).await;
    assert_eq!(whose["data"], json!([{"o": "demo"}]));
}

/// The test has a demo of its own, because it changes the default user.
#[tokio::test]
async fn a_new_default_user_runs_anonymous_requests_at_once() {
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    let owner = demo.token("demo").await;
    let call = |method: &'static str, path: &'static str, body: Value| {
        let (demo, owner) = (&demo, owner.as_str());
        async move { demo.rest_with(Some(owner), (method, path), &body).await }
    };
    let me = || async {
        let ask = json!({"q": "select current_user::text as me, current_setting('work_mem') as m, \
                          current_setting('temp_file_limit') as limit"});
        let response = demo.rest_with(None, SQL, &ask).await;
        (response.status, response.body["data"][0].clone())
    };
    let new = json!({"name": "visitor", "password": "visitor-1", "default_user": true});
    let second = call("POST", "/api/v4/users", new.clone()).await;
    assert_eq!(
        (second.error().0, second.error().1),
        (409, "ALREADY_EXISTS")
    );

    let (_, before) = me().await;
    assert_eq!(before["me"], "demo/guest");
    assert_eq!(before["limit"], "1GB");
    let ceases = call(
        "PATCH",
        "/api/v4/users/guest",
        json!({"default_user": false}),
    )
    .await;
    assert_eq!(ceases.status, 303, "{ceases:?}");
    assert_eq!(me().await.0, 401);
    let plain = json!({"name": "visitor", "password": "visitor-1"});
    assert_eq!(call("POST", "/api/v4/users", plain).await.status, 201);

    // The user has made a setting while it was an ordinary user. Anonymous callers must not inherit
    // the setting.
    let admin = demo.admin().await;
    admin
        .batch_execute("alter role \"demo/visitor\" set work_mem = '77MB'")
        .await
        .unwrap();
    let visitor = token(&demo, "visitor", "visitor-1").await;
    let ask = json!({"q": "select current_setting('work_mem') as m"});
    let own = demo.rest_with(Some(&visitor), SQL, &ask).await;
    assert_eq!(own.body["data"], json!([{"m": "77MB"}]));
    let becomes = call(
        "PATCH",
        "/api/v4/users/visitor",
        json!({"default_user": true}),
    )
    .await;
    assert_eq!(becomes.status, 303);
    let (status, after) = me().await;
    assert_eq!((status, &after["me"]), (200, &json!("demo/visitor")));
    let bounded = "select array_agg(r.rolname || ' ' || s.setting) from pg_db_role_setting c \
                   join pg_roles r on r.oid = c.setrole, unnest(c.setconfig) as s (setting) \
                   where s.setting like 'temp_file_limit=%'";
    let bounded = admin.query_one(bounded, &[]).await.unwrap();
    assert_eq!(
        bounded.get::<_, Vec<String>>(0),
        ["demo/visitor temp_file_limit=1GB"],
        "the former default user's is taken off"
    );
    assert_eq!(after["limit"], "1GB");
    assert_eq!(
        after["m"], before["m"],
        "a connection without the pins was lent"
    );
    assert_eq!(demo.rest_with(Some(&visitor), SQL, &ask).await.status, 401);
}
