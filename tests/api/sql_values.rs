//! Tests every row of the table in API.md, "Values", as output and as input of the same form.

use serde_json::{Value, json};

use crate::service::demo;

/// The rows of the table: an SQL literal, the name of the type in `schema`, and the JSON form.
pub(crate) fn table() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("1::int2", "int2", json!(1)),
        ("(-2147483648)::int4", "int4", json!(-2_147_483_648_i64)),
        (
            "9223372036854775807::int8",
            "int8",
            json!(9_223_372_036_854_775_807_i64),
        ),
        ("4294967295::oid", "oid", json!(4_294_967_295_u32)),
        ("0.1::float4", "float4", json!(0.1)),
        ("1.5e300::float8", "float8", json!(1.5e300)),
        ("'NaN'::float8", "float8", json!("NaN")),
        ("'-Infinity'::float8", "float8", json!("-Infinity")),
        (
            "12345678901234567890.1230::numeric",
            "numeric",
            json!("12345678901234567890.1230"),
        ),
        ("'NaN'::numeric", "numeric", json!("NaN")),
        ("true", "bool", json!(true)),
        ("'a\"b\\ü\n'::text", "text", json!("a\"b\\ü\n")),
        ("'abc'::varchar(3)", "varchar", json!("abc")),
        ("'a'::char(3)", "bpchar", json!("a  ")),
        (
            "'00000000-0000-0000-0000-0000000000ff'::uuid",
            "uuid",
            json!("00000000-0000-0000-0000-0000000000ff"),
        ),
        ("'10.0.0.1/8'::inet", "inet", json!("10.0.0.1/8")),
        ("'10.0.0.0/8'::cidr", "cidr", json!("10.0.0.0/8")),
        (
            "'08:00:2b:01:02:03'::macaddr",
            "macaddr",
            json!("08:00:2b:01:02:03"),
        ),
        ("'<a/>'::xml", "xml", json!("<a/>")),
        ("'a b'::tsvector", "tsvector", json!("'a' 'b'")),
        ("B'101'", "bit", json!("101")),
        ("12.5::numeric::money", "money", json!("$12.50")),
        (
            "'{\"a\": [1, null]}'::jsonb",
            "jsonb",
            json!({"a": [1, null]}),
        ),
        ("'{\"a\":1.5}'::json", "json", json!({"a": 1.5})),
        ("'2024-02-29'::date", "date", json!("2024-02-29")),
        ("'0044-03-15 BC'::date", "date", json!("0044-03-15 BC")),
        ("'infinity'::date", "date", json!("infinity")),
        ("'04:05:06.789'::time", "time", json!("04:05:06.789")),
        ("'04:05:06+02'::timetz", "timetz", json!("04:05:06+02:00")),
        (
            "'2024-01-02 03:04:05.6'::timestamp",
            "timestamp",
            json!("2024-01-02T03:04:05.6"),
        ),
        (
            "'2024-01-02 03:04:05+01'::timestamptz",
            "timestamptz",
            json!("2024-01-02T02:04:05Z"),
        ),
        (
            "'-infinity'::timestamptz",
            "timestamptz",
            json!("-infinity"),
        ),
        (
            "'1 year 2 months 3 days 04:05:06.7'::interval",
            "interval",
            json!({"y": 1, "m": 2, "d": 3, "h": 4, "i": 5, "s": 6.7}),
        ),
        ("'\\x00ff10'::bytea", "bytea", json!("AP8Q")),
        ("'(1,2.5)'::point", "point", json!({"x": 1, "y": 2.5})),
        ("'{1,2,3}'::line", "line", json!({"A": 1, "B": 2, "C": 3})),
        (
            "'[(0,0),(1,1)]'::lseg",
            "lseg",
            json!({"start": {"x": 0, "y": 0}, "end": {"x": 1, "y": 1}}),
        ),
        (
            "'(1,1),(0,0)'::box",
            "box",
            json!({"start": {"x": 1, "y": 1}, "end": {"x": 0, "y": 0}}),
        ),
        (
            "'[(0,0),(1,1)]'::path",
            "path",
            json!({"open": true, "points": [{"x": 0, "y": 0}, {"x": 1, "y": 1}]}),
        ),
        (
            "'((0,0),(1,1),(1,0))'::polygon",
            "polygon",
            json!([{"x": 0, "y": 0}, {"x": 1, "y": 1}, {"x": 1, "y": 0}]),
        ),
        (
            "'<(1,2),3>'::circle",
            "circle",
            json!({"center": {"x": 1, "y": 2}, "radius": 3}),
        ),
        (
            "'[1,5)'::int4range",
            "int4range",
            json!({"lower": 1, "upper": 5, "lowerInclusive": true, "upperInclusive": false}),
        ),
        (
            "'(,2024-01-01)'::daterange",
            "daterange",
            json!({"lower": null, "upper": "2024-01-01", "lowerInclusive": false, "upperInclusive": false}),
        ),
        (
            "'empty'::numrange",
            "numrange",
            json!({"lower": null, "upper": null, "lowerInclusive": false, "upperInclusive": false, "empty": true}),
        ),
        (
            "'{[1,2),[3,4)}'::int4multirange",
            "int4multirange",
            json!([
                {"lower": 1, "upper": 2, "lowerInclusive": true, "upperInclusive": false},
                {"lower": 3, "upper": 4, "lowerInclusive": true, "upperInclusive": false}
            ]),
        ),
    ]
}

/// Whether two JSON values are equal, where `1` equals `1.0`.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            left == right || left.as_f64() == right.as_f64()
        }
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| same(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .zip(right)
                    .all(|((lk, l), (rk, r))| lk == rk && same(l, r))
        }
        _ => left == right,
    }
}

