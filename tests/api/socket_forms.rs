//! Tests the forms of subscriptions and of their messages (API.md, "Sockets and change events").

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::service::{demo, eventually};
use crate::socket_client::socket;

async fn write(q: &str) {
    demo().rows("demo", q, json!({})).await;
}

#[tokio::test]
async fn variables_and_the_name_of_an_operation_count() {
    write("create table ev_forms (id int8 primary key, name text)").await;
    let known = "{ __type(name: \"EvForms\") { name } }";
    eventually("the table is in the schema", || async {
        let response = crate::graphql::ask(Some("demo"), known, json!({})).await;
        !response["data"]["__type"].is_null()
    })
    .await;
    let mut socket = socket("demo").await;
    let query = "query Other { __typename } \
                 subscription Wanted($name: String) { \
                     EvFormsMessageAdded(where: {name: {eq: $name}}) { id } }";
    let message = json!({"type": "subscribe", "id": "a", "schema": "public", "query": query,
        "variables": {"name": "x"}, "operationName": "Wanted"});
    assert_eq!(
        socket.ask(message).await,
        json!({"type": "subscribe_ack", "id": "a"})
    );
    write("insert into ev_forms values (1, 'w'), (2, 'x')").await;
    let event = socket.receive().await;
    assert_eq!(
        event["data"],
        json!({"EvFormsMessageAdded": [{"id": "2"}]}),
        "{event}"
    );
    let response = socket.ask(json!({"type": "unsubscribe", "id": "a"})).await;
    assert_eq!(response, json!({"type": "complete", "id": "a"}));
    let mutation = "mutation { insertEvForms(data: {id: 3, name: \"x\"}) { name } }";
    let message = json!({"type": "subscribe", "id": "a", "schema": "public", "query": mutation});
    let response = socket.ask(message).await;
    assert_eq!(
        (&response["type"], &response["errors"]),
        (&json!("next"), &Value::Null),
        "{response}"
    );
    assert_eq!(
        socket.receive().await,
        json!({"type": "complete", "id": "a"})
    );
    let rows = demo()
        .rows("demo", "select name from ev_forms where id = 3", json!({}))
        .await;
    assert_eq!(rows["data"], json!([{"name": "x"}]));
    assert!(socket.is_silent().await);
}

#[tokio::test]
async fn a_batch_shows_every_column_of_a_key() {
    write("create table ev_pair (a int, b text, c text, primary key (a, b))").await;
    let mut socket = socket("demo").await;
    let raw = json!({"type": "subscription", "id": "r", "schema": "public", "rel": "ev_pair",
        "columns": ["c"]});
    assert_eq!(socket.ask(raw).await["type"], "subscription_ack");
    write("insert into ev_pair values (1, 'x', 'y')").await;
    let batch = socket.receive().await;
    let batch = &batch["batch"]["demo"]["public.ev_pair"];
    assert_eq!(batch["INSERT"], json!([["a", 1, "b", "x"]]), "{batch}");
    assert_eq!(batch["full_data"], json!([{"c": "y"}]), "{batch}");
}

#[tokio::test]
async fn raw_values_have_the_forms_of_statements() {
    write(
        "create table ev_values (id int8 primary key, small int2, ratio float8, price numeric, \
         flag bool, text text, bytes bytea, day date, moment timestamptz, span interval, \
         tags text[], counts int4[], doc jsonb, uuid uuid, range int4range, at point, bits bit(3), \
         net inet)",
    )
    .await;
    let mut socket = socket("demo").await;
    let raw = json!({"type": "subscription", "id": "r", "schema": "public", "rel": "ev_values"});
    assert_eq!(socket.ask(raw).await["type"], "subscription_ack");
    for (id, values) in [
        (
            "9007199254740993",
            "-7, 0.1, 1.50, true, 'a\"b', '\\x00ff', '2024-02-29', '2024-02-29 12:00+02', '1 day', \
             '{x,NULL}', '{1,2}', '{\"a\": [1]}', '00000000-0000-0000-0000-000000000001', '[1,5)', \
             '(1,2)', '101', '10.0.0.1'",
        ),
        (
            "2",
            "null, 'NaN', 'NaN', null, '', '', 'infinity', '-infinity', '-1 mon', '{}', '{{1},{2}}', \
             'null', null, 'empty', null, null, null",
        ),
    ] {
        write(&format!("insert into ev_values values ({id}, {values})")).await;
        let batch = socket.receive().await;
        let shown = &batch["batch"]["demo"]["public.ev_values"]["full_data"];
        let q = format!("select * from ev_values where id = {id}");
        let rows = demo().rows("demo", &q, json!({})).await;
        assert_eq!(shown, &rows["data"], "{batch}");
        assert_eq!(rows["data"].as_array().unwrap().len(), 1, "{rows}");
    }
}

