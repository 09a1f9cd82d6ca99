//! Tests the role of each request, and that nothing of one role reaches another (API.md, "Who runs
//! a statement"; SECURITY.md).

use reqwest::Method;
use serde_json::{Value, json};

use crate::resource_metadata::challenge;
use crate::service::demo;

#[tokio::test]
async fn each_user_is_its_own_login_role() {
    for (user, role) in [
        (Some("demo"), "demo"),
        (Some("alice"), "demo/alice"),
        (None, "demo/guest"),
    ] {
        let body = json!({"q": "select current_user::text as c, session_user::text as s"});
        let response: Value = demo().sql(user, &body).await.json().await.unwrap();
        assert_eq!(
            response["data"],
            json!([{"c": role, "s": role}]),
            "{response}"
        );
    }
}

#[tokio::test]
async fn no_role_has_more_than_its_rights() {
    let q = "select rolsuper or rolcreatedb or rolcreaterole or rolreplication or rolbypassrls as strong \
             from pg_roles where rolname = current_user";
    for user in [Some("demo"), Some("alice"), None] {
        let response: Value = demo()
            .sql(user, &json!({"q": q}))
            .await
            .json()
            .await
            .unwrap();
        assert_eq!(response["data"], json!([{"strong": false}]), "{response}");
    }
}

#[tokio::test]
async fn row_level_security_holds() {
    demo()
        .rows(
            "alice",
            "insert into notes (body) values ('by alice')",
            json!({}),
        )
        .await;
    let own = demo()
        .rows("alice", "select distinct owner from notes", json!({}))
        .await;
    assert_eq!(own["data"], json!([{"owner": "demo/alice"}]));
    let guest: Value = demo()
        .sql(
            None,
            &json!({"q": "select * from notes where owner <> current_user"}),
        )
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(guest["data"], json!([]));
}

#[tokio::test]
async fn roles_cannot_be_switched() {
    // These attacks were reproduced. They use functions that a parser cannot analyse.
    for q in [
        "do $$ begin perform set_config('ro'||'le', 'demo', false); end $$",
        "do $$ begin execute 'set role demo'; end $$",
        "do $$ begin execute 'set session authorization demo'; end $$",
        "select set_config('role', 'demo', false)",
        "select set_config('session_authorization', 'demo', false)",
    ] {
        let (status, error) = demo().refusal("alice", &json!({"q": q})).await;
        assert!(matches!(status, 400 | 403), "{q}: {status} {error}");
        let who = demo()
            .rows("alice", "select current_user::text as c", json!({}))
            .await;
        assert_eq!(who["data"], json!([{"c": "demo/alice"}]), "{q}");
    }
}

#[tokio::test]
async fn a_security_definer_trigger_cannot_escape() {
    // These attacks were reproduced. They use a trigger of the owner's, and a trigger that fires at
    // COMMIT.
    let demo = demo();
    for q in [
        "drop table if exists i_trap",
        "create table i_trap (id int)",
        "create or replace function i_escape() returns trigger language plpgsql as \
         $$ begin perform set_config('role', 'none', true); perform set_config('role', 'demo/alice', true); return new; end $$",
        "create constraint trigger t after insert on i_trap deferrable initially deferred for each row execute function i_escape()",
    ] {
        demo.rows("demo", q, json!({})).await;
    }
    let (status, error) = demo
        .refusal("demo", &json!({"q": "insert into i_trap values (1)"}))
        .await;
    assert!(matches!(status, 400 | 403), "{error}");
}

#[tokio::test]
async fn a_trigger_runs_as_the_writer_and_cannot_become_its_owner() {
    // This reproduced attack works by PostgreSQL's design, but only with the writer's privileges.
    let demo = demo();
    for q in [
        "drop table if exists i_seen",
        "create table i_seen (who text, session text)",
        "create or replace function i_look() returns trigger language plpgsql as \
         $$ begin new.who := current_user; \
         new.session := (select usename from pg_stat_activity where pid = pg_backend_pid()); return new; end $$",
        "create trigger t before insert on i_seen for each row execute function i_look()",
        "grant insert, select on i_seen to \"demo/alice\"",
    ] {
        demo.rows("demo", q, json!({})).await;
    }
    let q = "insert into i_seen values ('x', 'x') returning *";
    let seen = demo.rows("alice", q, json!({})).await;
    assert_eq!(
        seen["data"],
        json!([{"who": "demo/alice", "session": "demo/alice"}])
    );
    // A user that owns nothing may create neither tables nor triggers, so it cannot attack in this
    // way.
    for q in [
        "create table i_trap_of_alice (id int)",
        "create trigger t before insert on i_seen for each row execute function i_look()",
    ] {
        let (status, error) = demo.refusal("alice", &json!({"q": q})).await;
        assert_eq!(
            (status, error["sqlstate"].as_str()),
            (403, Some("42501")),
            "{q}: {error}"
        );
    }
}

#[tokio::test]
async fn powerful_functions_stay_refused() {
    for q in [
        "select pg_read_file('postgresql.conf')",
        "select pg_ls_dir('.')",
        "select lo_import('/etc/passwd')",
        "select pg_create_logical_replication_slot('x', 'pgoutput')",
        "create role mine",
        "create database mine",
        "alter role demo superuser",
    ] {
        let (status, error) = demo().refusal("demo", &json!({"q": q})).await;
        assert_eq!(
            (status, error["sqlstate"].as_str()),
            (403, Some("42501")),
            "{q}: {error}"
        );
    }
}

