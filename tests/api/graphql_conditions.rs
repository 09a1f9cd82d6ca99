//! Tests combined conditions, refused conditions, and the forms of exact numbers (API.md,
//! "Conditions").

use serde_json::{Value, json};

use crate::graphql::{ask, data, has_no_data, wait_for_type};
use crate::graphql_operators::{ids, prepare};
use crate::service::demo;

/// Sends a query that must fail with an input error at `place` and return no data.
async fn refused(query: &str, variables: Value, place: &str) {
    let response = ask(Some("demo"), query, variables).await;
    let error = &response["errors"][0];
    assert_eq!(error["extensions"]["code"], "BAD_USER_INPUT", "{response}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(place), "{place}: {message}");
    assert!(has_no_data(&response["data"]), "{response}");
}

#[tokio::test]
async fn an_operator_that_a_type_lacks_is_named() {
    prepare().await;
    let mut cases = vec![
        ("js", "eq"),
        ("js", "in"),
        ("xm", "gt"),
        ("pt", "gt"),
        ("bx", "lt"),
    ];
    for column in ["i4", "nu", "bo", "da", "uu", "en", "iv", "ba"] {
        for operator in [
            "like",
            "ilike",
            "startsWith",
            "endsWith",
            "contains",
            "containedBy",
            "overlaps",
            "regex",
            "iregex",
        ] {
            cases.push((column, operator));
        }
    }
    for column in ["ta", "r4", "mr", "jb"] {
        for operator in ["like", "startsWith", "regex"] {
            cases.push((column, operator));
        }
    }
    for column in ["tx", "ci"] {
        cases.extend([(column, "containedBy"), (column, "overlaps")]);
    }
    for column in ["tx", "i4", "uu", "ta"] {
        for operator in [
            "EQ", "Like", "=", "_eq", "is", "between", "isnull", "not", "or",
        ] {
            cases.push((column, operator));
        }
    }
    for (column, operator) in cases {
        let condition = json!({"or": [{column: {operator: "a"}}]});
        let query = "query($w: JSON) { getGqlOperators(where: $w) { id } }";
        let place = format!("`where.or[0].{column}.{operator}`");
        refused(query, json!({"w": condition}), &place).await;
    }
    // These types have `eq`, `neq` and `in`, or `isNull`, though not the operators above.
    for (condition, expected) in [
        (json!({"pt": {"eq": {"x": 1, "y": 2}}}), json!([1])),
        (json!({"pt": {"neq": "(1,2)"}}), json!([2])),
        (json!({"pt": {"in": ["(3,4)"]}}), json!([2])),
        (json!({"bx": {"eq": "(1,1),(0,0)"}}), json!([1])),
        (json!({"js": {"isNull": true}}), json!([3])),
        (json!({"xm": {"isNull": false}}), json!([1, 2])),
    ] {
        assert_eq!(ids(&condition).await, expected, "{condition}");
    }
}

#[tokio::test]
async fn a_value_of_the_wrong_kind_is_named() {
    prepare().await;
    for (column, operator, value) in [
        ("i2", "eq", json!(40_000)),
        ("i4", "gt", json!(2_147_483_648_i64)),
        ("i4", "gt", json!(1.5)),
        ("i4", "gt", json!("x")),
        ("i4", "gt", json!(true)),
        ("i4", "gt", json!([1])),
        ("i4", "gt", json!(null)),
        ("i8", "eq", json!("9223372036854775808")),
        ("nu", "lt", json!("1,5")),
        ("f8", "lt", json!("1e999")),
        ("tx", "like", json!(1)),
        ("tx", "startsWith", json!(null)),
        ("tx", "eq", json!("\u{0}")),
        ("tx", "eq", json!({"a": 1})),
        ("bo", "eq", json!("maybe")),
        ("bo", "eq", json!(1)),
        ("da", "eq", json!("2023-02-29")),
        ("da", "eq", json!(20_230_229)),
        ("ti", "eq", json!("25:00")),
        ("ts", "eq", json!("soon")),
        ("tt", "eq", json!("2024-13-01T00:00:00Z")),
        ("uu", "eq", json!("not-a-uuid")),
        ("en", "eq", json!("glad")),
        ("iv", "eq", json!("a while")),
        ("ba", "eq", json!("\\xzz")),
        ("ta", "contains", json!("a")),
        ("ta", "contains", json!({"a": 1})),
        ("ia", "overlaps", json!(["x"])),
        ("r4", "overlaps", json!({"lower": "x"})),
        ("r4", "overlaps", json!({"nothing": 1})),
        ("r4", "eq", json!("[5,1)")),
        ("rd", "contains", json!("2024-99-01")),
        ("jb", "overlaps", json!({"a": 1})),
        ("pt", "eq", json!({"x": 1})),
        ("inet", "eq", json!("10.0.0.999")),
        ("i4", "in", json!(1)),
        ("i4", "in", json!([1, "x"])),
        ("i4", "in", json!(null)),
        ("i4", "nin", json!("1")),
        ("i4", "isNull", json!("true")),
        ("i4", "isNull", json!(null)),
    ] {
        let condition = json!({"not": {column: {operator: value}}});
        let query = "query($w: JSON) { getGqlOperators(where: $w) { id } }";
        let place = format!("where.not.{column}");
        refused(query, json!({"w": condition}), &place).await;
    }
}

/// Keys are columns, or `and`, `or` and `not` in any letter case. Several keys mean AND.
#[tokio::test]
async fn combinators_are_accepted_in_any_case() {
    prepare().await;
    for (condition, expected) in [
        (json!({"i4": {"gte": 10}, "tx": "two"}), json!([2])),
        (json!({"aNd": [{"i4": 10}, {"tx": "two"}]}), json!([])),
        (json!({"Or": [{"i4": 10}, {"tx": "two"}]}), json!([1, 2])),
        (json!({"AND": []}), json!([1, 2, 3])),
        (json!({"or": []}), json!([])),
        (json!({"Not": {"i4": 10, "tx": "One_%"}}), json!([2])),
        (json!({"NOT": [{"i4": 10}, {"tx": "One_%"}]}), json!([2])),
        (json!({"nOT": []}), json!([])),
        (json!({"not": {}}), json!([])),
        (json!({"not": {"not": {"i4": 10}}}), json!([1])),
        (
            json!({"not": {"or": [{"i4": 10}, {"i4": null}]}}),
            json!([2]),
        ),
        (
            json!({"or": [{"and": [{"i4": {"gt": 5}}, {"not": {"i4": 20}}]}, {"id": 3}], "id": {"in": ["1", 3]}}),
            json!([1, 3]),
        ),
    ] {
        assert_eq!(ids(&condition).await, expected, "{condition}");
    }
    let query = "query($w: JSON) { getGqlOperators(where: $w) { id } }";
    for condition in [
        json!({"and": {"i4": 1}}),
        json!({"or": 1}),
        json!({"not": 1}),
        json!({"and": [1]}),
        json!({"or": [null]}),
        json!(1),
        json!("i4 = 1"),
        json!([{"i4": 1}]),
    ] {
        let response = ask(Some("demo"), query, json!({"w": condition})).await;
        assert_eq!(
            response["errors"][0]["extensions"]["code"], "BAD_USER_INPUT",
            "{condition}: {response}"
        );
    }
    let again = "{ getGqlOperators(where: {id: 1, id: 2}) { id } }";
    let response = ask(Some("demo"), again, json!({})).await;
    assert!(response["errors"][0]["message"].is_string(), "{response}");
}

/// numeric, int8 and ID take a number or a string, in `where` and in `data`.
#[tokio::test]
async fn exact_numbers_and_keys_come_as_numbers_or_strings() {
    let table = "create table if not exists gql_exact (id int8 primary key, n numeric, b int8)";
    demo().rows("demo", table, json!({})).await;
    let insert = "mutation($o: [JSON!]) { insertGqlExact(objects: $o) { id n b } }";
    let objects = json!([{"id": 1, "n": 0.1, "b": 7}, {"id": "9007199254740993", "n": "12345678901234567890.123", "b": "9007199254740995"}]);
    let found = data("demo", insert, json!({"o": objects})).await;
    assert_eq!(
        found["insertGqlExact"],
        json!([{"id": "1", "n": "0.1", "b": "7"}, {"id": "9007199254740993", "n": "12345678901234567890.123", "b": "9007199254740995"}])
    );
    // A number in a JSON text keeps all its digits too.
    let query = "{ a: getGqlExact(where: {n: 12345678901234567890.123}) { id } b: getGqlExact(where: {b: 9007199254740995}) { id } c: getGqlExact(id: 9007199254740993) { id } d: getGqlExact(id: \"9007199254740993\", where: {n: {gt: \"1\"}}) { id } e: getGqlExact(where: {id: {lt: \"2\"}}) { id } }";
    let big = json!([{"id": "9007199254740993"}]);
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({"a": big, "b": big, "c": big, "d": big, "e": [{"id": "1"}]})
    );
}

