//! Tests attacks that were reproduced against shared logins. Each runs as a statement at `/sql`,
//! where each user has a login of its own (SECURITY.md). The module `isolation` tests state that
//! outlives a request, and `identity` tests triggers and functions without definer's rights.

use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{TextResponse, demo};

/// Statements that switch to the owner's role. In a function, the whole name of the setting
/// `session_authorization` would end the sharing of connections.
pub(crate) const ESCAPES: [&str; 6] = [
    "perform set_config('ro'||'le', 'none', true); perform set_config('role', 'demo', true)",
    "perform set_config('session_'||'authorization', 'demo', true)",
    "execute 'reset role'; execute 'set local role demo'",
    "execute 'set role demo'",
    "execute 'set session authorization default'; execute 'set role demo'",
    "execute 'set session authorization demo'",
];

async fn prepare(statements: &[String]) {
    for q in statements {
        demo().rows("demo", q, json!({})).await;
    }
}

/// Checks that a statement of alice's is refused, and that her next statement runs as her own role.
async fn alice_stays_alice(q: &str) {
    let (status, error) = demo().refusal("alice", &json!({"q": q})).await;
    assert!(matches!(status, 400 | 403), "{q}: {error}");
    let q = "select current_user::text as c, session_user::text as s";
    let who = demo().rows("alice", q, json!({})).await;
    let alice = json!([{"c": "demo/alice", "s": "demo/alice"}]);
    assert_eq!(who["data"], alice);
}

#[tokio::test]
async fn a1_statements_that_change_the_role_are_refused_in_every_company() {
    for q in [
        "reset role; set local role demo",
        "select 1; reset role",
        "begin; set local role demo; select 1",
        "/* a */ -- b\n RESET ROLE",
        "set role 'demo'",
        "set local role to demo",
    ] {
        alice_stays_alice(q).await;
        let body = json!([{"q": "select 1"}, {"q": q}, {"q": "select current_user::text"}]);
        let (status, error) = demo().refusal("alice", &body).await;
        assert!(matches!(status, 400 | 403), "{q}: {error}");
    }
}

#[tokio::test]
async fn a2_and_b_no_function_switches_the_role_or_opens_a_table() {
    for escape in ESCAPES {
        alice_stays_alice(&format!("do $$ begin {escape}; end $$")).await;
    }
    let drop = "drop table if exists at_secret".to_owned();
    prepare(&[drop, "create table at_secret (id int)".to_owned()]).await;
    for q in [
        "select * from at_secret",
        "do $$ begin perform * from at_secret; end $$",
        "explain analyze select * from at_secret",
        "with w as (table at_secret) select * from w",
    ] {
        let (status, error) = demo().refusal("alice", &json!({"q": q})).await;
        let actual = (status, error["sqlstate"].as_str());
        assert_eq!(actual, (403, Some("42501")), "{q}: {error}");
    }
}

#[tokio::test]
async fn a3_a_trigger_does_not_run_as_the_writer_of_the_table() {
    for (place, escape) in ESCAPES.iter().enumerate() {
        let (table, function) = (format!("at_lure_{place}"), format!("at_lure_{place}()"));
        prepare(&[
            format!("drop table if exists {table}"),
            format!("create table {table} (id int)"),
            format!(
                "create or replace function {function} returns trigger language plpgsql as \
                 $$ begin {escape}; return new; end $$"
            ),
            format!(
                "create trigger t before insert on {table} for each row execute function {function}"
            ),
            format!("grant insert on {table} to \"demo/alice\""),
        ])
        .await;
        alice_stays_alice(&format!("insert into {table} values (1)")).await;
        let q = format!("select count(*) as n from {table}");
        let left = demo().rows("demo", &q, json!({})).await;
        assert_eq!(left["data"], json!([{"n": 0}]), "{escape}");
    }
}

#[tokio::test]
async fn c_a_definers_function_cannot_be_left_upwards_nor_downwards() {
    for (place, escape) in ESCAPES.iter().enumerate() {
        let function = format!("at_definer_{place}()");
        prepare(&[
            format!(
                "create or replace function {function} returns text language plpgsql \
                 security definer as $$ begin {escape}; return current_user; end $$"
            ),
            format!("grant execute on function {function} to \"demo/alice\""),
        ])
        .await;
        alice_stays_alice(&format!("select {function}")).await;
    }
}

#[tokio::test]
async fn c2_a_trigger_that_fires_at_the_commit_of_a_definers_function_cannot_escape() {
    for (place, escape) in ESCAPES.iter().enumerate() {
        let (table, trigger) = (format!("at_late_{place}"), format!("at_late_{place}()"));
        let queue = format!("at_queue_{place}()");
        prepare(&[
            format!("drop table if exists {table}"),
            format!("create table {table} (id int)"),
            format!(
                "create or replace function {trigger} returns trigger language plpgsql as \
                 $$ begin {escape}; return new; end $$"
            ),
            format!(
                "create constraint trigger t after insert on {table} deferrable initially \
                 deferred for each row execute function {trigger}"
            ),
            format!(
                "create or replace function {queue} returns void language sql security definer \
                 as $$ insert into {table} values (1) $$"
            ),
            format!("grant execute on function {queue} to \"demo/alice\""),
        ])
        .await;
        alice_stays_alice(&format!("select {queue}")).await;
        let q = format!("select count(*) as n from {table}");
        let left = demo().rows("demo", &q, json!({})).await;
        assert_eq!(left["data"], json!([{"n": 0}]), "{escape}");
    }
}

