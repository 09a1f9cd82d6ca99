//! Compares the parsing of statements with PostgreSQL.

use std::sync::Arc;

use bytes::BytesMut;
use serde_json::value::RawValue;
use tidegate_sql::statement::Purity;
use tidegate_sql::{Params, Statement};
use tidegate_values::parameter::encode;
use tidegate_values::{Parameter, Type};
use tokio_postgres::Client;

async fn connect() -> Client {
    let url = tidegate_embedded::testing::cluster().admin_url();
    tidegate_testkit::connect(&url).await
}

fn input(json: &str, r#type: &Type) -> String {
    let value = Parameter::Json(json.into());
    let mut out = BytesMut::new();
    encode(&value, r#type, None, &|| "value".to_owned(), &mut out)
        .unwrap_or_else(|error| panic!("{json}: {error}"));
    String::from_utf8(out.to_vec()).unwrap()
}

#[tokio::test]
async fn postgresql_finds_the_placeholders_where_we_do() {
    let client = connect().await;
    for (q, count) in [
        ("select :a::int + :b::int, :a::int", 2),
        (
            "select (array[1,2,3])[1:2], (array[1,2,3])[(:lo::int):(:hi::int)]",
            2,
        ),
        (
            "select (array[1,2,3])[:lo::int:2], array[:a::int,:b::int]",
            3,
        ),
        (
            "select ':a', E'\\':a', U&'\\0061:a', $$:a$$, $t$:a$t$, B'01' --:a\n, /* :a /* :b */ */ :c::text",
            1,
        ),
        ("select E'a'\n'\\':a', :a::text -- '", 1),
        ("select 1 as \"a:b\", '{\"a\":1}'::jsonb ? :key", 1),
        ("select 1 %2B :a::int%2B1", 1),
        ("select case when :a::bool then :b::int else :c::int end", 3),
        ("select make_interval(days := :d::int, hours=>:h::int);", 2),
        ("select 1 /* ; */ ; -- ;", 0),
        ("select :x::text 'b', 1::int", 1),
        (
            "create function pg_temp.f() returns int begin atomic select 1; select case when true then 2 end; end;",
            0,
        ),
    ] {
        let statement = Statement::parse(q).unwrap_or_else(|error| panic!("{q}: {error}"));
        let prepared = client.prepare(statement.text()).await;
        if q.contains("'b'") {
            assert!(prepared.is_err(), "{q}");
            continue;
        }
        let prepared = prepared.unwrap_or_else(|error| panic!("{}: {error:?}", statement.text()));
        assert_eq!(prepared.params().len(), count, "{q}");
        assert_eq!(statement.placeholders().len(), count, "{q}");
    }
}

#[tokio::test]
async fn postgresql_points_at_the_callers_text() {
    let client = connect().await;
    for q in [
        "select 'é', :first::text, 1 %2B 1, nowhere",
        "select :a::int, :a::int, :b::int, nowhere",
        "select nowhere",
    ] {
        let statement = Statement::parse(q).unwrap();
        let error = client.prepare(statement.text()).await.unwrap_err();
        let position = match error.as_db_error().unwrap().position() {
            Some(tokio_postgres::error::ErrorPosition::Original(position)) => *position,
            other => panic!("{other:?}"),
        };
        let at = usize::try_from(statement.caller_position(position)).unwrap();
        let found: String = q.chars().skip(at - 1).collect();
        assert_eq!(found, "nowhere", "{q}");
    }
}

/// Volatile functions of PostgreSQL that count as stateless. They return another value each time or
/// read something outside the transaction, but they change nothing in the session.
const STATELESS: [&str; 25] = [
    "bernoulli",
    "system",
    "clock_timestamp",
    "gen_random_uuid",
    "inet_client_addr",
    "pg_column_size",
    "pg_database_size",
    "pg_indexes_size",
    "pg_is_in_recovery",
    "pg_relation_size",
    "pg_sleep",
    "pg_table_size",
    "pg_total_relation_size",
    "random",
    "timeofday",
    "txid_current",
    "pg_current_xact_id",
    "uuidv4",
    "uuidv7",
    "array_sample",
    "array_shuffle",
    "random_normal",
    "pg_postmaster_start_time",
    "pg_backend_pid",
    // PostgreSQL before version 15 marks the function for `timetz` as volatile.
    "timezone",
];

fn purity(q: &str) -> Purity {
    Statement::parse(q)
        .unwrap_or_else(|error| panic!("{q}: {error}"))
        .purity()
}

async fn column_of(client: &Client, sql: &str) -> Vec<String> {
    let rows = client.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

#[tokio::test]
async fn functions_with_effects_are_never_stateless() {
    let client = connect().await;
    let volatile = column_of(
        &client,
        "select distinct proname::text from pg_proc
         where pronamespace = 'pg_catalog'::regnamespace and provolatile = 'v'",
    )
    .await;
    assert!(volatile.len() > 100);
    for name in volatile
        .iter()
        .filter(|name| !STATELESS.contains(&name.as_str()))
    {
        assert_eq!(
            purity(&format!("select {name}(1)")),
            Purity::Stateful,
            "{name}"
        );
    }
}

#[tokio::test]
async fn words_that_can_name_a_function_are_calls() {
    let client = connect().await;
    let words = column_of(
        &client,
        "select word::text from pg_get_keywords() where catcode in ('U', 'T')
         and not exists (select from pg_proc where proname = word
            and pronamespace = 'pg_catalog'::regnamespace)
         and not exists (select from pg_type where typname = word
            and typnamespace = 'pg_catalog'::regnamespace)
         and word not in ('double', 'explain')",
    )
    .await;
    assert!(words.len() > 200);
    for word in words {
        assert_eq!(
            purity(&format!("select {word}(1)")),
            Purity::Stateful,
            "{word}"
        );
        assert_eq!(
            purity(&format!("select 1, {word}(1)")),
            Purity::Stateful,
            "{word}"
        );
    }
}

#[tokio::test]
async fn a_bound_statement_runs() {
    let client = connect().await;
    let raw = RawValue::from_string(r#"{"days":[1,2],"more":{"d":3}}"#.to_owned()).unwrap();
    let statement =
        Arc::new(Statement::parse("select sum(d) + :more from unnest(:days) d").unwrap());
    let params = Params::read(&raw, "params").unwrap();
    let hints = [("days", "int[]"), ("more", "interval")];
    let bound = statement
        .bind(&params, &hints, &[] as &[(&str, &str)])
        .unwrap();
    assert_eq!(bound.hints.iter().flatten().count(), 2);
    let q = bound
        .statement
        .text()
        .replace("$1", "extract(day from $1::text::interval)");
    let q = q.replace("$2", "$2::text::int[]");
    let [Parameter::Json(more), Parameter::Json(days)] = &bound.sets[0][..] else {
        panic!()
    };
    let given = [input(more, &Type::INTERVAL), input(days, &Type::INT4_ARRAY)];
    let row = client
        .query_one(&format!("select ({q})::int8"), &[&given[0], &given[1]])
        .await;
    assert_eq!(row.unwrap().get::<_, i64>(0), 6);
}