/// Without this check PostgreSQL would refuse the query, and the error would have no location.
#[tokio::test]
async fn a_type_without_an_order_is_named_where_one_is_asked_for() {
    let setup = "create table if not exists gql_unordered (id int primary key, j json, x xml, jp jsonpath, \
         p point, bx box, jl json[], jb jsonb, xi xid)";
    demo().rows("demo", setup, json!({})).await;
    wait_for_type("GqlUnordered").await;
    for column in ["j", "x", "jp", "p", "bx", "jl", "xi"] {
        for (order, place) in [
            (json!({column: "asc"}), format!("`orderBy.{column}`")),
            (
                json!([{"id": "asc"}, {column: "desc"}]),
                format!("`orderBy[1].{column}`"),
            ),
        ] {
            let query = "query($o: JSON) { getGqlUnordered(orderBy: $o) { id } }";
            refused(query, json!({"o": order}), &place).await;
        }
    }
    let by = "query($g: [String!]) { getGqlUnorderedAggregate(groupBy: $g) { count } }";
    for column in ["j", "jp", "p", "jl"] {
        let response = ask(Some("demo"), by, json!({"g": ["id", column]})).await;
        let message = response["errors"][0]["message"].to_string();
        assert!(message.contains("`groupBy[1]`"), "{column}: {response}");
    }
    for (condition, place) in [
        (json!({"jp": {"eq": "$.a"}}), "`where.jp.eq`"),
        (json!({"jp": {"gt": "$.a"}}), "`where.jp.gt`"),
        (json!({"jp": "$.a"}), "`where.jp.eq`"),
        (json!({"xi": {"gt": 1}}), "`where.xi.gt`"),
    ] {
        let query = "query($w: JSON) { getGqlUnordered(where: $w) { id } }";
        refused(query, json!({"w": condition}), place).await;
    }
    data(
        "demo",
        "{ getGqlUnordered(orderBy: {jb: asc}, where: {xi: 1}) { id } }",
        json!({}),
    )
    .await;
}

