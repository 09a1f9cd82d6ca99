//! Tests that no state of one request reaches another (SECURITY.md).

use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, demo, demo_folder};

/// Creates a procedure that runs a text which the service's parser does not see.
pub(crate) async fn procedure(name: &str) {
    let make =
        format!("create procedure {name}(q text) language plpgsql as $$ begin execute q; end $$");
    demo().rows("demo", &make, json!({})).await;
}

#[tokio::test]
async fn nothing_survives_a_request() {
    procedure("i_leave").await;
    // Only the owner may take such locks. Others take them through functions of the owner.
    let lock = "create function iso_lock() returns void language sql security definer \
                as 'select pg_advisory_lock(4711)'";
    demo().rows("demo", lock, json!({})).await;
    for user in [Some("demo"), None] {
        for (leave, see, clean) in [
            (
                "select set_config('tidegate.mine', 'x', false)",
                "select coalesce(current_setting('tidegate.mine', true), '') as v",
                json!(""),
            ),
            (
                "call i_leave('set search_path = pg_catalog')",
                "select current_setting('search_path') as v",
                json!("\"$user\", public"),
            ),
            (
                "select iso_lock()",
                "select count(*)::int as v from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()",
                json!(0),
            ),
            (
                "call i_leave('prepare theirs as select 1')",
                "select count(*)::int as v from pg_prepared_statements where name = 'theirs'",
                json!(0),
            ),
            (
                "call i_leave('declare theirs cursor with hold for select 1')",
                "select count(*)::int as v from pg_cursors where name = 'theirs'",
                json!(0),
            ),
            (
                "set timezone = 'Asia/Tokyo'",
                "select current_setting('TimeZone') as v",
                json!("UTC"),
            ),
            (
                "call i_leave('listen theirs')",
                "select count(*)::int as v from pg_listening_channels()",
                json!(0),
            ),
        ] {
            let left = demo().sql(user, &json!({"q": leave})).await;
            assert!(
                left.status().is_success(),
                "{leave}: {}",
                left.text().await.unwrap()
            );
            for _ in 0..10 {
                let response: Value = demo()
                    .sql(user, &json!({"q": see}))
                    .await
                    .json()
                    .await
                    .unwrap();
                assert_eq!(response["data"][0]["v"], clean, "{leave}: {response}");
            }
        }
    }
}

/// Definitions of an owner that make a simple read leave side effects.
const POISON: [&str; 7] = [
    "create schema evil",
    "grant usage on schema evil to \"demo/alice\"",
    "create table evil.artists as select 1 as id, 'EVIL ROW'::text as name",
    "grant select on evil.artists to \"demo/alice\"",
    "create function evil.poison() returns text language plpgsql as $$ begin
        perform set_config('search_path', 'evil,public', false);
        return 'hi'; end $$",
    "create view evil.news as select evil.poison() as headline",
    "grant select on evil.news to \"demo/alice\"",
];

#[tokio::test]
async fn a_read_of_a_view_does_not_change_what_the_next_request_reads() {
    let service = demo();
    for q in POISON {
        service.rows("demo", q, json!({})).await;
    }
    let name = "select name from public.artists where id = 1";
    let honest = service.rows("alice", name, json!({})).await;
    // The reads go on for two seconds, because the definitions are checked only after a moment.
    let end = std::time::Instant::now() + std::time::Duration::from_secs(2);
    while std::time::Instant::now() < end {
        service
            .rows("alice", "select headline from evil.news", json!({}))
            .await;
        let read = service
            .rows("alice", "select name from artists where id = 1", json!({}))
            .await;
        assert_eq!(read["data"], honest["data"]);
    }
    service
        .rows("demo", "drop schema evil cascade", json!({}))
        .await;
}

#[tokio::test]
async fn a_temporary_table_does_not_shadow_for_the_next_request() {
    let demo = demo();
    demo.rows("demo", "create temp table artists (id int)", json!({}))
        .await;
    for _ in 0..10 {
        let seen = demo
            .rows(
                "demo",
                "select count(*) > 0 as real from artists",
                json!({}),
            )
            .await;
        assert_eq!(seen["data"], json!([{"real": true}]));
    }
    let (status, error) = demo
        .refusal_anonymous("create temp table artists (id int)")
        .await;
    assert_eq!(
        (status, error["sqlstate"].as_str()),
        (401, Some("42501")),
        "{error}"
    );
}

