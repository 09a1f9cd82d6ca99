//! Tests that every operator of `where` on every class of types means the same as in SQL (API.md,
//! "Conditions").

use serde_json::{Value, json};

use crate::graphql::{ask, wait_for_type};
use crate::service::demo;

const TABLE: &str = "create table if not exists gql_operators (id int primary key, \
     i2 int2, i4 int4, i8 int8, nu numeric, f8 float8, mo money, tx text, vc varchar(9), \
     ch char(4), ci citext, en gql_mood, uu uuid, bo bool, ba bytea, iv interval, da date, \
     ti time, tz timetz, ts timestamp, tt timestamptz, js json, jb jsonb, ta text[], ia int[], \
     r4 int4range, r8 int8range, rn numrange, rs tsrange, rt tstzrange, rd daterange, \
     mr int4multirange, pt point, bx box, inet inet, bit bit(3), xm xml, oi oid, co gql_pair)";

/// Inserts three rows. The last one has only NULLs.
const ROWS: [&str; 3] = [
    "insert into gql_operators values (1, 1, 10, 9007199254740993, 1.50, 0.5, 1.5, 'One_%', 'one', \
     'a', 'Abc', 'sad', '00000000-0000-0000-0000-000000000001', true, '\\x01', '1 day', '2024-02-29', \
     '12:30', '12:30+02', '2024-02-29 12:30', '2024-02-29 12:30+02', '{\"a\":1}', '{\"a\": 1, \"b\": [1, 2]}', \
     '{a,b}', '{1,2}', '[1,5)', '[1,5)', '[1.5,2.5]', '[2024-01-01,2024-02-01)', '[2024-01-01Z,2024-02-01Z)', \
     '[2024-01-01,2024-02-01)', '{[1,3),[5,7)}', '(1,2)', '(1,1),(0,0)', '10.0.0.1', '101', '<a/>', 5, '(1,x)')",
    "insert into gql_operators values (2, 2, 20, 5, 2.5, 1.5, 2.5, 'two', 'two', 'b', 'xyz', 'ok', \
     '00000000-0000-0000-0000-000000000002', false, '\\x02', '2 days', '2024-03-01', '13:30', '13:30+02', \
     '2024-03-01 12:30', '2024-03-01 12:30+02', '{\"a\":2}', '{\"a\": 2}', '{c}', '{3}', '[5,9)', '[5,9)', \
     '(2.5,3.5)', '[2024-02-01,2024-03-01)', '[2024-02-01Z,2024-03-01Z)', '[2024-02-01,2024-03-01)', \
     '{[9,11)}', '(3,4)', '(9,9),(8,8)', '10.0.0.2', '111', '<b/>', 6, '(2,y)')",
    "insert into gql_operators (id) values (3)",
];

pub(crate) async fn prepare() {
    let admin = demo().admin().await;
    let types = "create extension if not exists citext schema public;
         do $$ begin create type gql_mood as enum ('sad', 'ok'); create type gql_pair as (a int, b text);
         exception when duplicate_object then null; end $$";
    // The lock is needed because two tests may run this at the same time.
    let lock = "begin; select pg_advisory_xact_lock(8300);";
    let rows: String = ROWS
        .map(|row| format!("{row} on conflict do nothing;"))
        .concat();
    let all =
        format!("{lock} {types}; {TABLE}; alter table gql_operators owner to demo; {rows} commit");
    admin.batch_execute(&all).await.unwrap();
    wait_for_type("GqlOperators").await;
}

pub(crate) async fn ids(condition: &Value) -> Value {
    let query = "query($w: JSON) { getGqlOperators(where: $w, orderBy: {id: asc}) { id } }";
    let response = ask(Some("demo"), query, json!({"w": condition})).await;
    assert_eq!(response.get("errors"), None, "{condition}: {response}");
    let rows = response["data"]["getGqlOperators"]
        .as_array()
        .unwrap()
        .clone();
    rows.iter()
        .map(|row| row["id"].as_str().unwrap().parse::<i32>().unwrap())
        .collect()
}

pub(crate) async fn by_sql(condition: &str) -> Value {
    let text = format!(
        "select coalesce(json_agg(id order by id), '[]') as ids from gql_operators where {condition}"
    );
    demo().rows("demo", &text, json!({})).await["data"][0]["ids"].clone()
}

