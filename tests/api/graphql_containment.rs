//! Tests the operators `containedBy` and `overlaps` over GraphQL (API.md, "GraphQL").

use serde_json::json;

use crate::graphql_operators::{by_sql, ids, prepare};

#[tokio::test]
async fn arrays_ranges_and_documents_contain_and_overlap() {
    prepare().await;
    for (column, operator, value, sql) in [
        ("ta", "contains", json!(["a"]), "@> '{a}'"),
        ("ta", "containedBy", json!(["c", "d"]), "<@ '{c,d}'"),
        ("ta", "overlaps", json!(["b", "c"]), "&& '{b,c}'"),
        ("ia", "contains", json!([]), "@> '{}'"),
        ("ia", "containedBy", json!([1, 2, 3]), "<@ '{1,2,3}'"),
        ("ia", "overlaps", json!(["2"]), "&& '{2}'"),
        ("r4", "contains", json!(3), "@> 3"),
        (
            "r4",
            "contains",
            json!({"lower": 5, "upper": 6}),
            "@> '[5,6)'::int4range",
        ),
        (
            "r4",
            "containedBy",
            json!({"lower": 0, "upper": 6}),
            "<@ '[0,6)'",
        ),
        (
            "r4",
            "overlaps",
            json!({"lower": 4, "upper": 5}),
            "&& '[4,5)'",
        ),
        ("r8", "contains", json!("7"), "@> 7::int8"),
        ("r8", "containedBy", json!({"lower": "5"}), "<@ '[5,)'"),
        ("r8", "overlaps", json!({"empty": true}), "&& 'empty'"),
        ("rn", "contains", json!("2.5"), "@> 2.5"),
        (
            "rn",
            "containedBy",
            json!({"lower": null, "upper": 3}),
            "<@ '(,3)'",
        ),
        (
            "rn",
            "overlaps",
            json!({"lower": 2.5, "upper": 2.6}),
            "&& '[2.5,2.6)'",
        ),
        (
            "rs",
            "contains",
            json!("2024-01-15"),
            "@> '2024-01-15'::timestamp",
        ),
        (
            "rs",
            "containedBy",
            json!({"lower": "2024-01-01", "upper": "2024-12-31"}),
            "<@ '[2024-01-01,2024-12-31)'",
        ),
        (
            "rs",
            "overlaps",
            json!({"lower": "2024-02-01", "upper": "2024-02-02"}),
            "&& '[2024-02-01,2024-02-02)'",
        ),
        (
            "rt",
            "contains",
            json!("2024-02-15T00:00:00Z"),
            "@> '2024-02-15Z'::timestamptz",
        ),
        (
            "rt",
            "containedBy",
            json!({"lower": "2024-01-01Z"}),
            "<@ '[2024-01-01Z,)'",
        ),
        (
            "rt",
            "overlaps",
            json!({"upper": "2024-01-02Z"}),
            "&& '(,2024-01-02Z)'",
        ),
        (
            "rd",
            "contains",
            json!("2024-01-15"),
            "@> '2024-01-15'::date",
        ),
        (
            "rd",
            "containedBy",
            json!({"lower": "2024-02-01"}),
            "<@ '[2024-02-01,)'",
        ),
        (
            "rd",
            "overlaps",
            json!({"lower": "2024-01-31", "upper": "2024-02-01"}),
            "&& '[2024-01-31,2024-02-01)'",
        ),
        ("mr", "contains", json!(6), "@> 6"),
        (
            "mr",
            "contains",
            json!({"lower": 1, "upper": 2}),
            "@> '[1,2)'::int4range",
        ),
        (
            "mr",
            "containedBy",
            json!([{"lower": 8, "upper": 20}]),
            "<@ '{[8,20)}'::int4multirange",
        ),
        (
            "mr",
            "overlaps",
            json!([{"lower": 6, "upper": 10}]),
            "&& '{[6,10)}'::int4multirange",
        ),
        ("jb", "contains", json!({"a": 2}), "@> '{\"a\": 2}'"),
        ("jb", "contains", json!({"b": [2]}), "@> '{\"b\": [2]}'"),
        (
            "jb",
            "containedBy",
            json!({"a": 2, "z": 1}),
            "<@ '{\"a\": 2, \"z\": 1}'",
        ),
        ("jb", "overlaps", json!(["b", "z"]), "?| '{b,z}'"),
        ("jb", "overlaps", json!(["a"]), "?| '{a}'"),
    ] {
        let condition = json!({column: {operator: value}});
        let expected = by_sql(&format!("{column} {sql}")).await;
        assert_eq!(ids(&condition).await, expected, "{condition}");
    }
}
