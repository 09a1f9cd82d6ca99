//! Tests of texts that are so large that they are generated while they are read.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use tidegate_catalog::Schema;
use tidegate_graphql::{Api, Context, GraphqlResponse, Limits, ResponseText};
use tidegate_sql::{Principal, QueryOptions};

use crate::variables::UnavailableExecutor;

/// The largest memory that the generated part of a text may take.
const CHUNK: usize = 80 << 10;

/// An API with this many tables. Each table has a foreign key to the previous one.
fn api(tables: usize) -> Api {
    let mut text = String::from(r#"{"name":"public","relations":["#);
    for table in 0..tables {
        let comma = if table > 0 { "," } else { "" };
        let before = table.saturating_sub(1);
        write!(
            text,
            r#"{comma}{{"name":"table_{table}","kind":"table","rights":"siud","comment":"Say \"{table}\".",
            "columns":[{{"name":"id","type":"int4","not_null":true}},{{"name":"before","type":"int4"}},
              {{"name":"at","type":"timestamptz"}},{{"name":"tags","type":"text[]","not_null":true}}],
            "constraints":[{{"name":"t{table}_pkey","kind":"primary","columns":["id"]}},
              {{"name":"t{table}_before","kind":"foreign","columns":["before"],
                "references":{{"relation":"table_{before}","columns":["id"]}}}}]}}"#
        )
        .unwrap();
    }
    text.push_str("]}");
    let schema = Schema::parse(&text).unwrap();
    Api::new(Arc::new(schema), true, Limits::default())
}

async fn ask(api: &Api, document: &str) -> GraphqlResponse {
    let prepared = api.prepare(document, None).expect(document);
    let context = Context {
        executor: &UnavailableExecutor,
        principal: &Principal::Control,
        anonymous: false,
        options: QueryOptions::default(),
        response_budget: u64::MAX,
    };
    api.execute(&prepared, None, context).await.unwrap()
}

async fn chunks(text: ResponseText) -> Vec<Bytes> {
    let (mut reader, mut chunks) = (text.read(), Vec::new());
    while let Some(chunk) = reader.next().await {
        chunks.push(chunk.unwrap());
    }
    chunks
}

const TYPE: &str = "kind name description fields { name description type { ...type } \
    args { name description defaultValue type { ...type } } } interfaces { name } \
    enumValues { name } inputFields { name } possibleTypes { name }";
const FRAGMENT: &str = "fragment type on __Type { kind name ofType { kind name ofType { kind name \
    ofType { kind name } } } }";

#[tokio::test]
async fn a_large_introspection_comes_in_chunks_that_say_what_its_types_say_alone() {
    let api = api(120);
    let document = format!(
        "{{ before: __typename __schema {{ queryType {{ name }} types {{ {TYPE} }} }} \
         small: __type(name: \"Table7\") {{ name }} after: __typename \
         again: __schema {{ types {{ {TYPE} }} }} }} {FRAGMENT}"
    );
    for _ in 0..2 {
        let response = ask(&api, &document).await;
        assert!(response.executed && response.body.held() < 512);
        let chunks = chunks(response.body).await;
        assert!(chunks.len() > 20, "{}", chunks.len());
        assert!(chunks.iter().all(|chunk| chunk.len() < CHUNK));
        let response: Value = serde_json::from_slice(&chunks.concat()).unwrap();
        let data = response["data"].as_object().unwrap();
        assert_eq!(data.len(), 5);
        assert_eq!(data["before"], "Query");
        assert_eq!(data["after"], "Query");
        assert_eq!(data["small"]["name"], "Table7");
        assert_eq!(data["again"]["types"], data["__schema"]["types"]);
        let types = data["__schema"]["types"].as_array().unwrap();
        assert_eq!(
            types.iter().filter(|one| one["name"] == "Table7").count(),
            1
        );
        for known in types {
            let name = &known["name"];
            let one = format!("{{ __type(name: {name}) {{ {TYPE} }} }} {FRAGMENT}");
            let alone = ask(&api, &one).await.collect(u64::MAX).await;
            let alone = alone.body.into_bytes().unwrap();
            let alone: Value = serde_json::from_slice(&alone).unwrap();
            assert_eq!(alone["data"]["__type"], *known);
        }
    }
}

#[tokio::test]
async fn who_cannot_take_chunks_gets_all_of_it_or_that_it_is_too_large() {
    let api = api(120);
    let document = format!("{{ __schema {{ types {{ {TYPE} }} }} }} {FRAGMENT}");
    let text = chunks(ask(&api, &document).await.body).await.concat();
    let most = text.len() as u64;
    let whole = ask(&api, &document).await.collect(most).await;
    assert_eq!(whole.body.into_bytes().unwrap(), text);
    let cut = ask(&api, &document).await.collect(most - 1).await;
    let cut: Value = serde_json::from_slice(&cut.body.into_bytes().unwrap()).unwrap();
    assert_eq!(cut["data"], Value::Null);
    assert_eq!(cut["errors"][0]["extensions"]["code"], "TOO_COMPLEX");
}

#[tokio::test]
async fn a_small_introspection_is_one_text() {
    let api = api(3);
    let document = format!("{{ __schema {{ types {{ {TYPE} }} }} }} {FRAGMENT}");
    let first = ask(&api, &document).await.body.into_bytes().unwrap();
    let second = ask(&api, &document).await.body.into_bytes().unwrap();
    assert_eq!(first, second);
}

#[tokio::test]
async fn a_large_schema_is_printed_in_chunks() {
    let api = api(1_000);
    let chunks = chunks(api.sdl()).await;
    assert!(chunks.len() > 10 && chunks.iter().all(|chunk| chunk.len() < CHUNK));
    let text = String::from_utf8(chunks.concat()).unwrap();
    let types = text.matches("\ntype Table").count();
    // Each table has six types: rows, groups, and the objects of `sum`, `avg`, `min` and `max`.
    assert_eq!(types, 6 * 1_000);
    assert!(text.ends_with("}\n"));
}

#[test]
fn lists_of_introspection_nest_three_times() {
    let api = api(1);
    for (lists, fits) in [(3, true), (4, false)] {
        let nested = format!(
            "{{ __schema {{ types {}name{} }} }}",
            "{ fields { type ".repeat(lists) + "{ ",
            " } ".repeat(2 * lists + 1)
        );
        let codes = crate::fixture::codes(&api, &nested);
        assert_eq!(codes.is_empty(), fits, "{nested}: {codes:?}");
    }
}