/// Only exact numbers and IDs accept strings as numbers (API.md, "Conditions"), and no column
/// accepts a boolean as a string.
#[tokio::test]
async fn a_text_is_a_string() {
    let setup = "create table if not exists gql_texts (id text primary key, t text, v varchar(9), c char(3), \
         n name, l text[], b bigint, m numeric, o bit(3))";
    demo().rows("demo", setup, json!({})).await;
    wait_for_type("GqlTexts").await;
    let insert = "mutation($d: JSON) { insertGqlTexts(data: $d) { id t l b m } }";
    let update = "mutation($d: JSON) { updateGqlTexts(id: \"1\", data: $d) { id } }";
    let read = "query($d: JSON) { getGqlTexts(where: $d) { id } }";
    let kept = json!({"id": 1, "t": "1", "l": ["true", null], "b": "5", "m": 1.5});
    let row = json!([{"id": "1", "t": "1", "l": ["true", null], "b": "5", "m": "1.5"}]);
    let response = data("demo", insert, json!({"d": kept})).await;
    assert_eq!(response["insertGqlTexts"], row);
    for (column, value) in [
        ("id", json!(true)),
        ("t", json!(1)),
        ("t", json!(true)),
        ("v", json!(1.5)),
        ("c", json!(1)),
        ("n", json!(false)),
        ("o", json!(101)),
        ("l", json!(["a", 1])),
        ("l", json!([[true]])),
    ] {
        for (query, place) in [(insert, "`data."), (update, "`data."), (read, "`where.")] {
            let given = json!({column: value});
            refused(query, json!({"d": given}), &format!("{place}{column}`")).await;
        }
    }
    refused(
        read,
        json!({"d": {"t": {"in": ["a", 1]}}}),
        "`where.t.in[1]`",
    )
    .await;
    refused(
        read,
        json!({"d": {"not": {"t": {"gt": 1}}}}),
        "`where.not.t.gt`",
    )
    .await;
    let listed = json!([{"id": "3"}, {"id": 4, "t": 5}]);
    refused(insert, json!({"d": listed}), "`objects[1].t`").await;
    // An ID and an exact number accept a number or a string.
    for condition in [
        json!({"id": 1}),
        json!({"id": {"in": [1, "2"]}}),
        json!({"b": "5", "m": 1.5}),
        json!({"t": "1", "l": ["true", null]}),
    ] {
        let found = data("demo", read, json!({"d": condition})).await;
        assert_eq!(found["getGqlTexts"], json!([{"id": "1"}]), "{condition}");
    }
    let rows = data("demo", "{ getGqlTexts(id: 1) { id t l b m } }", json!({})).await;
    assert_eq!(rows["getGqlTexts"], row);
}

