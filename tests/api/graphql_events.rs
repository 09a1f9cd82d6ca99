//! Tests that values of events over GraphQL have the same forms as in queries (API.md, "Values in
//! events").

use serde_json::json;

use crate::graphql::{ask, data, wait_for_type};
use crate::service::demo;
use crate::socket_client::socket;

const FIELDS: &str = "id span pair pairs spans many text flags counts ratio ratios doc day moment \
    at { x y } shapes { points { x } } during { lower upper empty } ranges { lower }";

async fn prepare(name: &str) {
    let setup = format!(
        "create type ev_pair_{name} as (a int, b text);
         create table ev_forms_{name} (id int8 primary key, span interval, pair ev_pair_{name}, \
            pairs ev_pair_{name}[], spans interval[], many int4multirange, text text, flags bool[], \
            counts int8[], ratio float8, ratios float8[], doc jsonb, day date, moment timestamptz, \
            at point, shapes polygon[], during tstzrange, ranges int4range[], \
            sure float8 not null default 1, price numeric);
         alter table ev_forms_{name} owner to demo; alter type ev_pair_{name} owner to demo"
    );
    demo().admin().await.batch_execute(&setup).await.unwrap();
}

#[tokio::test]
async fn an_event_shows_a_row_as_a_query_does() {
    prepare("same").await;
    wait_for_type("EvFormsSame").await;
    let mut socket = socket("demo").await;
    let document = format!("subscription {{ EvFormsSameMessageAdded {{ {FIELDS} }} }}");
    socket.subscribe("a", &document).await;
    for (id, values) in [
        (
            1,
            "'1 mon 2 days 03:04:05.6', '(1,\"x y\")', '{\"(2,b)\",NULL}', '{1 day,NULL}', '{[1,3)}', \
             'é\"', '{t,f,NULL}', '{9007199254740993}', 1.5, '{1,2.5}', '{\"a\": [1]}', '2024-02-29', \
             '2024-02-29 12:00+02', '(1,2)', '{\"((0,0),(1,1))\"}', '[2024-01-01,)', '{\"[1,3)\",empty}'",
        ),
        (
            2,
            "null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null",
        ),
        (
            3,
            "'-1 day', '(,)', '{}', '{}', '{}', '', '{}', '{}', -0.0, '{}', 'null', 'infinity', \
             '-infinity', '(1e300,-2)', '{}', 'empty', '{}'",
        ),
    ] {
        let insert = format!("insert into ev_forms_same values ({id}, {values})");
        demo().rows("demo", &insert, json!({})).await;
        let event = socket.receive().await;
        let query = format!("{{ rows: getEvFormsSame(id: {id}) {{ {FIELDS} }} }}");
        let rows = data("demo", &query, json!({})).await["rows"].clone();
        assert_eq!(event["data"]["EvFormsSameMessageAdded"], rows, "{event}");
        assert!(rows[0]["id"].is_string(), "{rows}");
    }
}

#[tokio::test]
async fn what_graphql_cannot_show_is_null_with_an_error_at_its_path_as_in_a_query() {
    prepare("odd").await;
    wait_for_type("EvFormsOdd").await;
    let mut socket = socket("demo").await;
    let fields = "id sure ratio ratios flags at { x y } shapes { points { x } } day moment price";
    let document = format!("subscription {{ rows: EvFormsOddMessageAdded {{ {fields} }} }}");
    socket.subscribe("a", &document).await;
    for (id, columns, flaws) in [
        (1, "(id, ratio) values (1, 'NaN')", 1),
        (2, "(id, ratios) values (2, '{1,Infinity}')", 1),
        (
            3,
            "(id, flags, ratio) values (3, '{{t},{f}}', '-Infinity')",
            2,
        ),
        (4, "(id, at) values (4, '(NaN,1)')", 1),
        (5, "(id, sure, ratio) values (5, 'NaN', 2)", 1),
        (
            6,
            "(id, day, moment, price) values (6, 'infinity', '-infinity', 'NaN')",
            0,
        ),
        (7, "(id, shapes) values (7, '{\"((0,0),(NaN,1))\"}')", 1),
    ] {
        let insert = format!("insert into ev_forms_odd {columns}");
        demo().rows("demo", &insert, json!({})).await;
        let event = socket.receive().await;
        assert_eq!(event["type"], "subscription", "{event}");
        assert!(event["cursor"].is_string(), "{event}");
        let query = format!("{{ rows: getEvFormsOdd(id: {id}) {{ {fields} }} }}");
        let response = ask(Some("demo"), &query, json!({})).await;
        assert_eq!(event["data"], response["data"], "{columns}");
        assert_eq!(event["errors"], response["errors"], "{columns}");
        let found = event["errors"].as_array().map_or(0, Vec::len);
        assert_eq!(found, flaws, "{columns}: {event}");
    }
}