#[tokio::test]
async fn every_type_has_its_form_and_its_form_is_accepted_back() {
    for (literal, name, form) in table() {
        let response = demo()
            .rows("demo", &format!("select {literal} as v"), json!({}))
            .await;
        assert_eq!(
            response["schema"]["v"],
            json!({"type": name, "array": false}),
            "{literal}"
        );
        let value = &response["data"][0]["v"];
        assert!(same(value, &form), "{literal}: {value} instead of {form}");

        // These types are compared as text: `char(n)` loses its trailing spaces as text, and xml
        // has no equality.
        let hint = if name == "bit" { "varbit" } else { name };
        let body = json!({
            "q": format!("select (:v)::text = ({literal})::{hint}::text as same"),
            "params": {"v": form}, "type_hints": {"v": hint},
        });
        let response = demo().sql(Some("demo"), &body).await;
        let response: Value = response.json().await.unwrap();
        assert_eq!(
            response["data"],
            json!([{"same": true}]),
            "{literal} back from {form}: {response}"
        );
    }
}

#[tokio::test]
async fn arrays_of_every_type_nest_and_hold_nulls() {
    for (literal, name, form) in table() {
        let q = format!("select array[[{literal}, null], [null, {literal}]] as v");
        let response = demo().rows("demo", &q, json!({})).await;
        assert_eq!(
            response["schema"]["v"],
            json!({"type": name, "array": true}),
            "{literal}"
        );
        let expected = json!([[form, null], [null, form]]);
        assert!(
            same(&response["data"][0]["v"], &expected),
            "{literal}: {}",
            response["data"]
        );

        if matches!(name, "json" | "jsonb") {
            // Nested arrays of documents are possible only as output, because an array as an
            // element is itself a document.
            continue;
        }
        let hint = if name == "bit" { "varbit" } else { name };
        let body = json!({
            "q": format!("select (:v)::text = (array[[{literal}, null], [null, {literal}]])::{hint}[]::text as same"),
            "params": {"v": expected}, "type_hints": {"v": format!("{hint}[]")},
        });
        let response: Value = demo().sql(Some("demo"), &body).await.json().await.unwrap();
        assert_eq!(
            response["data"],
            json!([{"same": true}]),
            "{literal} back: {response}"
        );
    }
}

#[tokio::test]
async fn arrays_of_rows_without_a_type_are_arrays_of_objects() {
    let q =
        "select array_agg(t order by id) as v from (select id, name from artists where id < 3) t";
    let response = demo().rows("demo", q, json!({})).await;
    assert_eq!(
        response["schema"]["v"],
        json!({"type": "record", "array": true})
    );
    let rows = response["data"][0]["v"].as_array().unwrap();
    let ids: Vec<_> = rows.iter().map(|row| row["f1"].as_str()).collect();
    assert_eq!(ids, [Some("1"), Some("2")], "{response}");
}

#[tokio::test]
async fn composites_enums_and_domains_have_their_forms() {
    let demo = demo();
    demo.rows("demo", "drop type if exists v_pair cascade", json!({}))
        .await;
    demo.rows("demo", "drop domain if exists v_price cascade", json!({}))
        .await;
    demo.rows("demo", "drop type if exists v_mood cascade", json!({}))
        .await;
    demo.rows(
        "demo",
        "create type v_mood as enum ('sad', 'ok')",
        json!({}),
    )
    .await;
    demo.rows(
        "demo",
        "create domain v_price as numeric(8,2) check (value >= 0)",
        json!({}),
    )
    .await;
    demo.rows(
        "demo",
        "create type v_pair as (a int, mood v_mood, \"odd name\" v_price[])",
        json!({}),
    )
    .await;
    let form = json!({"a": 1, "mood": "ok", "odd name": ["1.50", null]});
    let body = json!({
        "q": "select :v as v, (:v).mood as mood, '2.5'::v_price as price",
        "params": {"v": form}, "type_hints": {"v": "v_pair"},
    });
    let response: Value = demo.sql(Some("demo"), &body).await.json().await.unwrap();
    assert_eq!(
        response["data"],
        json!([{"v": form, "mood": "ok", "price": "2.50"}]),
        "{response}"
    );

    let body =
        json!({"q": "select :v", "params": {"v": "-1"}, "type_hints": {"v": "public.v_price"}});
    let (status, error) = demo.refusal("demo", &body).await;
    assert_eq!((status, error["sqlstate"].as_str()), (400, Some("23514")));
}

#[tokio::test]
async fn numbers_keep_their_digits() {
    let body = r#"{"q":"select :n::numeric as n, :j::jsonb as j","params":{"n":1234567890123456789012345.000000000001,"j":{"n":1234567890123456789012345.10}}}"#;
    let token = demo().token("demo").await;
    let response = demo()
        .request(reqwest::Method::POST, "/api/v4/sql")
        .bearer_auth(token)
        .header("content-type", "application/json")
        .body(body)
        .send()
        .await
        .unwrap()
        .text()
        .await
        .unwrap();
    assert!(
        response.contains(r#""n":"1234567890123456789012345.000000000001""#),
        "{response}"
    );
    assert!(
        response.contains("1234567890123456789012345.10"),
        "{response}"
    );
}

#[tokio::test]
async fn json_documents_pass_as_they_are_and_null_is_null() {
    let body = json!({
        "q": "select :a::jsonb as a, :b::jsonb as b, :c::jsonb is null as c, :d::jsonb as d",
        "params": {"a": "text", "b": [1, {"x": null}], "c": null, "d": 5},
    });
    let response: Value = demo().sql(Some("demo"), &body).await.json().await.unwrap();
    assert_eq!(
        response["data"],
        json!([{"a": "text", "b": [1, {"x": null}], "c": true, "d": 5}])
    );
}