/// The maximum of a case-insensitive type follows that type, not text.
#[tokio::test]
async fn citext_has_a_least_and_a_greatest() {
    prepare().await;
    let setup = "create table if not exists gql_citexts (id int primary key, c citext)";
    demo().rows("demo", setup, json!({})).await;
    wait_for_type("GqlCitexts").await;
    let fill = "insert into gql_citexts values (1, 'b'), (2, 'C'), (3, 'A') on conflict do nothing";
    demo().rows("demo", fill, json!({})).await;
    let query = "{ getGqlCitextsAggregate { min { c } max { c } } }";
    let found = data("demo", query, json!({})).await;
    let expected = json!([{"min": {"c": "A"}, "max": {"c": "C"}}]);
    assert_eq!(found["getGqlCitextsAggregate"], expected);
}

/// A key that is exactly a column's name is the column. The combinator can be written in another
/// letter case.
#[tokio::test]
async fn columns_may_be_called_like_combinators() {
    let setup = "create table if not exists gql_words (id int primary key, \"and\" int, \"or\" int, \"not\" int, eq int)";
    demo().rows("demo", setup, json!({})).await;
    let fill =
        "insert into gql_words values (1, 1, 2, 3, 4), (2, 4, 5, 6, 7) on conflict do nothing";
    demo().rows("demo", fill, json!({})).await;
    wait_for_type("GqlWords").await;
    for (condition, ids) in [
        (json!({"and": 1}), &["1"][..]),
        (json!({"or": {"gt": 2}, "eq": {"eq": 7}}), &["2"]),
        (json!({"not": null}), &[]),
        (json!({"NOT": {"not": 3}}), &["2"]),
        (json!({"Or": [{"or": 2}, {"and": 4}]}), &["1", "2"]),
        (json!({"AND": [{"and": 1}, {"or": 5}]}), &[]),
    ] {
        let query = "query($w: JSON) { x: getGqlWords(where: $w, orderBy: {id: asc}) { id } }";
        let found = data("demo", query, json!({"w": condition})).await;
        let ids: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
        assert_eq!(found["x"], json!(ids), "{condition}");
    }
}

