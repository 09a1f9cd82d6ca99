//! Tests `POST /api/v4/sql`: allowed statements, and how their text is parsed (API.md, "SQL").

use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{TextResponse, demo};

#[tokio::test]
async fn a_statement_may_be_of_any_kind_that_the_role_may_run() {
    let demo = demo();
    demo.rows("demo", "drop table if exists st_kinds", json!({}))
        .await;
    demo.rows("demo", "drop procedure if exists st_double", json!({}))
        .await;
    for (q, data) in [
        (
            "create table st_kinds (id int primary key, n int)",
            json!([]),
        ),
        ("comment on table st_kinds is 'kinds'", json!([])),
        ("insert into st_kinds values (1, 2), (2, 4)", json!([])),
        ("create index concurrently on st_kinds (n)", json!([])),
        ("values (1, 'a')", json!([{"column1": 1, "column2": "a"}])),
        (
            "table st_kinds",
            json!([{"id": 1, "n": 2}, {"id": 2, "n": 4}]),
        ),
        (
            "with d as (delete from st_kinds where id = 1 returning n) select n from d",
            json!([{"n": 2}]),
        ),
        (
            "create procedure st_double(inout x int) language plpgsql as \
             $$ begin x := 2 * x; end $$",
            json!([]),
        ),
        ("call st_double(21)", json!([{"x": 42}])),
        ("do $$ begin perform 1; end $$", json!([])),
        ("analyze st_kinds", json!([])),
        ("vacuum st_kinds", json!([])),
        ("set statement_timeout = '5s'", json!([])),
        ("reset all", json!([])),
        (
            "show standard_conforming_strings",
            json!([{"standard_conforming_strings": "on"}]),
        ),
        ("grant select on st_kinds to \"demo/alice\"", json!([])),
        ("truncate st_kinds", json!([])),
        ("lock table st_kinds", json!([])),
        ("drop table st_kinds;", json!([])),
    ] {
        if q.starts_with("lock") {
            // PostgreSQL requires a transaction for this statement, and an array is one.
            let response = demo.sql(Some("demo"), &json!([{"q": q}])).await;
            assert_eq!(response.status(), 200, "{q}");
            continue;
        }
        assert_eq!(demo.rows("demo", q, json!({})).await["data"], data, "{q}");
    }
    let plan = demo
        .rows("demo", "explain (format json) select 1", json!({}))
        .await;
    assert!(
        plan["data"][0]["QUERY PLAN"][0]["Plan"].is_object(),
        "{plan}"
    );
}

#[tokio::test]
async fn one_semicolon_may_end_it() {
    for q in [
        "select 1 as n;",
        "select 1 as n ; -- the end\n",
        "select 1 as n;/* end */",
    ] {
        let response = demo().rows("demo", q, json!({})).await;
        assert_eq!(response["data"], json!([{"n": 1}]), "{q}");
    }
    for q in [
        "select 1;;",
        ";select 1",
        "select 1; ;",
        "select 1; select 2;",
    ] {
        let (status, error) = demo().refusal("demo", &json!({"q": q})).await;
        let reported = (status, error["errorCode"].as_str());
        assert_eq!(
            reported,
            (400, Some("INPUT_VALIDATION_ERROR")),
            "{q}: {error}"
        );
    }
}

#[tokio::test]
async fn placeholders_are_distinguished_from_similar_syntax() {
    let demo = demo();
    demo.rows(
        "demo",
        "create or replace function st_minus(a int, b int) returns int language sql \
         as 'select a - b'",
        json!({}),
    )
    .await;
    let response = demo
        .rows(
            "demo",
            "select :a::int + :a::int + :_b1::int as sum, st_minus(a := :a, b := :_b1) as minus, \
             (array[1,2,3,4])[(:a):(:_b1)] as slice, (array[1,2,3,4])[2:3] as plain, \
             array[:a::int, :_b1] as items, '12:30'::time::text as time, :A::int as upper",
            json!({"a": 2, "_b1": 3, "A": 7}),
        )
        .await;
    assert_eq!(
        response["data"],
        json!([{
            "sum": 7, "minus": -1, "slice": [2, 3], "plain": [2, 3], "items": [2, 3],
            "time": "12:30:00", "upper": 7,
        }])
    );
}

#[tokio::test]
async fn only_an_encoded_plus_is_decoded_and_only_outside_quotes_and_comments() {
    let response = demo()
        .rows(
            "demo",
            "select 1 %2B 2 as n, '%2B' as s, $$%2B$$ as d, 10 %3 as rest, 3 as \"a%2Bb\", \
             'a%20b' as t /* %2B */ -- %2B",
            json!({}),
        )
        .await;
    let expected = json!([{"n": 3, "s": "%2B", "d": "%2B", "rest": 1, "a%2Bb": 3, "t": "a%20b"}]);
    assert_eq!(response["data"], expected);
}

#[tokio::test]
async fn a_value_that_is_missing_is_not_null_and_one_too_many_is_named() {
    for (params, name) in [
        (json!({"a": 1}), "b"),
        (json!({}), "a"),
        (json!({"a": 1, "b": 2, "c": 3}), "c"),
        (json!([{"a": 1, "b": 2}, {"a": 1}]), "b"),
        (json!([{"a": 1, "b": 2}, {"a": 1, "b": 2, "c": 3}]), "c"),
    ] {
        let body = json!({"q": "select :a::int, :b::int", "params": params});
        let (status, error) = demo().refusal("demo", &body).await;
        let reported = (status, error["errorCode"].as_str());
        assert_eq!(reported, (400, Some("INPUT_VALIDATION_ERROR")), "{params}");
        let message = error["message"].as_str().unwrap();
        let named = [format!("`{name}`"), format!(":{name}"), format!(".{name}")];
        assert!(named.iter().any(|name| message.contains(name)), "{message}");
    }
}

