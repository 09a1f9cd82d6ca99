//! Tests `POST /api/v4/sql` with statements that were cached before their tables and types changed
//! (API.md, "SQL": DDL is visible to the node's next request; a parameter has the type that
//! PostgreSQL infers).

use serde_json::{Value, json};

use crate::service::{Service, demo, demo_folder, eventually};

const WRITE: &str = "insert into t_retyped (k, d, f) values (:k, :d, :f)";
const READ: &str = "select k from t_retyped where d = :d and k > 0";

async fn run(q: &str) {
    demo().rows("demo", q, json!({})).await;
}

/// Writes a timestamp and a number. Returns the stored values.
async fn written(k: i32) -> Value {
    let demo = demo();
    let moment = "2024-01-01T10:30:00Z";
    demo.rows("demo", WRITE, json!({"k": k, "d": moment, "f": 0.1}))
        .await;
    // These are enough concurrent requests to use multiplexed connections.
    let reads = (0..32).map(|_| demo.rows("demo", READ, json!({"d": moment})));
    let found = futures_util::future::join_all(reads).await;
    assert!(
        found.iter().all(|one| one["data"] == found[0]["data"]),
        "{found:?}"
    );
    let q = "select d, f::text from t_retyped where k = :k";
    let kept = demo.rows("demo", q, json!({"k": k})).await;
    json!([kept["data"][0], found[0]["data"]])
}

#[tokio::test]
async fn a_parameter_follows_the_type_of_its_column() {
    run("drop table if exists t_retyped").await;
    run("create table t_retyped (k int, d date, f float4)").await;
    for _ in 0..3 {
        // A date has no time; the timestamp is truncated to its day.
        let kept = written(1).await;
        assert_eq!(kept[0], json!({"d": "2024-01-01", "f": "0.1"}));
    }
    run("delete from t_retyped").await;
    run("alter table t_retyped alter d type timestamptz, alter f type float8").await;
    assert_eq!(
        written(2).await,
        json!([{"d": "2024-01-01T10:30:00Z", "f": "0.1"}, [{"k": 2}]])
    );
    // Arrays of requests, and parameter sets, behave in the same way.
    let sets = json!([{"k": 3, "d": "2024-01-01T10:30:00Z", "f": 0.1}]);
    demo().rows("demo", WRITE, sets).await;
    let q = "select count(*)::int as n from t_retyped where d = '2024-01-01T10:30:00Z'";
    let found = demo().rows("demo", q, json!({})).await;
    assert_eq!(found["data"], json!([{"n": 2}]));
}

#[tokio::test]
async fn a_type_that_is_changed_past_the_node_takes_effect_soon() {
    run("drop table if exists t_elsewhere").await;
    run("create table t_elsewhere (id int)").await;
    let found = async || {
        let body = json!({"q": "select id from t_elsewhere where id = :i", "params": {"i": "7"}});
        let response = demo().sql(Some("demo"), &body).await;
        (
            response.status().as_u16(),
            response.json::<Value>().await.unwrap(),
        )
    };
    assert_eq!(found().await.0, 200);
    let admin = demo().admin().await;
    let change = "alter table t_elsewhere alter id type text; insert into t_elsewhere values ('7')";
    admin.batch_execute(change).await.unwrap();
    eventually("the type of the column is noticed", || async {
        let (status, response) = found().await;
        status == 200 && response["data"] == json!([{"id": "7"}])
    })
    .await;
}

#[tokio::test]
async fn an_overload_that_is_dropped_leaves_the_other_one() {
    for q in [
        "drop function if exists t_over(int)",
        "drop function if exists t_over(text)",
        "create function t_over(int) returns text language sql as $$ select 'int' $$",
        "create function t_over(text) returns text language sql as $$ select 'text' $$",
    ] {
        run(q).await;
    }
    let chosen = async || {
        let called = demo().rows("demo", "select t_over(:a) as v", json!({"a": "1"}));
        called.await["data"][0]["v"].clone()
    };
    assert_eq!(chosen().await, "text");
    run("drop function t_over(text)").await;
    assert_eq!(chosen().await, "int");
}

#[tokio::test]
async fn a_type_of_a_transaction_that_failed_has_never_been_there() {
    run("drop type if exists t_never").await;
    let with_hint = json!({
        "q": "select :a as a", "params": {"a": {"k": 1}}, "type_hints": {"a": "t_never"},
    });
    let requests = json!([
        {"q": "create type t_never as (k int)"}, with_hint, {"q": "select 1 / 0"},
    ]);
    let (status, error) = demo().refusal("demo", &requests).await;
    assert_eq!((status, &error["sqlstate"]), (400, &json!("22012")));
    let (status, error) = demo().refusal("demo", &with_hint).await;
    assert_eq!(
        (status, &error["errorCode"]),
        (400, &json!("INPUT_VALIDATION_ERROR")),
        "{error}"
    );
}

#[tokio::test]
async fn a_write_whose_rows_are_too_large_has_not_happened() {
    let folder = demo_folder();
    let service = Service::start(folder.path().to_str().unwrap(), &["--response-limit=20KiB"]);
    let q = "insert into playlists (name) values (:name) returning name, repeat(name, 3) as more";
    let long = json!({"name": "z".repeat(9000)});
    let (status, error) = service
        .refusal("demo", &json!({"q": q, "params": long}))
        .await;
    assert_eq!(
        (status, &error["errorCode"]),
        (413, &json!("PAYLOAD_TOO_LARGE"))
    );
    let count = "select count(*)::int as n from playlists where name like 'zz%'";
    let found = service.rows("demo", count, json!({})).await;
    assert_eq!(found["data"], json!([{"n": 0}]));
    let short = json!({"name": "z".repeat(90)});
    let fits = service.rows("demo", q, short).await;
    assert_eq!(fits["affected_rows"], 1);
}