/// PostgreSQL has operators only for the enum below the domain; the same applies to foreign keys.
#[tokio::test]
async fn domains_over_enums_are_compared_as_their_enums() {
    let setup = "create type gql_temper as enum ('sad', 'ok', 'glad');
         create domain gql_temperd as gql_temper; create domain gql_sworn as gql_temperd not null;
         create table gql_humours (m gql_temperd primary key, note text);
         create table gql_feeling (id int primary key, m gql_temperd, d gql_sworn, ms gql_temperd[]);
         insert into gql_humours values ('sad', 'a'), ('ok', 'b'), ('glad', 'c');
         insert into gql_feeling values (1, 'sad', 'glad', '{ok}'), (2, 'ok', 'ok', '{}'), (3, 'glad', 'sad', null), (4, null, 'ok', null);
         alter table gql_humours owner to demo; alter table gql_feeling owner to demo";
    demo().admin().await.batch_execute(setup).await.unwrap();
    wait_for_type("GqlFeeling").await;
    for (condition, found) in [
        (json!({"m": "ok"}), &["2"][..]),
        (json!({"d": {"eq": "ok"}}), &["2", "4"]),
        (json!({"m": {"neq": "ok"}}), &["1", "3"]),
        (json!({"m": {"gt": "sad"}}), &["2", "3"]),
        (json!({"m": {"gte": "ok", "lt": "glad"}}), &["2"]),
        (json!({"d": {"lte": "ok"}}), &["2", "3", "4"]),
        (json!({"m": {"in": ["sad", "glad"]}}), &["1", "3"]),
        (json!({"m": {"nin": ["sad", "glad"]}}), &["2"]),
        (json!({"m": null}), &["4"]),
        (json!({"ms": ["ok"]}), &["1"]),
        (json!({"ms": {"contains": ["ok"]}}), &["1"]),
    ] {
        let query = "query($w: JSON) { x: getGqlFeeling(where: $w, orderBy: {id: asc}) { id } }";
        let rows = data("demo", query, json!({"w": condition})).await;
        let ids: Vec<_> = found.iter().map(|id| json!({"id": id})).collect();
        assert_eq!(rows["x"], json!(ids), "{condition}");
    }
    let query = "{ getGqlHumours(id: \"ok\") { note } getGqlFeeling(where: {id: {lt: 3}}, orderBy: {m: desc}) { id }
        by: getGqlFeelingAggregate(groupBy: [\"d\"], where: {d: \"ok\"}) { d count } }";
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({
            "getGqlHumours": [{"note": "b"}],
            "getGqlFeeling": [{"id": "2"}, {"id": "1"}],
            "by": [{"d": "ok", "count": 2}],
        })
    );
    let query = "mutation { updateGqlFeeling(where: {m: {lt: \"glad\"}}, data: {m: \"glad\"}) { id m } deleteGqlFeeling(where: {d: {in: [\"glad\"]}}) { id } }";
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({
            "updateGqlFeeling": [{"id": "1", "m": "glad"}, {"id": "2", "m": "glad"}],
            "deleteGqlFeeling": [{"id": "1"}],
        })
    );
}

/// Values of this type can be distinguished and sorted, but PostgreSQL has no `<` for them.
#[tokio::test]
async fn pairs_have_no_order_operators() {
    demo()
        .admin()
        .await
        .batch_execute(
            "select pg_advisory_xact_lock(1504); create extension if not exists hstore;
             create table gql_pairs (id int primary key, h hstore);
             insert into gql_pairs values (1, 'a=>1'), (2, 'b=>2'); alter table gql_pairs owner to demo",
        )
        .await
        .unwrap();
    wait_for_type("GqlPairs").await;
    let query = "{ x: getGqlPairs(where: {h: {eq: \"a=>1\"}}) { id } y: getGqlPairs(orderBy: {h: desc}) { id } }";
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({"x": [{"id": "1"}], "y": [{"id": "2"}, {"id": "1"}]})
    );
    let query = "query($d: JSON) { x: getGqlPairs(where: $d) { id } }";
    for operator in ["gt", "gte", "lt", "lte"] {
        let place = format!("`where.h.{operator}` is not an operator for hstore");
        refused(query, json!({"d": {"h": {operator: "a=>1"}}}), &place).await;
    }
}