/// Operators decide whether a user may write at all, and how long it waits for locks.
#[tokio::test]
async fn a_read_only_role_can_read() {
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    let sql = "alter role \"demo/alice\" set default_transaction_read_only = on; \
               alter database demo set default_transaction_read_only = on; \
               alter database demo set lock_timeout = '123ms'; \
               alter role demo set default_transaction_read_only = off";
    demo.admin().await.batch_execute(sql).await.unwrap();
    let write = json!({"q": "insert into playlists (name) values ('Read only')"});
    let mutation = json!({"query": "mutation { insertPlaylists(data: {name: \"Read only\"}) { id } \
                                    second: insertPlaylists(data: {name: \"Read only\"}) { id } }"});
    for (user, status) in [(Some("alice"), 405), (Some("demo"), 200)] {
        let response = demo.sql(user, &write).await;
        assert_eq!(response.status(), status, "{user:?}");
        let path = "/api/graphql/schema/public";
        let response = demo
            .ask(Method::POST, path, user, Some(mutation.to_string()))
            .await
            .json();
        assert_eq!(response["data"].is_null(), status == 405, "{response}");
    }
    for (user, read_only) in [(Some("alice"), "on"), (None, "on"), (Some("demo"), "off")] {
        let q = "select current_setting('transaction_read_only') as v, \
                 current_setting('lock_timeout') as lock";
        let response: Value = demo.sql(user, &json!({"q": q})).await.json().await.unwrap();
        let expected = json!([{"v": read_only, "lock": "123ms"}]);
        assert_eq!(response["data"], expected, "{user:?} {response}");
    }
}

/// A setting of the role does not change what a null in an array of a request means.
#[tokio::test]
async fn a_null_in_an_array_is_null_whatever_the_role_has_set() {
    let folder = demo_folder();
    let demo = Service::start(folder.path().to_str().unwrap(), &[]);
    let sql = "alter role \"demo/alice\" set array_nulls = off";
    demo.admin().await.batch_execute(sql).await.unwrap();
    let asked =
        json!({"q": "select :a as v", "params": {"a": [1, null]}, "type_hints": {"a": "int[]"}});
    let response: Value = demo.sql(Some("alice"), &asked).await.json().await.unwrap();
    assert_eq!(response["data"], json!([{"v": [1, null]}]), "{response}");
}

#[tokio::test]
async fn listen_and_notify_are_refused() {
    // This reproduced attack sends NOTIFY on any channel.
    let demo = demo();
    let make = "create procedure i_tell() language plpgsql as $$ begin \
                execute 'listen d5'; execute 'notify d5'; raise notice 'd5'; end $$";
    demo.rows("demo", make, json!({})).await;
    let reported = [
        "call i_tell()",
        "select pg_notify('d5', 'x')",
        "select pg_notify('d5', 'y')",
    ];
    for user in [Some("demo"), Some("alice"), None] {
        for q in ["listen d5", "unlisten d5", "notify d5"] {
            let refused = demo.sql(user, &json!({"q": q})).await;
            assert_eq!(refused.status(), 403, "{q}");
            let error: Value = refused.json().await.unwrap();
            assert_eq!(error["errorCode"], "STATEMENT_NOT_ALLOWED", "{q}");
        }
        for q in reported {
            let response = demo.sql(user, &json!({"q": q})).await;
            assert_eq!(response.status(), 200, "{q}");
            let next = demo.sql(user, &json!({"q": "select 1 as n"})).await;
            let next: Value = next.json().await.unwrap();
            assert_eq!(next["data"], json!([{"n": 1}]), "{q}: {next}");
        }
        let together: Vec<_> = reported.iter().map(|q| json!({"q": q})).collect();
        let response = demo.sql(user, &json!(together)).await;
        let response: Value = response.json().await.unwrap();
        assert_eq!(response.as_array().map(Vec::len), Some(3), "{response}");
    }
}

