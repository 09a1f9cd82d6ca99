//! Tests root fields of a query that fail while others do not (GraphQL, section 6.4.4), and queries
//! that would write.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::graphql::{
    PUBLIC, ask, ask_with_deadline, data, has_no_data, run, settled, wait_for_type,
};
use crate::graphql_snapshots::Gate;
use crate::service::demo;

/// Creates views whose rows cannot be read.
async fn create_broken_views() {
    static MADE: OnceCell<()> = OnceCell::const_new();
    MADE.get_or_init(make_broken_views).await;
}

async fn make_broken_views() {
    run(
        "create or replace view gql_broken as select id, 1 / (id - id) as q from artists;
         create or replace view gql_broken_late as
             select id, case when id < 1000 then id else 1 / (id - id) end as q
             from generate_series(990, 1000) id;
         alter view gql_broken owner to demo; alter view gql_broken_late owner to demo",
    )
    .await;
    wait_for_type("GqlBroken").await;
    wait_for_type("GqlBrokenLate").await;
}

fn codes(response: &Value) -> Vec<(&str, &str)> {
    let errors = response["errors"].as_array().unwrap().iter();
    errors
        .map(|error| {
            let path = error["path"].as_array().unwrap();
            assert_eq!(path.len(), 1, "{error}");
            assert_eq!(error["locations"].as_array().unwrap().len(), 1, "{error}");
            let code = error["extensions"]["code"].as_str().unwrap();
            (path[0].as_str().unwrap(), code)
        })
        .collect()
}

#[tokio::test]
async fn a_root_field_that_fails_is_null_and_the_others_are_there() {
    create_broken_views().await;
    let artist = json!([{"id": "1"}]);
    let wrong = "BAD_USER_INPUT";
    for (query, expected, lost) in [
        (
            "{ a: getGqlBroken { q } }",
            json!({"a": null}),
            vec![("a", wrong)],
        ),
        (
            "{ a: getArtists(id: 1) { id } b: getGqlBroken { q } c: getArtists(id: 1) { id } }",
            json!({"a": artist, "b": null, "c": artist}),
            vec![("b", wrong)],
        ),
        // The field that fails is the last one, the first one, or one of several, with fields
        // between them that need no statement.
        (
            "{ a: getArtists(id: 1) { id } t: __typename b: getGqlBrokenLate { q } }",
            json!({"a": artist, "t": "Query", "b": null}),
            vec![("b", wrong)],
        ),
        (
            "{ a: getGqlBrokenLate { q } b: getArtists(id: 1) { id } c: getGqlBroken { q } \
             d: __type(name: \"Date\") { name } e: getArtists(id: 1) { id } f: getGqlBroken { q } }",
            json!({"a": null, "b": artist, "c": null, "d": {"name": "Date"}, "e": artist, "f": null}),
            vec![("a", wrong), ("c", wrong), ("f", wrong)],
        ),
        // Some fields are refused before anything runs, others are refused by PostgreSQL.
        (
            "{ a: getArtists(where: {nix: 1}) { id } b: getArtists(id: 1) { id } \
             c: getGqlBroken { q } d: getArtists(where: {name: 5}) { id } \
             e: getArtists(where: {id: \"x\"}) { id } }",
            json!({"a": null, "b": artist, "c": null, "d": null, "e": null}),
            vec![("a", wrong), ("c", wrong), ("d", wrong), ("e", wrong)],
        ),
        // Rows by key share a statement until one of them fails.
        (
            "{ a: getArtists(id: 1) { id } b: getArtists(where: {id: 1, name: {regex: \"(\"}}) { id } \
             c: getArtists(id: 1) { id } }",
            json!({"a": artist, "b": null, "c": artist}),
            vec![("b", wrong)],
        ),
        (
            "{ a: getGqlBrokenAggregate { sum { q } } b: getArtistsAggregate(where: {id: 1}) { count } }",
            json!({"a": null, "b": [{"count": 1}]}),
            vec![("a", wrong)],
        ),
    ] {
        let response = ask(Some("demo"), query, json!({})).await;
        assert_eq!(response["data"], expected, "{query}: {response}");
        assert_eq!(codes(&response), lost, "{query}: {response}");
    }
}

