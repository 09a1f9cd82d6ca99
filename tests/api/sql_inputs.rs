//! Tests input values of `POST /api/v4/sql`: type hints, other forms, and invalid values (API.md,
//! "Values").

use serde_json::{Value, json};

use crate::service::demo;

#[tokio::test]
async fn hints_take_every_spelling_of_a_type() {
    for (hint, name, array) in [
        ("int", "int4", false),
        ("integer", "int4", false),
        ("bigint", "int8", false),
        ("double precision", "float8", false),
        ("timestamp with time zone", "timestamptz", false),
        ("character varying", "varchar", false),
        ("pg_catalog.int4", "int4", false),
        ("decimal", "numeric", false),
        ("boolean", "bool", false),
    ] {
        let value = match name {
            "bool" => json!(true),
            "timestamptz" => json!("2024-01-01"),
            "varchar" => json!("x"),
            _ => json!(1),
        };
        let body =
            json!({"q": "select :v as v", "params": {"v": value}, "type_hints": {"v": hint}});
        let response: Value = demo().sql(Some("demo"), &body).await.json().await.unwrap();
        assert_eq!(
            response["schema"]["v"],
            json!({"type": name, "array": array}),
            "{hint}: {response}"
        );
    }
    for hint in ["int[]", "_int4", "integer[]"] {
        let body =
            json!({"q": "select :v as v", "params": {"v": [1, 2]}, "type_hints": {"v": hint}});
        let response: Value = demo().sql(Some("demo"), &body).await.json().await.unwrap();
        assert_eq!(
            response["schema"]["v"],
            json!({"type": "int4", "array": true}),
            "{hint}: {response}"
        );
    }
    let long = "x".repeat(40);
    let body =
        json!({"q": "select :v as v", "params": {"v": long}, "type_hints": {"v": "varchar"}});
    let response: Value = demo().sql(Some("demo"), &body).await.json().await.unwrap();
    assert_eq!(response["data"][0]["v"], long, "a hint carries no length");
    for hint in ["no_such_type", "int4; drop table artists", "int4)", "''"] {
        let body = json!({"q": "select :v as v", "params": {"v": 1}, "type_hints": {"v": hint}});
        let (status, error) = demo().refusal("demo", &body).await;
        assert_eq!(
            (status, error["errorCode"].as_str()),
            (400, Some("INPUT_VALIDATION_ERROR")),
            "{hint}"
        );
        assert!(error["message"].as_str().unwrap().contains(hint), "{error}");
    }
}

#[tokio::test]
async fn other_input_forms_are_accepted() {
    for (q, hint, value, expected) in [
        (
            "select :v::text as v",
            "interval",
            json!("1 day"),
            json!("1 day"),
        ),
        (
            "select :v::text as v",
            "interval",
            json!({"d": 2}),
            json!("2 days"),
        ),
        ("select :v as v", "bytea", json!("\\x00ff"), json!("AP8=")),
        (
            "select :v::text as v",
            "path",
            json!([true, {"x": 0, "y": 0}, {"x": 1, "y": 1}]),
            json!("[(0,0),(1,1)]"),
        ),
        (
            "select :v::text as v",
            "int4range",
            json!({"lower": 1, "upper": 5}),
            json!("[1,5)"),
        ),
        (
            "select :v::text as v",
            "int4range",
            json!({"empty": true}),
            json!("empty"),
        ),
        (
            "select :v::text as v",
            "int4[]",
            json!("{1,2}"),
            json!("{1,2}"),
        ),
        (
            "select :v::text as v",
            "text[]",
            json!(["a,b", "\"", "\\", "", "NULL", null, "{}"]),
            json!("{\"a,b\",\"\\\"\",\"\\\\\",\"\",\"NULL\",NULL,\"{}\"}"),
        ),
        ("select :v as v", "int4", json!("12"), json!(12)),
        ("select :v as v", "bool", json!("yes"), json!(true)),
        ("select :v as v", "text", json!(12), json!("12")),
    ] {
        let body = json!({"q": q, "params": {"v": value}, "type_hints": {"v": hint}});
        let response: Value = demo().sql(Some("demo"), &body).await.json().await.unwrap();
        assert_eq!(
            response["data"],
            json!([{"v": expected}]),
            "{hint} {value}: {response}"
        );
    }
}

#[tokio::test]
async fn values_of_the_wrong_kind_name_their_place() {
    for (hint, value, place) in [
        ("int4", json!({"a": 1}), "params.v"),
        ("int4", json!([1]), "params.v"),
        ("int4[]", json!([1, {"a": 1}]), "params.v[1]"),
        ("int4[]", json!([[1], [1, 2]]), "params.v"),
        ("int4range", json!({"lowr": 1}), "params.v"),
        ("point", json!({"x": 1}), "params.v"),
    ] {
        let body =
            json!({"q": "select :v as v", "params": {"v": value}, "type_hints": {"v": hint}});
        let (status, error) = demo().refusal("demo", &body).await;
        assert_eq!(
            (status, error["errorCode"].as_str()),
            (400, Some("INPUT_VALIDATION_ERROR")),
            "{hint} {value}: {error}"
        );
        assert!(
            error["message"].as_str().unwrap().contains(place),
            "{hint} {value}: {error}"
        );
    }
    let body = json!({"q": "select :v as v", "params": {"v": 99_999_999_999_i64}, "type_hints": {"v": "int4"}});
    let (status, error) = demo().refusal("demo", &body).await;
    assert_eq!(
        (status, error["sqlstate"].as_str()),
        (400, Some("22003")),
        "{error}"
    );
}
