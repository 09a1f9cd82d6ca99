//! Tests of SQL injection attempts, in every part of a filter where text is allowed.

use serde_json::json;
use tidegate_filter::{Error, Filter};
use tidegate_values::Parameter;

use crate::fixture;

const HOSTILE: &[&str] = &[
    "'; drop table victims; --",
    "\" or true; drop table victims; --",
    "x\" = '' or \"x",
    "\\'; drop table victims; --",
    "$1",
    "%s",
    "*/ drop table victims /*",
    "$$; drop table victims; $$",
    "E'\\''; drop table victims; --",
    "1) or (1=1",
    "{\"$ne\": null}",
    "\u{2019}; drop table victims; --",
    "a,b\"}',{\"",
];

#[test]
fn a_hostile_name_is_an_unknown_one() {
    let schema = fixture::shop();
    for name in HOSTILE {
        for filter in [
            json!({*name: 1}),
            json!({"and": [{*name: {"eq": 1}}]}),
            json!({"artists": {*name: 1}}),
        ] {
            let error = fixture::parse(&schema, "albums", &filter.to_string()).unwrap_err();
            assert!(
                matches!(error, Error::UnknownName { .. }),
                "{filter}: {error}"
            );
        }
        let filter = json!({"id": {*name: 1}});
        let error = fixture::parse(&schema, "albums", &filter.to_string()).unwrap_err();
        assert!(
            matches!(error, Error::UnknownOperator { .. }),
            "{filter}: {error}"
        );
    }
}

#[test]
fn a_hostile_value_never_enters_the_text_of_the_statement() {
    let schema = fixture::shop();
    let relation = schema.find("albums").unwrap();
    for operator in [
        "eq",
        "neq",
        "gt",
        "like",
        "ilike",
        "startsWith",
        "endsWith",
        "contains",
        "regex",
        "iregex",
        "in",
    ] {
        let plain = sql(
            &schema,
            &json!({"title": {operator: if operator == "in" { json!(["plain"]) } else { json!("plain") }}}),
        );
        for value in HOSTILE {
            let value = if operator == "in" {
                json!([value])
            } else {
                json!(value)
            };
            assert_eq!(sql(&schema, &json!({"title": {operator: value}})), plain);
        }
    }
    for value in HOSTILE {
        let condition = format!("title = '{}'", value.replace('\'', "''"));
        let filter = Filter::parse_condition(&condition, schema.relation(relation)).unwrap();
        let bound = fixture::select(&schema, relation, &filter, "1");
        assert_eq!(
            bound.statement.text(),
            sql(&schema, &json!({"title": value}))
        );
        assert_eq!(
            bound.sets[0],
            [Parameter::Json(json!(value).to_string().into())]
        );
    }
}

fn sql(schema: &tidegate_catalog::Schema, filter: &serde_json::Value) -> String {
    let relation = schema.find("albums").unwrap();
    let filter = fixture::parse(schema, "albums", &filter.to_string()).unwrap();
    fixture::select(schema, relation, &filter, "1")
        .statement
        .text()
        .to_owned()
}

#[tokio::test]
async fn a_table_whose_names_are_hostile_is_asked_for_hostile_values() {
    let quoted = |name: &str| format!("\"{}\"", name.replace('"', "\"\""));
    let names: Vec<_> = HOSTILE
        .iter()
        .map(|name| name.chars().take(40).collect::<String>())
        .collect();
    let columns: Vec<_> = names
        .iter()
        .map(|name| format!("{} text", quoted(name)))
        .collect();
    let table = "rows\"; drop table victims; --";
    let kind = quoted("mood'\"; --");
    let ddl = format!(
        "create table victims (id int); create type {kind} as enum ('ok', '''; --'); \
         create table {} ({}, m {kind}, ms {kind}[])",
        quoted(table),
        columns.join(", ")
    );
    let client = fixture::database("filter_injection", &ddl).await;
    let described = fixture::columns(&client, &quoted(table)).await;
    let schema = fixture::schema("public", &[(table, described)], &[]);
    let relation = schema.find(table).unwrap();
    let values: Vec<_> = HOSTILE
        .iter()
        .map(|value| format!("'{}'", value.replace('\'', "''")))
        .collect();
    let insert = format!(
        "set standard_conforming_strings = on; insert into {} values ({}, '''; --', array['''; --', 'ok']::{kind}[])",
        quoted(table),
        values.join(", ")
    );
    client.batch_execute(&insert).await.unwrap();
    for (name, value) in names.iter().zip(HOSTILE) {
        for filter in [
            json!({name: value}),
            json!({name: {"in": [value, "'"]}}),
            json!({name: {"startsWith": value, "endsWith": value, "contains": value}}),
            json!({"m": {"in": ["'; --"]}, "ms": {"contains": ["'; --"]}, name: {"neq": "'"}}),
        ] {
            let filter = fixture::parse(&schema, table, &filter.to_string()).unwrap();
            let bound = fixture::select(&schema, relation, &filter, "1");
            let rows = fixture::run(&client, &bound).await.unwrap();
            assert_eq!(rows.len(), 1, "{name}: {}", bound.statement.text());
        }
    }
    let left = client.query("select from victims", &[]).await;
    assert!(left.is_ok(), "the table is gone");
}