/// Columns of comparable types, each with two values in the form of GraphQL and of SQL.
fn comparable() -> Vec<(&'static str, [(Value, &'static str); 2])> {
    vec![
        ("i2", [(json!(1), "1"), (json!("2"), "2")]),
        ("i4", [(json!(10), "10"), (json!(20), "20")]),
        (
            "i8",
            [
                (json!("9007199254740993"), "9007199254740993"),
                (json!(5), "5"),
            ],
        ),
        ("nu", [(json!(1.5), "1.5"), (json!("2.50"), "2.5")]),
        ("f8", [(json!(0.5), "0.5"), (json!(1.5), "1.5")]),
        (
            "mo",
            [(json!("1.50"), "1.5::money"), (json!("2.50"), "2.5::money")],
        ),
        ("tx", [(json!("One_%"), "'One_%'"), (json!("two"), "'two'")]),
        ("vc", [(json!("one"), "'one'"), (json!("two"), "'two'")]),
        ("ch", [(json!("a"), "'a'"), (json!("b"), "'b'")]),
        ("ci", [(json!("ABC"), "'abc'"), (json!("XYZ"), "'xyz'")]),
        ("en", [(json!("sad"), "'sad'"), (json!("ok"), "'ok'")]),
        (
            "uu",
            [
                (
                    json!("00000000-0000-0000-0000-000000000001"),
                    "'00000000-0000-0000-0000-000000000001'",
                ),
                (
                    json!("00000000-0000-0000-0000-000000000002"),
                    "'00000000-0000-0000-0000-000000000002'",
                ),
            ],
        ),
        ("bo", [(json!(true), "true"), (json!(false), "false")]),
        (
            "ba",
            [(json!("\\x01"), "'\\x01'"), (json!("Ag=="), "'\\x02'")],
        ),
        (
            "iv",
            [
                (json!("24 hours"), "'1 day'"),
                (json!({"d": 2}), "'2 days'"),
            ],
        ),
        (
            "da",
            [
                (json!("2024-02-29"), "'2024-02-29'"),
                (json!("1 March 2024"), "'2024-03-01'"),
            ],
        ),
        (
            "ti",
            [(json!("12:30"), "'12:30'"), (json!("13:30:00"), "'13:30'")],
        ),
        (
            "tz",
            [
                (json!("12:30+02"), "'12:30+02'"),
                (json!("13:30+02"), "'13:30+02'"),
            ],
        ),
        (
            "ts",
            [
                (json!("2024-02-29T12:30:00"), "'2024-02-29 12:30'"),
                (json!("2024-03-01 12:30"), "'2024-03-01 12:30'"),
            ],
        ),
        (
            "tt",
            [
                (json!("2024-02-29T10:30:00Z"), "'2024-02-29 12:30+02'"),
                (json!("2024-03-01 12:30+02"), "'2024-03-01 12:30+02'"),
            ],
        ),
        (
            "jb",
            [
                (
                    json!({"b": [1, 2], "a": 1.0}),
                    "'{\"a\": 1, \"b\": [1, 2]}'",
                ),
                (json!({"a": 2}), "'{\"a\": 2}'"),
            ],
        ),
        (
            "ta",
            [
                (json!(["a", "b"]), "'{a,b}'::text[]"),
                (json!("{c}"), "'{c}'::text[]"),
            ],
        ),
        (
            "ia",
            [
                (json!([1, 2]), "'{1,2}'::int[]"),
                (json!(["3"]), "'{3}'::int[]"),
            ],
        ),
        (
            "r4",
            [
                (json!({"lower": 1, "upper": 5}), "'[1,5)'::int4range"),
                (json!("[5,9)"), "'[5,9)'::int4range"),
            ],
        ),
        (
            "r8",
            [
                (
                    json!({"lower": "1", "upper": 4, "upperInclusive": true}),
                    "'[1,5)'::int8range",
                ),
                (json!("[5,9)"), "'[5,9)'::int8range"),
            ],
        ),
        (
            "rn",
            [
                (json!("[1.5,2.5]"), "'[1.5,2.5]'::numrange"),
                (
                    json!({"lower": 2.5, "upper": "3.5", "lowerInclusive": false}),
                    "'(2.5,3.5)'::numrange",
                ),
            ],
        ),
        (
            "rs",
            [
                (
                    json!({"lower": "2024-01-01", "upper": "2024-02-01"}),
                    "'[2024-01-01,2024-02-01)'::tsrange",
                ),
                (
                    json!("[2024-02-01,2024-03-01)"),
                    "'[2024-02-01,2024-03-01)'::tsrange",
                ),
            ],
        ),
        (
            "rt",
            [
                (
                    json!({"lower": "2024-01-01T00:00:00Z", "upper": "2024-02-01T00:00:00Z"}),
                    "'[2024-01-01Z,2024-02-01Z)'::tstzrange",
                ),
                (
                    json!("[2024-02-01Z,2024-03-01Z)"),
                    "'[2024-02-01Z,2024-03-01Z)'::tstzrange",
                ),
            ],
        ),
        (
            "rd",
            [
                (
                    json!({"lower": "2024-01-01", "upper": "2024-02-01"}),
                    "'[2024-01-01,2024-02-01)'::daterange",
                ),
                (
                    json!("[2024-02-01,2024-03-01)"),
                    "'[2024-02-01,2024-03-01)'::daterange",
                ),
            ],
        ),
        (
            "mr",
            [
                (
                    json!([{"lower": 1, "upper": 3}, {"lower": 5, "upper": 7}]),
                    "'{[1,3),[5,7)}'::int4multirange",
                ),
                (json!("{[9,11)}"), "'{[9,11)}'::int4multirange"),
            ],
        ),
        (
            "inet",
            [
                (json!("10.0.0.1"), "'10.0.0.1'"),
                (json!("10.0.0.2"), "'10.0.0.2'"),
            ],
        ),
        ("bit", [(json!("101"), "B'101'"), (json!("111"), "B'111'")]),
        ("oi", [(json!(5), "5"), (json!("6"), "6")]),
        (
            "co",
            [
                (json!({"a": 1, "b": "x"}), "'(1,x)'::gql_pair"),
                (json!({"a": 2, "b": "y"}), "'(2,y)'::gql_pair"),
            ],
        ),
    ]
}