#[tokio::test]
async fn d1_what_would_shut_others_out_or_load_code_is_refused() {
    for q in [
        "alter role current_user connection limit 1",
        "alter role current_user set session_preload_libraries = 'nope'",
        "alter role current_user valid until '2000-01-01'",
        "alter role current_user nologin",
        "alter role current_user superuser",
        "alter role demo password 'mine'",
        "alter role all set search_path = pg_temp",
        "alter database demo set search_path = pg_temp",
    ] {
        for (user, refused) in [(Some("alice"), 403), (None, 401)] {
            let response = demo().sql(user, &json!({"q": q})).await;
            // The default user may not alter any role.
            let kind = user.is_none() && q.starts_with("alter role");
            let refused = if kind { 403 } else { refused };
            assert_eq!(response.status(), refused, "{q}");
            let error: Value = response.json().await.unwrap();
            if kind {
                assert_eq!(error["errorCode"], "STATEMENT_NOT_ALLOWED", "{q}: {error}");
            } else {
                assert_eq!(error["sqlstate"], "42501", "{q}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn d2_a_reset_returns_to_the_values_of_the_start() {
    let see = "select current_setting('TimeZone') as zone, current_setting('statement_timeout') \
               as timeout, current_setting('search_path') as path";
    let start = demo().rows("alice", see, json!({})).await;
    for reset in [
        "reset all",
        "do $$ begin execute 'reset all'; end $$",
        "reset timezone",
        "set timezone to default",
    ] {
        let body = json!([
            {"q": "set timezone = 'Asia/Tokyo'"}, {"q": reset}, {"q": see},
        ]);
        let response: Value = demo().sql(Some("alice"), &body).await.json().await.unwrap();
        assert_eq!(response[2]["data"], start["data"], "{reset}: {response}");
    }
}

#[tokio::test]
async fn d3_and_d4_the_deadline_is_not_the_callers_to_lift() {
    let token = demo().cached_token("alice").await;
    let swallow = "do $$ begin loop begin perform pg_sleep(60); exception \
                   when query_canceled then null; end; end loop; end $$";
    for body in [
        json!([{"q": "set statement_timeout = 0"}, {"q": "select pg_sleep(60)"}]),
        json!([{"q": "set local statement_timeout = '1h'"}, {"q": swallow}]),
        json!([{"q": "select set_config('idle_in_transaction_session_timeout', '0', false)"}, {"q": swallow}]),
        json!({"q": swallow}),
    ] {
        let request = demo().request(Method::POST, "/api/v4/sql");
        let request = request.bearer_auth(&token).header("prefer", "wait=1");
        let response = TextResponse::of(request.json(&body)).await;
        let error = response.error();
        assert_eq!(error, (504, "STATEMENT_TIMEOUT".to_owned()), "{body}");
    }
}

#[tokio::test]
async fn d5_no_file_no_program_and_no_extension_is_in_reach() {
    let run = "create procedure at_run(q text) language plpgsql as $$ begin execute q; end $$";
    prepare(&[run.to_owned()]).await;
    for q in [
        "call at_run('copy artists to program ''cat''')",
        "call at_run('copy artists to ''/tmp/at_stolen''')",
        "call at_run('copy notes from ''/etc/passwd''')",
        "select pg_read_file('/etc/passwd')",
        "select pg_read_binary_file('PG_VERSION')",
        "select pg_ls_dir('.')",
        "select lo_import('/etc/passwd')",
        "select lo_export(1, '/tmp/at_stolen')",
        "select pg_create_physical_replication_slot('at_slot')",
        "select pg_create_logical_replication_slot('at_slot', 'pgoutput')",
        "create extension dblink",
        "create extension file_fdw",
        "create function at_c() returns int language c as 'libc', 'getpid'",
        "create language plperlu",
        "alter system set log_statement = 'all'",
        "create subscription at_sub connection 'host=127.0.0.1' publication p",
        "create tablespace at_space location '/tmp'",
        "checkpoint",
    ] {
        for (user, refused) in [(Some("demo"), 403), (Some("alice"), 403), (None, 401)] {
            let response = demo().sql(user, &json!({"q": q})).await;
            let status = response.status();
            let error: Value = response.json().await.unwrap();
            let sqlstate = error["sqlstate"].as_str().unwrap_or_default();
            // The attack is also prevented if the extension is missing.
            let absent = ["0A000", "58P01", "42704"].contains(&sqlstate);
            let closed = status == refused && sqlstate == "42501";
            assert!(closed || absent, "{user:?} {q}: {status} {error}");
        }
    }
}

/// PostgreSQL cannot be interrupted while it parses a statement or the name of a type.
#[tokio::test]
async fn d6_what_postgresql_would_read_for_minutes_is_refused_before() {
    let nested = |depth: usize| format!("{}{}", "/*".repeat(depth), "*/".repeat(depth));
    for (q, hint, reported) in [
        (
            format!("select {}1", "+".repeat(900_000)),
            "int",
            "character 8",
        ),
        (
            format!("select {}1", "%2B".repeat(300_000)),
            "int",
            "no space",
        ),
        (format!("{} select 1", nested(200_000)), "int", "no space"),
        (
            "select :x".to_owned(),
            &*format!("{}int", nested(200_000)),
            "type_hints.x",
        ),
    ] {
        let mut body = json!({"q": q, "type_hints": {"x": hint}});
        if q.contains(":x") {
            body["params"] = json!({"x": 1});
        }
        let began = std::time::Instant::now();
        let response =
            TextResponse::of(demo().request(Method::POST, "/api/v4/sql").json(&body)).await;
        assert_eq!(
            response.error(),
            (400, "INPUT_VALIDATION_ERROR".to_owned()),
            "{}",
            &q[..9]
        );
        assert!(response.text.contains(reported), "{}", response.text);
        assert!(response.text.len() < 1000, "{}", response.text.len());
        assert!(began.elapsed().as_secs() < 10);
    }
}