/// Conditions, each in the two forms of a subscription and in SQL.
fn conditions() -> Vec<(Value, &'static str)> {
    let texts = [
        "name = 'a'",
        "NOT name = 'a'",
        "name <> 'a' oR id = 1",
        "name LIKE 'a%'",
        "Not name ilike 'A_'",
        "id IN (1, 3, 5)",
        "name in ('a', 'b')",
        "name is null",
        "name IS NOT NULL AND flag = true",
        "price BETWEEN 1.5 AND 3",
        "not (id between 2 and 4 and (flag = false or price > 2))",
        "price >= 1.50 and price < '3'",
        "price != 2 AnD id <= 4",
        "flag = false or not flag = true",
    ];
    let mut all: Vec<_> = texts.into_iter().map(|text| (json!(text), text)).collect();
    all.extend([
        (json!({"name": {"isNull": true}}), "name IS NULL"),
        (json!({"name": {"isNull": false}}), "name IS NOT NULL"),
        (
            json!({"name": {"nin": ["a", "b"]}}),
            "name NOT IN ('a', 'b')",
        ),
        (
            json!({"Or": [{"flag": {"eq": true}}, {"id": {"lt": 2}}]}),
            "flag OR id < 2",
        ),
        (
            json!({"AND": [{"flag": {"neq": true}}, {"id": {"gte": 2}}]}),
            "flag <> true AND id >= 2",
        ),
        (json!({"not": {"price": {"gt": 2}}}), "NOT price > 2"),
        (
            json!({"NOT": {"name": {"in": ["a", "b"]}}}),
            "NOT name IN ('a', 'b')",
        ),
        (json!({"id": {"in": [1, 3]}}), "id IN (1, 3)"),
        (json!({"name": {"ilike": "A%"}}), "name ILIKE 'A%'"),
        (
            json!({"name": "a", "flag": true}),
            "name = 'a' AND flag = true",
        ),
        (json!({"name": null}), "name IS NULL"),
        (json!({"name": {"neq": null}}), "name IS NOT NULL"),
        (
            json!({"and": [{"or": [{"id": 1}, {"id": 2}]}, {"price": {"lte": "1.5"}}]}),
            "(id = 1 OR id = 2) AND price <= 1.5",
        ),
        (
            json!({"name": {"like": "%b"}, "id": {"lte": 4}}),
            "name LIKE '%b' AND id <= 4",
        ),
    ]);
    all
}

#[tokio::test]
async fn conditions_pass_the_rows_that_they_pass_in_postgresql() {
    write("create table ev_logic (id int8 primary key, name text, price numeric, flag bool)").await;
    let mut socket = socket("demo").await;
    let conditions = conditions();
    for (id, (condition, _)) in conditions.iter().enumerate() {
        let raw = json!({"type": "subscription", "id": id.to_string(), "schema": "public",
            "rel": "ev_logic", "columns": ["id"], "where": condition});
        let response = socket.ask(raw).await;
        assert_eq!(
            response["type"], "subscription_ack",
            "{condition}: {response}"
        );
    }
    write(
        "insert into ev_logic values (1, 'a', 1.5, true), (2, 'ab', 2, false), (3, null, null, null), \
         (4, 'b', 3.00, null), (5, 'A', 0, true), (6, 'Ab', 10, false)",
    )
    .await;
    let mut expected: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (id, (_, sql)) in conditions.iter().enumerate() {
        let q = format!("select id from ev_logic where {sql} order by id");
        let rows = demo().rows("demo", &q, json!({})).await;
        let rows = rows["data"].as_array().unwrap().clone();
        expected.insert(id.to_string(), rows);
    }
    let mut received: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for _ in 0..expected.values().map(Vec::len).sum() {
        let batch = socket.receive().await;
        let row = &batch["batch"]["demo"]["public.ev_logic"]["full_data"][0];
        let id = batch["id"].as_str().unwrap().to_owned();
        received.entry(id).or_default().push(row.clone());
    }
    expected.retain(|_, rows| !rows.is_empty());
    assert_eq!(received, expected);
    assert!(socket.is_silent().await);
}
