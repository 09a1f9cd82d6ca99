//! Tests GraphQL names that several tables claim (API.md, "Names and types").

use serde_json::{Value, json};

use crate::graphql_names::{data, prepare};
use crate::node::{Node, operator};

/// A name conflict is logged for the operator, once for each table.
#[tokio::test]
async fn a_name_that_was_taken_is_in_the_log() {
    let operator = operator().await;
    let inside = operator.root("shop").await;
    let sql = "CREATE TABLE my_table (id int); CREATE TABLE \"MyTable\" (id int); CREATE TABLE query (id int); GRANT SELECT ON my_table, \"MyTable\", query TO shop";
    inside.batch_execute(sql).await.unwrap();
    let node = Node::start(&operator).await;
    let tokens = node.sign_in("shop", "shop", "owner-password").await;
    let token = tokens["access_token"].as_str();
    let body = json!({"query": "{ getMyTable2 { id } getQuery2 { id } getMyTable { id } }"});
    let (_, response) = node.post("/api/graphql/schema/public", token, body).await;
    assert_eq!(
        response["data"],
        json!({"getMyTable2": [], "getQuery2": [], "getMyTable": []}),
        "{response}"
    );
    let log = node.stop();
    let warnings: Vec<_> = log
        .lines()
        .filter(|line| line.contains("GraphQL type name already taken; using a numbered name"))
        .collect();
    for (relation, taken, name) in [
        ("my_table", "MyTable", "MyTable2"),
        ("query", "Query", "Query2"),
    ] {
        let reported = warnings.iter().filter(|line| {
            line.contains("WARN")
                && [relation, taken, name, "shop", "public"]
                    .iter()
                    .all(|part| line.contains(part))
        });
        assert!(reported.count() > 0, "{relation}: {warnings:?}");
    }
    assert!(
        !warnings
            .iter()
            .any(|line| line.contains("relation=\"MyTable\"")),
        "{warnings:?}"
    );
}

/// The types of GraphQL and of Tidegate keep their names. A table with such a name gets a number.
#[tokio::test]
async fn no_table_takes_the_name_of_a_type_that_is_there() {
    const NAMES: [&str; 26] = [
        "Query",
        "Mutation",
        "Subscription",
        "Int",
        "Float",
        "String",
        "Boolean",
        "ID",
        "JSON",
        "GeoJSON",
        "Date",
        "Time",
        "DateTime",
        "Point",
        "Line",
        "Lseg",
        "Box",
        "Circle",
        "Path",
        "Polygon",
        "Int4range",
        "Int8range",
        "Numrange",
        "Tsrange",
        "Tstzrange",
        "Daterange",
    ];
    let table = |name: &&str| format!("create table \"{name}\" (id int primary key, own int);");
    let tables: String = NAMES.iter().map(table).collect();
    prepare("gql_taken", &tables).await;
    let query = "{ __schema { types { name fields { name } } } }";
    let found = data("gql_taken", query, Value::Null).await;
    let types = found["__schema"]["types"].as_array().unwrap();
    let columns = json!([{"name": "id"}, {"name": "own"}]);
    for name in NAMES {
        let called = |name: &str| {
            types
                .iter()
                .filter(|one| one["name"] == name)
                .collect::<Vec<_>>()
        };
        let (theirs, ours) = (called(name), called(&format!("{name}2")));
        assert!(
            theirs.len() == 1 && theirs[0]["fields"] != columns,
            "{name}: {theirs:?}"
        );
        assert!(
            ours.len() == 1 && ours[0]["fields"] == columns,
            "{name}: {ours:?}"
        );
    }
    // The renamed tables can be read.
    let fields: String = NAMES[..20]
        .iter()
        .map(|name| format!("get{name}2 {{ own }} "))
        .collect::<Vec<_>>()
        .concat();
    let found = data("gql_taken", &format!("{{ {fields} }}"), Value::Null).await;
    assert_eq!(found["getBox2"], json!([]), "{found}");
    assert_eq!(found.as_object().unwrap().len(), 20);
}
