//! Tests that a read that might write runs in a read-only transaction.

use serde_json::{Value, json};
use tidegate_catalog::Schema;
use tidegate_plan::{ExecutionMode, Limits, Plan};

use crate::fixture::{Fields, operation};

/// A schema of shelves with boxes; the members of `boxes` are added to the description of the
/// boxes.
fn schema(boxes: &Value) -> Schema {
    let column = |name: &str| json!({"name": name, "type": "int4"});
    let primary = |name: &str| json!({"name": name, "kind": "primary", "columns": ["id"]});
    let foreign = json!({"name": "boxes_shelf", "kind": "foreign", "columns": ["shelf"],
                         "references": {"relation": "shelves", "columns": ["id"]}});
    let mut relations = json!([
        {"name": "boxes", "kind": "table", "rights": "s", "columns": [column("id"), column("shelf")],
         "constraints": [primary("boxes_pkey"), foreign]},
        {"name": "shelves", "kind": "table", "rights": "s", "columns": [column("id")],
         "constraints": [primary("shelves_pkey")]},
    ]);
    for (name, value) in boxes.as_object().unwrap() {
        relations[0][name] = value.clone();
    }
    let document = json!({"name": "public", "relations": relations});
    Schema::parse(&document.to_string()).unwrap()
}

fn way(schema: &Schema, text: &str) -> ExecutionMode {
    let operation = operation(schema, &Fields::read(text));
    let plan = Plan::new(schema, operation, &Limits::default());
    plan.unwrap().mode()
}

/// All documents in which one statement reads the boxes.
const READS: [&str; 8] = [
    "boxes { id }",
    r#"boxes({"limit": 2}) { shelves { id } }"#,
    r#"shelves({"limit": 2}) { boxes { id } }"#,
    r#"shelves({"limit": 2}) { boxes({"where": {"id": 1}}) { id } }"#,
    r#"shelves({"where": {"boxes": {}}}) { id }"#,
    r#"shelves({"where": {"not": {"or": [{"id": 1}, {"boxes": {"id": 1}}]}}}) { id }"#,
    "aggregate.boxes { count }",
    r#"aggregate.shelves({"where": {"boxes": {"id": 1}}}) { count }"#,
];

#[test]
fn one_statement_over_stored_rows_runs_alone() {
    for boxes in [
        json!({}),
        json!({"kind": "partitioned"}),
        json!({"kind": "materialized_view"}),
        json!({"row_security": true, "plain_policies": true}),
    ] {
        let schema = schema(&boxes);
        for text in READS {
            assert_eq!(way(&schema, text), ExecutionMode::Single, "{boxes}: {text}");
        }
    }
}

#[test]
fn views_foreign_tables_and_policies_that_may_write_are_read_in_a_snapshot() {
    for boxes in [
        json!({"kind": "view"}),
        json!({"kind": "foreign"}),
        json!({"row_security": true}),
        json!({"kind": "partitioned", "row_security": true}),
        json!({"kind": "view", "row_security": true, "plain_policies": true}),
    ] {
        let schema = schema(&boxes);
        for text in READS {
            assert_eq!(
                way(&schema, text),
                ExecutionMode::Snapshot,
                "{boxes}: {text}"
            );
        }
        assert_eq!(
            way(&schema, "shelves { id }"),
            ExecutionMode::Single,
            "{boxes}"
        );
    }
}
