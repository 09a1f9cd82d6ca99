//! Tests `POST /api/v4/sql`: statements, placeholders, parameter sets and transactions (API.md,
//! "SQL").

use reqwest::Method;
use serde_json::{Value, json};

use crate::service::demo;

#[tokio::test]
async fn a_statement_answers_schema_and_data() {
    let response = demo()
        .sql(
            Some("demo"),
            &json!({"q": "select 1 as id, 'a' as name, array[1,2] as list"}),
        )
        .await;
    assert_eq!(response.status(), 200);
    assert_eq!(
        response.headers()["content-type"],
        "application/json; charset=utf-8"
    );
    assert_eq!(
        response.text().await.unwrap(),
        concat!(
            r#"{"schema":{"id":{"type":"int4","array":false},"name":{"type":"text","array":false},"#,
            r#""list":{"type":"int4","array":true}},"data":[{"id":1,"name":"a","list":[1,2]}]}"#
        )
    );
}

#[tokio::test]
async fn a_trailing_slash_and_a_charset_are_accepted() {
    let token = demo().token("demo").await;
    let response = demo()
        .request(Method::POST, "/api/v4/sql/")
        .bearer_auth(token)
        .header("content-type", "application/json; charset=utf-8")
        .header("accept", "application/json; charset=utf-8")
        .body(r#"{"q":"select 1 as n;"}"#)
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 200);
}

#[tokio::test]
async fn repeated_columns_get_suffixes() {
    let rows = demo()
        .rows("demo", "select 1 as a, 2 as a, 3 as a", json!({}))
        .await;
    assert_eq!(rows["data"], json!([{"a": 1, "a_1": 2, "a_2": 3}]));
}

#[tokio::test]
async fn placeholders_stand_only_where_values_can() {
    let rows = demo()
        .rows(
            "demo",
            "select :a::int as a, ':a' as quoted, $$ :a $$ as dollar, E'\\':a' as e, \
             (array[1,2,3])[1:2] as slice, \":x\" -- :nothing\n /* :nor */ \
             from (select :a::int + 1 as \":x\") t",
            json!({"a": 4}),
        )
        .await;
    assert_eq!(
        rows["data"],
        json!([{"a": 4, "quoted": ":a", "dollar": " :a ", "e": "':a", "slice": [1, 2], ":x": 5}])
    );
}

#[tokio::test]
async fn an_encoded_plus_reads_as_plus_outside_strings() {
    let rows = demo()
        .rows("demo", "select 1 %2B 2 as n, '%2B' as s", json!({}))
        .await;
    assert_eq!(rows["data"], json!([{"n": 3, "s": "%2B"}]));
}

#[tokio::test]
async fn missing_and_extra_values_are_named() {
    let (status, error) = demo()
        .refusal("demo", &json!({"q": "select :price::int", "params": {}}))
        .await;
    assert_eq!(
        (status, error["errorCode"].as_str()),
        (400, Some("INPUT_VALIDATION_ERROR"))
    );
    assert_eq!(error["success"], false);
    assert_eq!(error["code"], 400);
    assert!(
        error["message"].as_str().unwrap().contains("price"),
        "{error}"
    );

    let (status, error) = demo()
        .refusal(
            "demo",
            &json!({"q": "select 1", "params": {"left_over": 1}}),
        )
        .await;
    assert_eq!(
        (status, error["errorCode"].as_str()),
        (400, Some("INPUT_VALIDATION_ERROR"))
    );
    assert!(
        error["message"].as_str().unwrap().contains("left_over"),
        "{error}"
    );
}

#[tokio::test]
async fn unknown_members_are_named() {
    let (status, error) = demo()
        .refusal("demo", &json!({"q": "select 1", "parms": {}}))
        .await;
    assert_eq!(
        (status, error["errorCode"].as_str()),
        (400, Some("INPUT_VALIDATION_ERROR"))
    );
    assert!(
        error["message"].as_str().unwrap().contains("parms"),
        "{error}"
    );
}

#[tokio::test]
async fn ignored_members_are_accepted_and_the_id_is_echoed() {
    let body = json!({
        "q": "select 1 as n", "id": "7", "srs": 4326, "geo_format": "geojson",
        "convert_types": true, "lifetime": 0, "format": "sql",
    });
    let response: Value = demo().sql(Some("demo"), &body).await.json().await.unwrap();
    assert_eq!(response["data"], json!([{"n": 1}]));
    assert_eq!(response["id"], "7");
}

#[tokio::test]
async fn a_base64_statement_is_decoded() {
    use base64::Engine as _;
    let q = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode("select '>>>???' as s");
    let response: Value = demo()
        .sql(Some("demo"), &json!({"q": q, "base64": true}))
        .await
        .json()
        .await
        .unwrap();
    assert_eq!(response["data"], json!([{"s": ">>>???"}]));
}

#[tokio::test]
async fn empty_statements_are_input_errors() {
    for q in ["", "  ", ";", "-- nothing", "/* /* nested */ */"] {
        let (status, error) = demo().refusal("demo", &json!({"q": q})).await;
        assert_eq!(
            (status, error["errorCode"].as_str()),
            (400, Some("INPUT_VALIDATION_ERROR")),
            "{q:?}: {error}"
        );
    }
}