/// The members of the response have the order of the document, whatever the order of reading is.
#[tokio::test]
async fn the_order_of_the_fields_stays() {
    create_broken_views().await;
    let query = "{ c: getArtists(id: 1) { id } x: getGqlBroken { q } b: getArtists(id: 1) { id } \
                 t: __typename y: getGqlBroken { q } a: getArtists(id: 1) { id } }";
    let body = json!({"query": query}).to_string();
    let response = demo()
        .ask(Method::POST, PUBLIC, Some("demo"), Some(body))
        .await;
    let artist = "[{\"id\":\"1\"}]";
    let expected = format!(
        "{{\"data\":{{\"c\":{artist},\"x\":null,\"b\":{artist},\"t\":\"Query\",\"y\":null,\"a\":{artist}}},\"errors\":["
    );
    assert!(response.text.starts_with(&expected), "{response:?}");
}

/// Fields that are read again are read in one snapshot.
#[tokio::test]
async fn what_is_left_of_a_query_is_one_snapshot() {
    create_broken_views().await;
    let gate = Gate::new(8210).await;
    let setup = "create table if not exists gql_left (id int primary key, n int);
         insert into gql_left values (1, 0) on conflict do nothing;
         alter table gql_left owner to demo";
    gate.admin.batch_execute(setup).await.unwrap();
    settled(Some("demo"), "{ getGqlLeft { id } }").await;
    // The failure makes the service retry the document, which reads `b`, the gate, `c`, and then
    // `a`.
    let query = "{ a: getGqlLeft { n } x: getGqlBroken { q } b: getGqlLeft { n } GATE c: getGqlLeft { n } }";
    let asked = gate.start_and_wait(query).await;
    let change = "update gql_left set n = 1";
    gate.admin.batch_execute(change).await.unwrap();
    gate.open().await;
    let response = asked.await.unwrap();
    let old = json!([{"n": 0}]);
    assert_eq!(
        response["data"],
        json!({"a": old, "x": null, "b": old, "gate": [{"id": 1}], "c": old}),
        "{response}"
    );
}

/// Data that was read before the deadline is returned. The deadline applies to the whole document.
#[tokio::test]
async fn a_deadline_takes_what_was_not_read_in_time() {
    run(
        "create or replace view gql_sleeper as select 1 as id, pg_sleep(50)::text as slept;
         alter view gql_sleeper owner to demo",
    )
    .await;
    wait_for_type("GqlSleeper").await;
    let query = "{ a: getArtists(id: 1) { id } x: getGqlSleeper { slept } b: getArtists(limit: 1) { id } \
                 c: getArtists(id: 1) { id } __typename }";
    let response = ask_with_deadline("demo", query).await;
    // The fields that share a statement with the first one were read with it.
    let artist = json!([{"id": "1"}]);
    let expected = json!({"a": artist, "x": null, "b": null, "c": artist, "__typename": "Query"});
    assert_eq!(response["data"], expected, "{response}");
    assert_eq!(codes(&response), [("x", "TIMEOUT"), ("b", "TIMEOUT")]);
}

/// A mutation fails as a whole, including its selections.
#[tokio::test]
async fn a_mutation_that_fails_has_no_data() {
    let query = "mutation { t: __typename a: insertPlaylists(data: {name: \"gql roots\"}) { id } \
                 b: updatePlaylists(where: {nix: 1}, data: {name: \"x\"}) { id } }";
    let response = ask(Some("demo"), query, json!({})).await;
    assert_eq!(response["data"], Value::Null, "{response}");
    assert_eq!(codes(&response), [("b", "BAD_USER_INPUT")]);
    let read = "{ getPlaylists(where: {name: \"gql roots\"}) { id } }";
    let found = data("demo", read, json!({})).await;
    assert_eq!(found["getPlaylists"], json!([]));
}

