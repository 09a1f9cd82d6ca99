//! The description against a real catalog.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_postgres::Config;
use tidegate_postgres::backoff::Jitter;
use tidegate_postgres::control::Control;
use tidegate_sql::{DatabaseName, Principal, Terms};

async fn stage(database: &str, sql: &str) -> (Control, Principal) {
    let cluster = tidegate_embedded::testing::cluster();
    run(&cluster.admin_url(), &format!("create database {database}")).await;
    run(&cluster.url(database), sql).await;
    let config = Config::from_url(&cluster.admin_url()).unwrap();
    let service = Control::new(Arc::new(config), Jitter::none()).unwrap();
    (service, Principal::Catalog(DatabaseName::new(database)))
}

async fn run(url: &str, sql: &str) {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls)
        .await
        .unwrap();
    tokio::spawn(connection);
    client.batch_execute(sql).await.unwrap();
}

#[tokio::test]
async fn tables_views_and_partitioned_roots_are_shown_and_partitions_are_not() {
    let (service, who) = stage(
        "catalog_kinds",
        "create table a (id int primary key); \
         create view b as select id from a; \
         create materialized view c as select id from a; \
         create table d (id int) partition by range (id); \
         create table d_1 partition of d for values from (0) to (10); \
         create sequence e; create index on a (id); create type f as (x int); \
         create table empty ()",
    )
    .await;
    let text = tidegate_catalog::describe(&service, &who, &Terms::default(), "public").await;
    let schema: Value = serde_json::from_str(&text.unwrap().unwrap()).unwrap();
    let names: Vec<_> = schema["tables"]
        .as_array()
        .unwrap()
        .iter()
        .map(|table| &table["name"])
        .collect();
    assert_eq!(json!(names), json!(["a", "b", "c", "d", "empty"]));
    assert_eq!(
        schema["tables"][4],
        json!({"name": "empty", "columns": [], "constraints": []})
    );
}

#[tokio::test]
async fn columns_tell_type_array_and_nullability() {
    let (service, who) = stage(
        "catalog_columns",
        "create type mood as enum ('ok'); create domain price as numeric not null; \
         create table a (id int generated always as identity, m mood[] not null, p price, \
         gone int, j jsonb, \"odd \"\" name\" char(2)); alter table a drop column gone",
    )
    .await;
    let text = tidegate_catalog::describe(&service, &who, &Terms::default(), "public").await;
    let schema: Value = serde_json::from_str(&text.unwrap().unwrap()).unwrap();
    assert_eq!(
        schema["tables"][0]["columns"],
        json!([
            {"name": "id", "_typname": "int4", "_is_array": false, "is_nullable": false},
            {"name": "m", "_typname": "mood", "_is_array": true, "is_nullable": false},
            {"name": "p", "_typname": "price", "_is_array": false, "is_nullable": false},
            {"name": "j", "_typname": "jsonb", "_is_array": false, "is_nullable": true},
            {"name": "odd \" name", "_typname": "bpchar", "_is_array": false, "is_nullable": true},
        ])
    );
}

#[tokio::test]
async fn constraints_keep_the_order_of_their_columns() {
    let (service, who) = stage(
        "catalog_constraints",
        "create schema other; create table other.far (x int primary key); \
         create table a (p int, q int, primary key (q, p)); \
         create table b (y int, x int, far int references other.far, check (y > 0), \
         exclude using btree (y with =), unique (x), foreign key (x, y) references a (q, p))",
    )
    .await;
    let text = tidegate_catalog::describe(&service, &who, &Terms::default(), "public").await;
    let schema: Value = serde_json::from_str(&text.unwrap().unwrap()).unwrap();
    assert_eq!(
        schema["tables"][0]["constraints"][0]["columns"],
        json!(["q", "p"])
    );
    let constraints = schema["tables"][1]["constraints"].as_array().unwrap();
    let mut kinds: Vec<_> = constraints
        .iter()
        .map(|c| c["constraint"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["check", "exclude", "foreign", "foreign", "unique"]);
    let composite = constraints
        .iter()
        .find(|c| c["referenced_table"] == "a")
        .unwrap();
    assert_eq!(composite["columns"], json!(["x", "y"]));
    assert_eq!(composite["referenced_columns"], json!(["q", "p"]));
    assert!(
        constraints
            .iter()
            .any(|c| c["referenced_table"] == "other.far")
    );
}

#[tokio::test]
async fn all_schemas_come_ordered_and_an_unknown_one_is_none() {
    let (service, who) = stage(
        "catalog_schemas",
        "create schema zebra; create schema alpha",
    )
    .await;
    let all = tidegate_catalog::describe_all(&service, &who, &Terms::default())
        .await
        .unwrap();
    assert_eq!(
        all,
        r#"[{"name":"alpha","tables":[]},{"name":"public","tables":[]},{"name":"zebra","tables":[]}]"#
    );
    for name in ["nowhere", "pg_catalog", "information_schema", "', true) --"] {
        let none = tidegate_catalog::describe(&service, &who, &Terms::default(), name).await;
        assert_eq!(none.unwrap(), None, "{name}");
    }
}