#[tokio::test]
async fn a_second_statement_is_refused() {
    let (status, error) = demo()
        .refusal("demo", &json!({"q": "select 1; select 2"}))
        .await;
    assert_eq!(
        (status, error["errorCode"].as_str()),
        (400, Some("INPUT_VALIDATION_ERROR"))
    );
}

#[tokio::test]
async fn statements_that_would_break_a_request_are_refused() {
    for q in [
        "begin",
        "start transaction",
        "commit",
        "end",
        "rollback",
        "abort",
        "savepoint a",
        "release a",
        "/* c */ rollback",
        "-- c\ncommit and chain",
        "prepare transaction 'x'",
        "commit prepared 'x'",
        "copy artists to stdout",
        "copy artists from stdin",
        "set role none",
        "set local role none",
        "reset role",
        "set session authorization default",
        "reset session authorization",
        "listen a",
        "notify a",
        "unlisten *",
        "prepare a as select 1",
        "execute a",
        "deallocate all",
        "discard all",
        "load 'x'",
    ] {
        let (status, error) = demo().refusal("demo", &json!({"q": q})).await;
        assert_eq!(
            (status, error["errorCode"].as_str()),
            (403, Some("STATEMENT_NOT_ALLOWED")),
            "{q}: {error}"
        );
    }
}

#[tokio::test]
async fn writes_tell_how_many_rows_they_touched() {
    let demo = demo();
    demo.rows(
        "demo",
        "create table if not exists t_writes (id int primary key, name text)",
        json!({}),
    )
    .await;
    demo.rows("demo", "delete from t_writes", json!({})).await;
    let response = demo
        .rows(
            "demo",
            "insert into t_writes values (1, 'a'), (2, 'b')",
            json!({}),
        )
        .await;
    assert_eq!(
        response,
        json!({"schema": {}, "data": [], "affected_rows": 2})
    );
    let response = demo
        .rows(
            "demo",
            "update t_writes set name = :n returning id, name",
            json!({"n": "c"}),
        )
        .await;
    assert_eq!(response["affected_rows"], 2);
    assert_eq!(response["data"].as_array().unwrap().len(), 2);
    let response = demo.rows("demo", "select * from t_writes", json!({})).await;
    assert!(response.get("affected_rows").is_none(), "{response}");
}

#[tokio::test]
async fn ddl_is_visible_to_the_next_request() {
    let demo = demo();
    demo.rows("demo", "drop table if exists t_ddl", json!({}))
        .await;
    demo.rows("demo", "create table t_ddl (a int)", json!({}))
        .await;
    for _ in 0..8 {
        let response = demo.rows("demo", "select * from t_ddl", json!({})).await;
        assert_eq!(
            response["schema"],
            json!({"a": {"type": "int4", "array": false}})
        );
    }
    demo.rows("demo", "alter table t_ddl add column b text", json!({}))
        .await;
    for _ in 0..8 {
        let response = demo.rows("demo", "select * from t_ddl", json!({})).await;
        assert_eq!(response["schema"].as_object().unwrap().len(), 2);
    }
    demo.rows(
        "demo",
        "alter table t_ddl alter column a type text",
        json!({}),
    )
    .await;
    for _ in 0..8 {
        let response = demo.rows("demo", "select * from t_ddl", json!({})).await;
        assert_eq!(response["schema"]["a"]["type"], "text");
    }
}

#[tokio::test]
async fn rights_decide_by_role() {
    let (status, error) = demo()
        .refusal(
            "alice",
            &json!({"q": "insert into artists (name) values ('x')"}),
        )
        .await;
    assert_eq!((status, error["sqlstate"].as_str()), (403, Some("42501")));
    let response = demo()
        .sql(
            None,
            &json!({"q": "insert into artists (name) values ('x')"}),
        )
        .await;
    assert_eq!(response.status(), 401);
    let response = demo()
        .rows(
            "alice",
            "select count(*) > 0 as some from artists",
            json!({}),
        )
        .await;
    assert_eq!(response["data"], json!([{"some": true}]));
}

#[tokio::test]
async fn a_request_may_lower_its_deadline() {
    let token = demo().token("demo").await;
    let started = std::time::Instant::now();
    let response = demo()
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(token)
        .header("prefer", "wait=1")
        .json(&json!({"q": "select pg_sleep(30)"}))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 504);
    let error: Value = response.json().await.unwrap();
    assert_eq!(error["errorCode"], "STATEMENT_TIMEOUT");
    assert!(started.elapsed().as_secs() < 10);
}

#[tokio::test]
async fn a_deadline_also_ends_a_function_that_swallows_cancellation() {
    let token = demo().token("demo").await;
    let q = "do $$ begin loop begin perform pg_sleep(60); exception when query_canceled then null; \
             end; end loop; end $$";
    let response = demo()
        .request(Method::POST, "/api/v4/sql")
        .bearer_auth(token)
        .header("prefer", "wait=1")
        .json(&json!({"q": q}))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 504);
}