/// Policies on tables. A query under a policy needs a transaction only if the policy calls a
/// function of the database, directly or indirectly.
async fn policies() {
    let read_only = "pg_catalog.current_setting('transaction_read_only') = 'on'";
    for (name, policy, expected) in [
        (
            "plain",
            "id > 0 and current_user = 'demo/alice'".to_owned(),
            false,
        ),
        (
            "cased",
            "lower(coalesce(current_setting('no.such', true), 'A')) = 'a'".to_owned(),
            false,
        ),
        ("volatile", "random() >= 0".to_owned(), true),
        (
            "sub",
            "exists (select from gql_tracer_stub)".to_owned(),
            true,
        ),
        ("own", "gql_stub() = 1".to_owned(), true),
        ("domain", "id::gql_stub_id > 0".to_owned(), true),
        (
            "array",
            "array_length(('{' || id || '}')::gql_stub_id[], 1) = 1".to_owned(),
            true,
        ),
    ] {
        run(&format!(
            "create table if not exists gql_policy_{name} (id int primary key);
             insert into gql_policy_{name} values (1) on conflict do nothing;
             alter table gql_policy_{name} enable row level security;
             create policy gql_policy on gql_policy_{name} using ({policy});
             create policy gql_sees on gql_policy_{name} as restrictive using (({read_only}) = {expected});
             grant select on gql_policy_{name} to \"demo/alice\""
        ))
        .await;
        let field = format!("getGqlPolicy{}{}", name[..1].to_uppercase(), &name[1..]);
        let response = settled(Some("alice"), &format!("{{ x: {field}(id: 1) {{ id }} }}")).await;
        assert_eq!(
            response["data"],
            json!({"x": [{"id": "1"}]}),
            "{name}: {response}"
        );
    }
}

/// Queries are read only, whether they read views, policies or conditions.
#[tokio::test]
async fn a_query_does_not_write() {
    run(
        "create table if not exists gql_traces (id serial primary key);
         create or replace function gql_trace() returns int language plpgsql volatile security definer as
         $$ begin insert into gql_traces default values; return 1; end $$;
         create table if not exists gql_traced (id int primary key);
         create table if not exists gql_tracing (id int primary key, of int references gql_traced);
         insert into gql_traced values (1) on conflict do nothing;
         insert into gql_tracing values (1, 1) on conflict do nothing;
         alter table gql_tracing enable row level security;
         drop policy if exists gql_trace on gql_tracing;
         create policy gql_trace on gql_tracing using (gql_trace() = 1);
         create or replace view gql_tracer_stub as select 1 as id;
         grant select on gql_tracer_stub to \"demo/alice\";
         create or replace function gql_stub() returns int language sql stable as 'select 1';
         do $$ begin create domain gql_stub_id as int check (value > 0); exception when duplicate_object then null; end $$;
         create or replace view gql_tracer as select gql_trace() as id;
         create or replace view gql_tracer_of as select id from gql_tracer;
         grant select on gql_traced, gql_tracing, gql_tracer, gql_tracer_of to \"demo/alice\"",
    )
    .await;
    let sees = "{ getGqlTracer { id } getGqlTracerOf { id } getGqlTracing { id } getGqlTraced { id gqlTracing { id } } }";
    settled(Some("alice"), sees).await;
    for query in [
        "{ x: getGqlTracer { id } }",
        "{ x: getGqlTracerOf(limit: 1) { id } }",
        "{ x: getGqlTracerAggregate { count max { id } } }",
        "{ x: getGqlTracing(id: 1) { id } }",
        "{ x: getGqlTracingAggregate { count } }",
        "{ x: getGqlTraced(where: {gqlTracing: {id: 1}}) { id } }",
        "{ x: getGqlTraced(where: {not: {or: [{gqlTracing: {}}]}}) { id } }",
        "{ x: getGqlTraced(id: 1) { id gqlTracing { id } } }",
        "{ x: getGqlTraced { id gqlTracing { id } } }",
        "{ x: getGqlTracer { id } y: getGqlTracing { id } }",
    ] {
        let response = ask(Some("alice"), query, json!({})).await;
        let below = response["data"]["x"].pointer("/0/gqlTracing");
        let shows_nothing = has_no_data(&response["data"]) || below == Some(&Value::Null);
        assert!(shows_nothing, "{query}: {response}");
        let extensions = &response["errors"][0]["extensions"];
        assert_eq!(extensions["sqlstate"], "25006", "{query}: {response}");
        assert_eq!(extensions["code"], "FORBIDDEN", "{query}: {response}");
    }
    policies().await;
    let admin = demo().admin().await;
    let traces = admin
        .query_one("select count(*) from gql_traces", &[])
        .await;
    assert_eq!(traces.unwrap().get::<_, i64>(0), 0);
}
