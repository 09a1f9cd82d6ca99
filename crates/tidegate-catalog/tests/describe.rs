//! Compares the description of schemas with that of an SQL statement.

use serde_json::{Value, json};
use tidegate_catalog::{describe, describe_all};
use tidegate_sql::QueryOptions;

use crate::fixture::Fixture;

async fn public(fixture: &Fixture) -> Value {
    let schema = fixture.public().await;
    serde_json::from_str(&describe(&schema)).unwrap()
}

/// The description of the schemas that a role sees, by one SQL statement.
async fn reference(fixture: &Fixture, role: &str) -> String {
    let text = include_str!("fixtures/description.sql").replace(":schema::", "$1::");
    let name = role.replace('"', "\"\"");
    fixture.run(&format!("set role \"{name}\"")).await;
    let none: Option<&str> = None;
    let row = fixture.client.query_one(&text, &[&none]).await.unwrap();
    fixture.run("reset role").await;
    row.get(0)
}

async fn assert_equal(fixture: &Fixture, role: &str) {
    let login = fixture.login(role);
    let schemas = fixture
        .catalogs
        .schemas(&login, &QueryOptions::default())
        .await;
    assert_eq!(
        describe_all(&schemas.unwrap()),
        reference(fixture, role).await
    );
}

#[tokio::test]
async fn a_key_to_a_partitioned_table_is_one_key() {
    let fixture = Fixture::new(
        "catalog_key_to_parted",
        "create table p (a int, b int, primary key (a, b)) partition by list (a); \
         create table p1 partition of p for values in (1); \
         create table p2 partition of p for values in (2); \
         create table f (x int, y int, foreign key (y, x) references p (a, b)); \
         create table g (x int, y int, foreign key (y, x) references p (a, b)) \
         partition by list (x); \
         create table g1 partition of g for values in (1)",
    )
    .await;
    let schema = public(&fixture).await;
    let keys = |table: &Value| -> Vec<Value> {
        let all = table["constraints"].as_array().unwrap().iter();
        let foreign = all.filter(|one| one["constraint"] == "foreign");
        foreign.map(|one| one["name"].clone()).collect()
    };
    let tables = schema["tables"].as_array().unwrap();
    let of = |name: &str| keys(tables.iter().find(|table| table["name"] == name).unwrap());
    assert_eq!(json!(of("f")), json!(["f_y_x_fkey"]), "{schema}");
    assert_eq!(json!(of("g")), json!(["g_y_x_fkey"]), "{schema}");
}

#[tokio::test]
async fn tables_views_and_partitioned_roots_are_shown_and_partitions_are_not() {
    let fixture = Fixture::new(
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
    let schema = public(&fixture).await;
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
    let fixture = Fixture::new(
        "catalog_columns",
        "create type mood as enum ('ok'); create domain price as numeric not null; \
         create table a (id int generated always as identity, m mood[] not null, p price, \
         gone int, j jsonb, \"odd \"\" name\" char(2)); alter table a drop column gone",
    )
    .await;
    let schema = public(&fixture).await;
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
    let fixture = Fixture::new(
        "catalog_constraints",
        "create schema other; create table other.far (x int primary key); \
         create table a (p int, q int, primary key (q, p)); \
         create table b (y int, x int, far int references other.far, check (y > 0), \
         exclude using btree (y with =), unique (x), foreign key (x, y) references a (q, p))",
    )
    .await;
    let schema = public(&fixture).await;
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
    let fixture = Fixture::new(
        "catalog_schemas",
        "create schema zebra; create schema alpha",
    )
    .await;
    let owner = fixture.owner();
    let schemas = fixture
        .catalogs
        .schemas(&owner, &QueryOptions::default())
        .await;
    assert_eq!(
        describe_all(&schemas.unwrap()),
        r#"[{"name":"alpha","tables":[]},{"name":"public","tables":[]},{"name":"zebra","tables":[]}]"#
    );
    let names = [
        "nowhere",
        "",
        "pg_catalog",
        "information_schema",
        "', true) --",
    ];
    for name in names {
        assert!(
            fixture.seen_by(&fixture.owner(), name).await.is_none(),
            "{name}"
        );
    }
}

#[tokio::test]
async fn the_description_is_what_one_statement_says() {
    let fixture = Fixture::new("catalog_description", include_str!("fixtures/torture.sql")).await;
    let owner = fixture.owner();
    assert_equal(&fixture, owner.role.as_str()).await;
    for role in ["torture reader", "torture_columns", "torture_nothing"] {
        assert_equal(&fixture, role).await;
    }
}
