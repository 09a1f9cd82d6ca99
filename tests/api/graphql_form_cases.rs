//! Tests special cases of values with JSON forms of their own over GraphQL: aggregates, arrays of
//! boxes, types that change, keys, and JSON null (API.md, "Values").

use serde_json::json;

use crate::graphql::{data, wait_for_type};
use crate::graphql_forms::count;
use crate::graphql_types::{TYPE, written};
use crate::service::demo;

#[tokio::test]
async fn aggregates_show_intervals_as_objects() {
    let setup = "create table gqf_spans (id int primary key, team text, span interval);
         insert into gqf_spans values (1, 'a', '1 day'), (2, 'a', '3 days 02:00'), (3, 'b', '1 day');
         alter table gqf_spans owner to demo";
    demo().admin().await.batch_execute(setup).await.unwrap();
    wait_for_type("GqfSpans").await;
    let span = |d: i64, h: i64| json!({"y": 0, "m": 0, "d": d, "h": h, "i": 0, "s": 0});
    let query = "{ all: getGqfSpansAggregate { sum { span } avg { id } min { span } max { span } }
                   by: getGqfSpansAggregate(groupBy: [\"span\"]) { span count } }";
    let found = data("demo", query, json!({})).await;
    let all = &found["all"][0];
    assert_eq!(all["sum"]["span"], span(5, 2));
    assert_eq!(
        (&all["min"]["span"], &all["max"]["span"]),
        (&span(1, 0), &span(3, 2))
    );
    let mut groups = found["by"].as_array().unwrap().clone();
    groups.sort_by_key(|group| group["count"].as_i64());
    assert_eq!(
        groups,
        [
            json!({"span": span(3, 2), "count": 1}),
            json!({"span": span(1, 0), "count": 2}),
        ]
    );
}

/// PostgreSQL separates the boxes in an array by semicolons.
#[tokio::test]
async fn several_rows_with_boxes_are_inserted_at_once() {
    let setup = "create table gqf_boxes (id int primary key, area box);
         alter table gqf_boxes owner to demo";
    demo().admin().await.batch_execute(setup).await.unwrap();
    wait_for_type("GqfBoxes").await;
    let area = |x: i64| json!({"start": {"x": x, "y": x}, "end": {"x": 0, "y": 0}});
    let rows = json!([{"id": "1", "area": area(1)}, {"id": "2", "area": area(2)}]);
    let query = "mutation($o: [JSON]) { insertGqfBoxes(objects: $o) {
                     id area { start { x y } end { x y } } } }";
    let response = data("demo", query, json!({"o": rows})).await;
    assert_eq!(response["insertGqfBoxes"], rows);
}

/// Another client changes the type. The cached type is stale until a notification arrives, and no
/// request may fail because of that.
#[tokio::test]
async fn a_composite_that_changes_fails_no_request() {
    let setup = "create type gqf_changing as (a int, b text);
         create table gqf_changes (id int primary key, v gqf_changing);
         insert into gqf_changes values (1, '(1,x)'); alter table gqf_changes owner to demo";
    let admin = demo().admin().await;
    admin.batch_execute(setup).await.unwrap();
    wait_for_type("GqfChanges").await;
    let query = "{ x: getGqfChanges { v } }";
    let mutation = "mutation { x: updateGqfChanges(id: 1, data: {id: 1}) { v } }";
    for number in 0..12 {
        for document in [query, mutation, query] {
            data("demo", document, json!({})).await;
        }
        let change = format!("alter type gqf_changing add attribute n{number} int");
        admin.batch_execute(&change).await.unwrap();
        let document = if number % 2 == 0 { query } else { mutation };
        let found = data("demo", document, json!({})).await;
        let shown = found["x"][0]["v"].as_object().unwrap();
        assert_eq!(shown.len(), 3 + number, "{found}");
    }
}

