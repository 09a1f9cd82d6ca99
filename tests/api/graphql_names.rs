//! Tests unusual names: one table with an odd name never breaks a schema (API.md, "Names and
//! types").

use std::time::Instant;

use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{Service, TIMEOUT, demo, eventually};

/// Creates a schema in the demo with these statements, as its owner.
pub(crate) async fn prepare(schema: &str, statements: &str) {
    prepare_in(demo(), schema, statements).await;
}

/// Creates a schema as [`prepare`] does, in another demo.
pub(crate) async fn prepare_in(demo: &Service, schema: &str, statements: &str) {
    let admin = demo.admin().await;
    let all = format!(
        "begin; create schema {schema} authorization demo; set local role demo; \
         set local search_path = {schema}; {statements}; commit"
    );
    admin.batch_execute(&all).await.unwrap();
    let path = format!("/api/graphql/schema/{schema}");
    let query = json!({"query": "{ __typename }"}).to_string();
    eventually(schema, || async {
        let response = demo.ask(Method::POST, &path, Some("demo"), Some(query.clone()));
        response.await.status != 404
    })
    .await;
}

pub(crate) async fn send(schema: &str, query: &str, variables: &Value) -> (u16, Value) {
    let path = format!("/api/graphql/schema/{schema}");
    let body = json!({"query": query, "variables": variables}).to_string();
    let response = demo()
        .ask(Method::POST, &path, Some("demo"), Some(body))
        .await;
    (response.status, response.json())
}

pub(crate) async fn data(schema: &str, query: &str, variables: Value) -> Value {
    let (status, mut response) = send(schema, query, &variables).await;
    assert_eq!(
        (status, response.get("errors")),
        (200, None),
        "{query}: {response}"
    );
    response["data"].take()
}