#[tokio::test]
async fn other_databases_stay_closed() {
    let admin = demo().admin().await;
    let row = admin
        .query_one("select bool_or(has_database_privilege('demo', datname, 'CONNECT')) from pg_database where datname not in ('demo', 'template0', 'template1', 'postgres')", &[])
        .await
        .unwrap();
    assert_ne!(
        row.get::<_, Option<bool>>(0),
        Some(true),
        "the control database is open to a tenant"
    );
}

#[tokio::test]
async fn anonymous_access_follows_path_header_and_setting() {
    let who = json!({"q": "select current_user::text as c"});
    let guest = json!([{"c": "demo/guest"}]);
    let demo = demo();
    let plain: Value = demo.sql(None, &who).await.json().await.unwrap();
    assert_eq!(plain["data"], guest);
    let named = demo
        .request(Method::POST, "/api/v4/sql")
        .header("tidegate-database", "demo")
        .json(&who);
    assert_eq!(
        named.send().await.unwrap().json::<Value>().await.unwrap()["data"],
        guest
    );
    let nowhere = demo
        .request(Method::POST, "/api/v4/sql")
        .header("tidegate-database", "nowhere")
        .json(&who);
    let nowhere = nowhere.send().await.unwrap();
    assert_eq!(nowhere.status(), 401);
    assert_eq!(
        nowhere.headers()["www-authenticate"],
        challenge(&demo.url, "")
    );
    assert_eq!(
        nowhere.json::<Value>().await.unwrap()["errorCode"],
        "MISSING_TOKEN"
    );

    let token = demo.token("demo").await;
    let path = demo
        .request(Method::POST, "/api/v4/sql/database/demo")
        .bearer_auth(token)
        .json(&who);
    assert_eq!(
        path.send().await.unwrap().json::<Value>().await.unwrap()["data"],
        guest
    );
    let path = demo
        .request(Method::POST, "/api/v4/sql/database/nowhere")
        .json(&who)
        .send()
        .await
        .unwrap();
    assert_eq!(path.status(), 404);
    assert_eq!(
        path.json::<Value>().await.unwrap()["errorCode"],
        "NO_DEFAULT_USER_FOUND"
    );
}

#[tokio::test]
async fn a_bad_token_never_becomes_anonymous() {
    for token in ["x", "a.b.c", ""] {
        let response = demo()
            .request(Method::POST, "/api/v4/sql")
            .header("authorization", format!("Bearer {token}"))
            .json(&json!({"q": "select 1"}))
            .send()
            .await
            .unwrap();
        assert_eq!(response.status(), 401, "{token:?}");
        let header = response.headers()["www-authenticate"]
            .to_str()
            .unwrap()
            .to_owned();
        assert!(header.starts_with("Bearer"), "{header}");
        let error: Value = response.json().await.unwrap();
        assert_eq!(error["errorCode"], "INVALID_TOKEN", "{token:?}");
        assert!(header.contains("error=\"invalid_token\""), "{header}");
    }
}

#[tokio::test]
async fn the_database_in_the_path_counts_before_the_one_in_the_header() {
    let who = json!({"q": "select current_user::text as c"});
    let ask = async |path: &str, named: &str| {
        let request = demo().request(Method::POST, path);
        let request = request.header("tidegate-database", named).json(&who);
        let response = request.send().await.unwrap();
        let status = response.status().as_u16();
        (status, response.json::<Value>().await.unwrap())
    };
    let (status, response) = ask("/api/v4/sql/database/demo", "nowhere").await;
    assert_eq!(
        (status, &response["data"]),
        (200, &json!([{"c": "demo/guest"}])),
        "{response}"
    );
    let (status, error) = ask("/api/v4/sql/database/nowhere", "demo").await;
    assert_eq!(
        (status, error["errorCode"].as_str()),
        (404, Some("NO_DEFAULT_USER_FOUND")),
        "{error}"
    );
    // The header takes precedence over the setting, for GET requests too.
    for path in ["/api/v4/sql/schema", "/api/v4/sql/schema/public"] {
        for (named, status) in [("demo", 200), ("nowhere", 401)] {
            let request = demo().request(Method::GET, path);
            let response = request.header("tidegate-database", named).send().await;
            assert_eq!(response.unwrap().status(), status, "{path} {named}");
        }
    }
}

#[tokio::test]
async fn a_grant_of_columns_is_for_these_columns_only() {
    let demo = demo();
    for q in [
        "drop table if exists i_columns",
        "create table i_columns (open int, shut int)",
        "insert into i_columns values (1, 2)",
        "grant select (open), update (open) on i_columns to \"demo/alice\"",
    ] {
        demo.rows("demo", q, json!({})).await;
    }
    let read = demo
        .rows("alice", "select open from i_columns", json!({}))
        .await;
    assert_eq!(read["data"], json!([{"open": 1}]));
    let written = demo
        .rows("alice", "update i_columns set open = 3", json!({}))
        .await;
    assert_eq!(written["affected_rows"], 1);
    for q in [
        "select shut from i_columns",
        "select * from i_columns",
        "select open from i_columns where shut = 2",
        "update i_columns set shut = 3",
        "update i_columns set open = shut",
        "delete from i_columns",
    ] {
        let (status, error) = demo.refusal("alice", &json!({"q": q})).await;
        assert_eq!(
            (status, error["sqlstate"].as_str()),
            (403, Some("42501")),
            "{q}: {error}"
        );
    }
}