/// A key of such a type is a text, because an ID is one string.
#[tokio::test]
async fn keys_of_such_types_are_texts_and_their_references_are_not() {
    let setup = "create type gqf_pair as (a int, b text);
         create table gqf_keys (pair gqf_pair primary key, span interval unique);
         create table gqf_refs (id int primary key, pair gqf_pair references gqf_keys,
            span interval references gqf_keys (span));
         insert into gqf_keys values ('(1,x)', '1 day'); insert into gqf_refs values (1, '(1,x)', '1 day');
         alter table gqf_keys owner to demo; alter table gqf_refs owner to demo";
    demo().admin().await.batch_execute(setup).await.unwrap();
    wait_for_type("GqfRefs").await;
    let query = "{ keys: getGqfKeys { pair span gqfRefsByPair { pair span } }
                   refs: getGqfRefs { pair gqfKeys { pair } gqfRefsSpanFkey { pair } } }";
    let (pair, span) = (
        json!({"a": 1, "b": "x"}),
        json!({"y": 0, "m": 0, "d": 1, "h": 0, "i": 0, "s": 0}),
    );
    assert_eq!(
        data("demo", query, json!({})).await,
        json!({
            "keys": [{"pair": "(1,x)", "span": span, "gqfRefsByPair": [{"pair": pair, "span": span}]}],
            "refs": [{"pair": pair, "gqfKeys": {"pair": "(1,x)"}, "gqfRefsSpanFkey": {"pair": "(1,x)"}}],
        })
    );
    let query = "query($id: ID, $pair: JSON) { a: getGqfKeys(id: $id) { pair }
                   b: getGqfKeys(where: {pair: {eq: $pair}}) { pair }
                   c: getGqfRefs(where: {pair: {eq: $id}}) { id } }";
    let found = data("demo", query, json!({"id": "(1,x)", "pair": pair})).await;
    let key = json!([{"pair": "(1,x)"}]);
    assert_eq!(found, json!({"a": key, "b": key, "c": [{"id": "1"}]}));
}

/// A JSON null is returned as null, so a field of type json is always nullable. A list condition
/// can find it, and SQL can write it.
#[tokio::test]
async fn a_json_null_is_returned_as_null_and_differs_from_an_sql_null() {
    let setup = "create domain gqf_note as jsonb not null;
         create table gqf_nulls (id int primary key, j json not null, b jsonb not null, n gqf_note,
            list jsonb[] not null, free jsonb);
         insert into gqf_nulls values (1, 'null', 'null', 'null', '{null}', 'null'),
            (2, '1', '[null]', '{\"a\":null}', '{}', null);
         alter table gqf_nulls owner to demo";
    demo().admin().await.batch_execute(setup).await.unwrap();
    wait_for_type("GqfNulls").await;
    let query = format!("{{ __type(name: \"GqfNulls\") {{ fields {{ {TYPE} }} }} }}");
    let found = data("demo", &query, json!({})).await;
    let fields = found["__type"]["fields"].as_array().unwrap();
    let types: Vec<_> = fields.iter().map(|field| written(&field["type"])).collect();
    assert_eq!(types, ["ID!", "JSON", "JSON", "JSON", "[JSON]!", "JSON"]);
    let query = "{ getGqfNulls(orderBy: {id: asc}) { j b n list free } }";
    assert_eq!(
        data("demo", query, json!({})).await["getGqfNulls"],
        json!([
            {"j": null, "b": null, "n": null, "list": [null], "free": null},
            {"j": 1, "b": [null], "n": {"a": null}, "list": [], "free": null},
        ])
    );
    let query = "query($w: JSON) { rows: getGqfNulls(where: $w, orderBy: {id: asc}) { id } }";
    for (condition, ids) in [
        (json!({"b": {"in": [null]}}), &["1"][..]),
        (json!({"free": {"in": [null]}}), &["1"]),
        (json!({"free": {"eq": null}}), &["2"]),
        (json!({"free": {"isNull": false}}), &["1"]),
        (json!({"b": {"nin": [null]}}), &["2"]),
        (json!({"b": {"in": [null, [null]]}}), &["1", "2"]),
        (json!({"b": null}), &[]),
    ] {
        let found = data("demo", query, json!({"w": condition})).await;
        let expected: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
        assert_eq!(found["rows"], json!(expected), "{condition}");
    }
    // A null as input means SQL NULL.
    let query =
        "mutation { updateGqfNulls(where: {free: {in: [null]}}, data: {free: null}) { id } }";
    assert_eq!(
        data("demo", query, json!({})).await["updateGqfNulls"],
        json!([{"id": "1"}])
    );
    assert_eq!(
        count("select count(*) from gqf_nulls where free is null").await,
        2
    );
    // API.md documents this way to write a JSON null.
    let q = "update gqf_nulls set free = 'null' where id = 1";
    demo().rows("demo", q, json!({})).await;
    let found = data(
        "demo",
        "{ x: getGqfNulls(where: {free: {in: [null]}}) { id } }",
        json!({}),
    )
    .await;
    assert_eq!(found["x"], json!([{"id": "1"}]));
}