#[tokio::test]
async fn what_can_be_compared_has_equality_order_lists_and_null() {
    prepare().await;
    for (column, [(one, sql_one), (two, sql_two)]) in comparable() {
        for (operator, symbol) in [
            ("eq", "="),
            ("neq", "<>"),
            ("gt", ">"),
            ("gte", ">="),
            ("lt", "<"),
            ("lte", "<="),
        ] {
            for (value, sql) in [(&one, sql_one), (&two, sql_two)] {
                let condition = json!({column: {operator: value}});
                let expected = by_sql(&format!("{column} {symbol} {sql}")).await;
                assert_eq!(ids(&condition).await, expected, "{condition}");
            }
        }
        for (condition, expected) in [
            (json!({column: {"in": [one, two]}}), json!([1, 2])),
            (json!({column: {"in": [two]}}), json!([2])),
            (json!({column: {"in": []}}), json!([])),
            (json!({column: {"nin": [one]}}), json!([2])),
            (json!({column: {"nin": []}}), json!([1, 2, 3])),
            (json!({column: null}), json!([3])),
            (json!({column: {"eq": null}}), json!([3])),
            (json!({column: {"neq": null}}), json!([1, 2])),
            (json!({column: {"isNull": true}}), json!([3])),
            (json!({column: {"isNull": false}}), json!([1, 2])),
            (json!({"not": {column: {"eq": one}}}), json!([2])),
            (json!({"not": {column: {"in": [one, two]}}}), json!([])),
        ] {
            assert_eq!(ids(&condition).await, expected, "{condition}");
        }
        // The short form of a condition means equality, unless the value is an object of operators.
        if !one.is_object() {
            assert_eq!(ids(&json!({column: one})).await, json!([1]), "{column}");
        }
    }
}

#[tokio::test]
async fn texts_have_patterns() {
    prepare().await;
    for column in ["tx", "vc", "ch", "ci"] {
        for (operator, value, sql) in [
            ("like", "%n%", "like '%n%'"),
            ("like", "o__", "like 'o__'"),
            ("ilike", "ONE%", "ilike 'ONE%'"),
            ("startsWith", "One_", "like 'One\\_%'"),
            ("startsWith", "", "like '%'"),
            ("endsWith", "%", "like '%\\%'"),
            ("contains", "_", "like '%\\_%'"),
            ("contains", "w", "like '%w%'"),
            ("regex", "^t.o$", "~ '^t.o$'"),
            ("iregex", "^ONE", "~* '^ONE'"),
        ] {
            let condition = json!({column: {operator: value}});
            let expected = by_sql(&format!("{column} {sql}")).await;
            assert_eq!(ids(&condition).await, expected, "{condition}");
        }
    }
    let broken = json!({"w": {"tx": {"regex": "("}}});
    let response = ask(
        Some("demo"),
        "query($w: JSON) { getGqlOperators(where: $w) { id } }",
        broken,
    )
    .await;
    assert_eq!(
        response["errors"][0]["extensions"]["code"], "BAD_USER_INPUT",
        "{response}"
    );
    assert!(
        response["errors"][0]["message"]
            .as_str()
            .unwrap()
            .contains("where.tx.regex"),
        "{response}"
    );
}