#[tokio::test]
async fn a_role_without_write_privileges_cannot_fill_the_disk() {
    // This reproduced attack uses what every role may write without a privilege on a table.
    for q in [
        "select lo_creat(-1) is not null as made",
        "select lo_create(0) is not null as made",
        "select lo_from_bytea(0, 'x') is not null as made",
        "select pg_logical_emit_message(true, 'd5', 'x') is not null as made",
        "select pg_logical_emit_message(false, 'd5', 'x'::bytea) is not null as made",
    ] {
        for (user, status) in [(Some("alice"), 403), (None, 401)] {
            let refused = demo().sql(user, &json!({"q": q})).await;
            assert_eq!(refused.status(), status, "{q}");
            let error: Value = refused.json().await.unwrap();
            assert_eq!(error["sqlstate"], "42501", "{q}");
        }
        let made = demo().rows("demo", q, json!({})).await;
        assert_eq!(made["data"], json!([{"made": true}]), "{q}");
    }
}

#[tokio::test]
async fn a_transaction_cannot_be_ended_from_within() {
    // This reproduced attack runs a statement that the service refuses, both directly and hidden
    // from the service's list of statements.
    let demo = demo();
    demo.rows("demo", "drop table if exists i_whole", json!({}))
        .await;
    demo.rows("demo", "create table i_whole (id int)", json!({}))
        .await;
    for end in [
        "COMMIT",
        "/*c*/ ROLLBACK",
        "END",
        "ABORT",
        "PREPARE TRANSACTION 'x'",
        "COMMIT AND CHAIN",
        "do $$ begin commit; end $$",
        "do $$ begin rollback; end $$",
    ] {
        let (status, error) = demo
            .refusal(
                "demo",
                &json!([
                    {"q": "insert into i_whole values (1)"}, {"q": end}, {"q": "select 1 / 0"},
                ]),
            )
            .await;
        assert!(matches!(status, 400 | 403 | 500), "{end}: {error}");
        let left = demo
            .rows("demo", "select count(*) as n from i_whole", json!({}))
            .await;
        assert_eq!(left["data"], json!([{"n": 0}]), "{end}");
    }
}

#[tokio::test]
async fn a_transactions_mode_cannot_be_changed_for_others() {
    // This reproduced attack switches between READ ONLY and READ WRITE.
    let demo = demo();
    for q in [
        "set transaction read only",
        "set transaction read write",
        "set transaction_read_only = on",
        "set session characteristics as transaction read only",
    ] {
        let (status, error) = demo.refusal("demo", &json!({"q": q})).await;
        assert_eq!(
            (status, error["errorCode"].as_str()),
            (403, Some("STATEMENT_NOT_ALLOWED")),
            "{q}"
        );
    }
    for q in [
        "select set_config('default_transaction_read_only', 'on', false)",
        "select set_config('transaction_read_only', 'on', false)",
    ] {
        demo.rows("demo", q, json!({})).await;
        for _ in 0..10 {
            let mode = demo
                .rows(
                    "demo",
                    "select current_setting('transaction_read_only') as v",
                    json!({}),
                )
                .await;
            assert_eq!(mode["data"], json!([{"v": "off"}]), "{q}");
        }
    }
    // Only privileges decide what a caller may write.
    let writable = json!([
        {"q": "select set_config('transaction_read_only', 'off', false)"},
        {"q": "insert into artists (name) values ('mine')"},
    ]);
    let refused = demo.sql(None, &writable).await;
    assert_eq!(refused.status(), 401);
}

#[tokio::test]
async fn statements_that_a_caller_deallocates_are_prepared_again() {
    // This reproduced attack deallocates prepared statements.
    procedure("i_deallocate").await;
    for user in [Some("demo"), Some("alice"), None] {
        for _ in 0..5 {
            let body = json!({"q": "select name from artists where id = :id", "params": {"id": 1}});
            let response: Value = demo().sql(user, &body).await.json().await.unwrap();
            assert_eq!(
                response["data"].as_array().map(Vec::len),
                Some(1),
                "{user:?}: {response}"
            );
            let q = "call i_deallocate('deallocate all')";
            let gone = demo().sql(user, &json!({"q": q})).await;
            assert_eq!(gone.status(), 200);
        }
    }
}