#[tokio::test]
async fn an_unknown_hint_names_itself_and_its_placeholder() {
    for hint in [
        "no_such_type",
        "no.such",
        "int4)",
        "int; drop table artists",
    ] {
        let body = json!({
            "q": "select :price as v", "params": {"price": 1}, "type_hints": {"price": hint},
        });
        let (status, error) = demo().refusal("demo", &body).await;
        let message = error["message"].as_str().unwrap();
        assert_eq!(status, 400, "{hint}: {error}");
        assert_eq!(error["errorCode"], "INPUT_VALIDATION_ERROR", "{hint}");
        assert!(
            message.contains(hint) && message.contains("price"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn json_text_is_given_with_a_hint_and_a_cast() {
    let body = json!({
        "q": "select :t::jsonb as document, :s::jsonb as string",
        "params": {"t": "{\"a\": 1}", "s": "{\"a\": 1}"}, "type_hints": {"t": "text"},
    });
    let response = demo().sql(Some("demo"), &body).await;
    let response: Value = response.json().await.unwrap();
    let expected = json!([{"document": {"a": 1}, "string": "{\"a\": 1}"}]);
    assert_eq!(response["data"], expected, "{response}");
}

#[tokio::test]
async fn a_statement_has_a_mebibyte_and_no_byte_more() {
    let of = |size: usize| {
        let rest = "select length('') as n".len();
        json!({"q": format!("select length('{}') as n", "x".repeat(size - rest))})
    };
    let limit = 1024 * 1024;
    let response = demo().sql(Some("demo"), &of(limit)).await;
    let response: Value = response.json().await.unwrap();
    let length = limit - "select length('') as n".len();
    assert_eq!(response["data"], json!([{"n": length}]), "{response}");
    let (status, error) = demo().refusal("demo", &of(limit + 1)).await;
    let reported = (status, error["errorCode"].as_str());
    assert_eq!(reported, (400, Some("INPUT_VALIDATION_ERROR")), "{error}");
}

#[tokio::test]
async fn geojson_is_a_collection_of_features() {
    let q = "select 1 as id, point(1.5, 2) as place, 'here' as name";
    let body = json!({"q": q, "output_format": "geojson"});
    let response = demo().ask(
        Method::POST,
        "/api/v4/sql",
        Some("demo"),
        Some(body.to_string()),
    );
    let response = response.await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(response.header("content-type"), "application/geo+json");
    assert_eq!(
        response.json(),
        json!({"type": "FeatureCollection", "features": [{
            "type": "Feature", "geometry": {"type": "Point", "coordinates": [1.5, 2]},
            "properties": {"id": 1, "name": "here"},
        }]})
    );
}

#[tokio::test]
async fn odd_strings_in_json_are_refused_or_kept_and_never_something_else() {
    let token = demo().cached_token("demo").await;
    for (body, expected) in [
        (
            r#"{"q":"select :v::text as v","params":{"v":"\ud83c\udf0a"}}"#,
            Some("🌊"),
        ),
        (
            r#"{"q":"select :v::text as v","params":{"v":"\ufeff\u202e"}}"#,
            Some("\u{feff}\u{202e}"),
        ),
        (
            r#"{"q":"select :v::text as v","params":{"v":"a\u0000b"}}"#,
            None,
        ),
        (
            r#"{"q":"select :v::text as v","params":{"v":"\udf0a"}}"#,
            None,
        ),
        (
            r#"{"q":"select :v::text as v","params":{"v":"\ud83c"}}"#,
            None,
        ),
        (
            r#"{"q":"select :v::jsonb as v","params":{"v":{"a":"\u0000"}}}"#,
            None,
        ),
        (
            r#"{"q":"select :v::text[] as v","params":{"v":["\u0000"]}}"#,
            None,
        ),
        (r#"{"q":"select '\udf0a'"}"#, None),
    ] {
        let request = demo().request(Method::POST, "/api/v4/sql");
        let request = request.header("content-type", "application/json");
        let response = TextResponse::of(request.bearer_auth(&token).body(body)).await;
        match expected {
            Some(text) => assert_eq!(response.json()["data"][0]["v"], text, "{body}"),
            None => assert_eq!(response.status, 400, "{body}: {response:?}"),
        }
    }
}

#[tokio::test]
async fn a_missing_database_responds_like_one_without_a_default_user() {
    let body = json!({"q": "select 1"}).to_string();
    for database in [
        "nowhere",
        "postgres",
        "tidegate",
        "template1",
        "demo%2Fguest",
        "%00",
        "a%20b",
    ] {
        let path = format!("/api/v4/sql/database/{database}");
        let response = demo()
            .ask(Method::POST, &path, None, Some(body.clone()))
            .await;
        let error = response.error();
        assert_eq!(
            error,
            (404, "NO_DEFAULT_USER_FOUND".to_owned()),
            "{database}"
        );
    }
}