/// The names of the fields of a type, including relationships.
pub(crate) async fn fields(schema: &str, r#type: &str) -> Vec<String> {
    let query = "query($t: String!) { __type(name: $t) { fields { name } } }";
    let found = data(schema, query, json!({"t": r#type})).await;
    let fields = found["__type"]["fields"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    fields
        .iter()
        .map(|field| field["name"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn reserved_words_are_names_like_others() {
    prepare(
        "gql_reserved",
        r#"create table "select" ("from" int primary key, "where" text, "order" text, "limit" text, id text, "group" int, "null" int, "true" int, "on" int, fragment int, query int);
           create table query (id int primary key, "__typename" text, "__x" int, mutation int, "query" text);
           create table "Query" (id int primary key, n int);
           create table mutation (id int primary key); create table subscription (id int primary key);
           create table date (id int primary key, date date); create table int (id int primary key, "Int" int);
           create table "JSON" (id int primary key, data int); create table point (id int primary key, point point);
           create table type (id int primary key, "_type" int, type text);
           create table input (id int primary key, data int, objects int, "onConflict" int, "orderBy" int)"#,
    )
    .await;
    let schema = "gql_reserved";
    assert_eq!(
        fields(schema, "Select").await,
        [
            "from", "where", "order", "limit", "id", "group", "null", "true", "on", "fragment",
            "query"
        ]
    );
    let query = r#"mutation($d: JSON) { insertSelect(data: $d) { from where order limit id group null true on fragment query } u: updateSelect(id: 1, where: {where: "w"}, data: {where: "x", on: 2}) { where on } }"#;
    let row = json!({"from": 1, "where": "w", "order": "o", "limit": "l", "id": "i", "group": 1, "null": 2, "true": 3, "on": 4, "fragment": 5, "query": 6});
    let found = data(schema, query, json!({"d": row})).await;
    let mut expected = row.clone();
    expected["from"] = json!("1");
    assert_eq!(
        found,
        json!({"insertSelect": [expected], "u": [{"where": "x", "on": 2}]})
    );
    let query = r#"{ getSelect(where: {where: "x", or: [{order: "o"}, {limit: "nothing"}]}, orderBy: {order: desc, where: asc}, limit: 1) { where } a: getSelectAggregate(groupBy: ["where", "group"]) { where group count max { limit } } }"#;
    assert_eq!(
        data(schema, query, Value::Null).await,
        json!({"getSelect": [{"where": "x"}], "a": [{"where": "x", "group": 1, "count": 1, "max": {"limit": "l"}}]})
    );
    // The types of GraphQL and of Tidegate keep their names. The tables get numbers, in the order
    // of their names.
    for (r#type, own) in [
        ("Query2", "n"),
        ("Query3", "mutation"),
        ("Mutation2", "id"),
        ("Subscription2", "id"),
        ("Date2", "date"),
        ("Int2", "Int"),
        ("JSON2", "data"),
        ("Point2", "point"),
        ("Type", "type"),
    ] {
        let found = fields(schema, r#type).await;
        assert!(found.contains(&own.to_owned()), "{type}: {found:?}");
    }
    // A column `__typename` does not hide the name of the type. Both can be selected.
    assert_eq!(
        fields(schema, "Query3").await,
        ["id", "_typename", "_x", "mutation", "query"]
    );
    let query = r#"mutation { insertQuery3(data: {id: 1, _typename: "mine", __x: 2, query: "q"}) { __typename _typename _x query } }"#;
    assert_eq!(
        data(schema, query, Value::Null).await["insertQuery3"],
        json!([{"__typename": "Query3", "_typename": "mine", "_x": 2, "query": "q"}])
    );
    let query = r#"{ getQuery3(where: {_typename: "mine", _x: 2, mutation: null}) { id } other: getQuery2 { id } p: getPoint2 { point { x } } d: getDate2 { date } t: getType { _type type } i: getInput { data objects onConflict orderBy } }"#;
    assert_eq!(
        data(schema, query, Value::Null).await,
        json!({"getQuery3": [{"id": "1"}], "other": [], "p": [], "d": [], "t": [], "i": []})
    );
}

#[tokio::test]
async fn characters_that_no_name_has_are_replaced_and_what_is_equal_then_is_numbered() {
    prepare(
        "gql_odd",
        r#"create table "1st place" ("1st" int primary key, "two words" int, "two_words" int, "größe" text, "a""b" int, "__x" int);
           create table "表" ("列" int primary key, "行" int, e int); create table "題" (id int primary key);
           create table "it's ""quoted""; --" (id int primary key, "back\slash	tab" text, "$1" int, "a'b" int, "%s" int);
           create table _ (_ int, __ int, ___ int); create table " " (" " int);
           create table my_table (id int primary key); create table "MyTable" (id int primary key); create table "my table" (id int primary key);
           create table "MyTable2" (id int primary key);
           create table artists (id int primary key); create table artists_aggregate (id int primary key, count int);
           insert into "1st place" values (1, 2, 3, 'x', 5, 6); insert into "表" values (1, 2, 3); insert into _ values (1, 2, 3);
           insert into "it's ""quoted""; --" values (1, 'y', 7, 8, 9)"#,
    )
    .await;
    let schema = "gql_odd";
    for (r#type, expected) in [
        (
            "T1stPlace",
            &["_st", "two_words2", "two_words", "gr__e", "a_b", "_x"][..],
        ),
        ("ItSQuoted", &["id", "back_slash_tab", "_1", "a_b", "_s"]),
        ("Table", &["_"]),
        ("Table2", &["_", "_2", "_3"]),
        ("Table3", &["_", "_2", "e"]),
        ("Table4", &["id"]),
        ("MyTable", &["id"]),
        ("MyTable2", &["id"]),
        ("MyTable3", &["id"]),
        ("MyTable4", &["id"]),
        ("Artists", &["id"]),
        ("ArtistsAggregate", &["id", "count"]),
    ] {
        assert_eq!(fields(schema, r#type).await, expected, "{type}");
    }
    let query = r#"{ a: getT1stPlace(id: 1, where: {two_words2: 2, gr__e: "x"}, orderBy: {a_b: desc}) { _st two_words2 two_words gr__e a_b _x } b: getItSQuoted { id back_slash_tab _1 a_b _s } c: getTable2 { _ _2 _3 } d: getTable3(id: 1) { _ _2 e } e: getT1stPlaceAggregate(groupBy: ["two words"]) { two_words2 sum { a_b two_words } } }"#;
    assert_eq!(
        data(schema, query, Value::Null).await,
        json!({
            "a": [{"_st": "1", "two_words2": 2, "two_words": 3, "gr__e": "x", "a_b": 5, "_x": 6}],
            "b": [{"id": "1", "back_slash_tab": "y", "_1": 7, "a_b": 8, "_s": 9}],
            "c": [{"_": 1, "_2": 2, "_3": 3}], "d": [{"_": "1", "_2": 2, "e": 3}],
            "e": [{"two_words2": 2, "sum": {"a_b": "5", "two_words": "3"}}],
        })
    );
    // Both names of a column are accepted in values.
    let query = "mutation($d: JSON, $e: JSON) { a: insertT1stPlace(data: $d) { _st two_words2 a_b } b: updateT1stPlace(where: {_st: 2}, data: $e) { gr__e } c: insertItSQuoted(data: {id: 2, _1: 5}) { _1 } d: deleteTable3(id: 1) { _2 } }";
    let variables = json!({"d": {"1st": 2, "two words": 7, "a\"b": 8}, "e": {"größe": "y"}});
    assert_eq!(
        data(schema, query, variables).await,
        json!({"a": [{"_st": "2", "two_words2": 7, "a_b": 8}], "b": [{"gr__e": "y"}], "c": [{"_1": 5}], "d": [{"_2": 2}]})
    );
}

#[tokio::test]
async fn tables_of_odd_shapes_are_read_and_written() {
    prepare(
        "gql_shapes",
        "create table nothing (); create table no_key (a int, b text);
         create table composite (a int, b text, c int, primary key (b, a));
         create table generated (id int generated always as identity primary key, n int, twice int generated always as (n * 2) stored);
         create table same (id int primary key, up int references same, down int references same);
         do $$ begin execute 'create table wide (' || (select string_agg(format('c%s int', n), ', ') from generate_series(1, 1600) n) || ')'; end $$;
         insert into no_key values (1, 'a'), (1, 'a'); insert into nothing default values; insert into wide (c1600) values (9);
         insert into same values (1, null, null), (2, 1, 1)",
    )
    .await;
    let schema = "gql_shapes";
    let query = "mutation { a: insertNothing(objects: [{}, {}]) { __typename _type } b: insertNoKey(data: {b: \"c\"}) { a b } c: insertComposite(data: {a: 1, b: \"x\"}) { a b c } d: insertGenerated(data: {n: 4}) { id n twice } e: updateNoKey(where: {a: 1}, data: {a: 2}) { a b } f: insertWide(data: {c1: 1, c1599: 2}) { c1 c2 c1599 c1600 } g: updateGenerated(id: 1, data: {n: 5}) { twice } }";
    assert_eq!(
        data(schema, query, Value::Null).await,
        json!({
            "a": [{"__typename": "Nothing", "_type": "Nothing"}, {"__typename": "Nothing", "_type": "Nothing"}],
            "b": [{"a": null, "b": "c"}], "c": [{"a": "1", "b": "x", "c": null}],
            "d": [{"id": "1", "n": 4, "twice": 8}], "e": [{"a": 2, "b": "a"}, {"a": 2, "b": "a"}],
            "f": [{"c1": 1, "c2": null, "c1599": 2, "c1600": null}], "g": [{"twice": 10}],
        })
    );
    let query = "{ getNothing { __typename } n: getNothingAggregate { count } w: getWide(where: {c1600: 9}) { c1600 } s: getSame(id: 2) { same { id } sameUpFkey { id } sameByUp { id } } x: getSame(id: 1) { sameByUp { id } sameByDown { id } } }";
    let three =
        json!([{"__typename": "Nothing"}, {"__typename": "Nothing"}, {"__typename": "Nothing"}]);
    assert_eq!(
        data(schema, query, Value::Null).await,
        json!({
            "getNothing": three, "n": [{"count": 3}], "w": [{"c1600": 9}],
            "s": [{"same": {"id": "1"}, "sameUpFkey": {"id": "1"}, "sameByUp": []}],
            "x": [{"sameByUp": [{"id": "2"}], "sameByDown": [{"id": "2"}]}],
        })
    );
    assert_eq!(fields(schema, "Wide").await.len(), 1_600);
    // Generated columns cannot be set.
    for (given, sqlstate) in [("{id: 9}", "428C9"), ("{twice: 9}", "428C9")] {
        let query = format!("mutation {{ insertGenerated(data: {given}) {{ id }} }}");
        let (_, response) = send(schema, &query, &Value::Null).await;
        let extensions = &response["errors"][0]["extensions"];
        assert_eq!(extensions["code"], "BAD_USER_INPUT", "{response}");
        assert!(
            extensions["sqlstate"].is_null() || extensions["sqlstate"] == sqlstate,
            "{response}"
        );
    }
    let by_id = "{ getNoKey(id: 1) { a } }";
    let (_, response) = send(schema, by_id, &Value::Null).await;
    assert_eq!(
        response["errors"][0]["extensions"]["code"],
        "GRAPHQL_VALIDATION_FAILED"
    );
}

#[tokio::test]
async fn a_schema_of_any_name_and_one_without_tables_answers() {
    let admin = demo().admin().await;
    let odd = "create schema \"gql \"\"odd/ö\"; create table \"gql \"\"odd/ö\".\"t\"\"\" (id int primary key, n int); \
               insert into \"gql \"\"odd/ö\".\"t\"\"\" values (1, 2); grant usage on schema \"gql \"\"odd/ö\" to demo; \
               grant select on all tables in schema \"gql \"\"odd/ö\" to demo";
    admin.batch_execute(odd).await.unwrap();
    prepare("gql_empty", "select 1").await;
    let path = "/api/graphql/schema/gql%20%22odd%2F%C3%B6";
    let body = json!({"query": "{ getT { id n } }"}).to_string();
    let began = Instant::now();
    loop {
        let response = demo()
            .ask(Method::POST, path, Some("demo"), Some(body.clone()))
            .await;
        if response.status == 200 {
            assert_eq!(
                response.json()["data"],
                json!({"getT": [{"id": "1", "n": 2}]})
            );
            break;
        }
        assert!(began.elapsed() < TIMEOUT, "{response:?}");
    }
    let query =
        "{ __typename __schema { queryType { name fields { name } } mutationType { name } } }";
    let found = data("gql_empty", query, Value::Null).await;
    assert_eq!(found["__typename"], "Query");
    assert_eq!(found["__schema"]["queryType"]["name"], "Query");
    assert_eq!(found["__schema"]["mutationType"], Value::Null);
    // The same holds for a schema with tables if the role may see none of them.
    let hidden = "create schema gql_hidden; create table gql_hidden.t (id int); grant usage on schema gql_hidden to \"demo/alice\"";
    admin.batch_execute(hidden).await.unwrap();
    let path = "/api/graphql/schema/gql_hidden";
    let body = json!({"query": "{ __typename __type(name: \"T\") { name } }"}).to_string();
    let began = Instant::now();
    loop {
        let response = demo()
            .ask(Method::POST, path, Some("alice"), Some(body.clone()))
            .await;
        if response.status == 200 {
            assert_eq!(
                response.json()["data"],
                json!({"__typename": "Query", "__type": null})
            );
            break;
        }
        assert!(began.elapsed() < TIMEOUT, "{response:?}");
    }
}

/// For each column and operation, introspection shows what the role may use.
#[tokio::test]
async fn a_role_sees_what_it_may_use() {
    prepare("gql_rights", "create table t (id int primary key, open int, shut int); create table u (id int primary key, t int references t); create table v (id int)").await;
    let admin = demo().admin().await;
    let grants = "grant usage on schema gql_rights to \"demo/alice\"; grant select (id, open), insert (open, shut), update (open) on gql_rights.t to \"demo/alice\"; grant delete on gql_rights.v to \"demo/alice\"";
    admin.batch_execute(grants).await.unwrap();
    let path = "/api/graphql/schema/gql_rights";
    let ask = async |query: &str| {
        let body = json!({"query": query}).to_string();
        demo()
            .ask(Method::POST, path, Some("alice"), Some(body))
            .await
    };
    let began = Instant::now();
    let query = "{ __type(name: \"Mutation\") { fields { name args { name } } } t: __type(name: \"T\") { fields { name } } u: __type(name: \"U\") { name } v: __type(name: \"V\") { fields { name } } q: __type(name: \"Query\") { fields { name } } }";
    let found = loop {
        let response = ask(query).await;
        let found = if response.status == 200 {
            response.json()["data"].clone()
        } else {
            Value::Null
        };
        if found["v"].is_object() {
            break found;
        }
        assert!(began.elapsed() < TIMEOUT, "{response:?}");
    };
    let names = |value: &Value| -> Vec<String> {
        let fields = value["fields"].as_array().unwrap().iter();
        fields
            .map(|field| field["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names(&found["t"]), ["id", "open"]);
    assert_eq!(found["u"], Value::Null);
    assert_eq!(names(&found["__type"]), ["deleteV", "insertT", "updateT"]);
    assert_eq!(names(&found["q"]), ["getT", "getTAggregate"]);
    for (query, code) in [
        ("{ getT { shut } }", "GRAPHQL_VALIDATION_FAILED"),
        ("{ getT(where: {shut: 1}) { id } }", "BAD_USER_INPUT"),
        ("{ getT(orderBy: {shut: asc}) { id } }", "BAD_USER_INPUT"),
        (
            "{ getTAggregate(groupBy: [\"shut\"]) { count } }",
            "BAD_USER_INPUT",
        ),
        (
            "{ getTAggregate { max { shut } } }",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        ("{ getT { u { id } } }", "GRAPHQL_VALIDATION_FAILED"),
        ("{ getT(where: {u: {}}) { id } }", "BAD_USER_INPUT"),
        (
            "mutation { updateT(id: 1, data: {shut: 1}) { id } }",
            "FORBIDDEN",
        ),
        ("mutation { insertT(data: {id: 1}) { id } }", "FORBIDDEN"),
        (
            "mutation { insertT(data: {open: 1}) { shut } }",
            "GRAPHQL_VALIDATION_FAILED",
        ),
        (
            "mutation { deleteT(id: 1) { id } }",
            "GRAPHQL_VALIDATION_FAILED",
        ),
    ] {
        let response = ask(query).await.json();
        let found = response["errors"][0]["extensions"]["code"]
            .as_str()
            .unwrap();
        // Either PostgreSQL refuses a use that the column does not allow, or the service refuses it
        // before.
        let refusals = ["FORBIDDEN", "BAD_USER_INPUT"];
        let refused = refusals.contains(&code) && refusals.contains(&found);
        assert!(found == code || refused, "{query}: {response}");
    }
}
