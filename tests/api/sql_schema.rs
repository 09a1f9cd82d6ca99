//! Tests `GET /api/v4/sql/schema` (API.md, "Schemas").

use reqwest::Method;
use serde_json::{Value, json};

use crate::service::demo;

async fn schema(user: Option<&str>, path: &str) -> (u16, Value) {
    let mut request = demo().request(Method::GET, path);
    if let Some(user) = user {
        request = request.bearer_auth(demo().token(user).await);
    }
    let response = request.send().await.unwrap();
    (response.status().as_u16(), response.json().await.unwrap())
}

fn table<'a>(schema: &'a Value, name: &str) -> &'a Value {
    schema["tables"]
        .as_array()
        .unwrap()
        .iter()
        .find(|table| table["name"] == name)
        .unwrap()
}

#[tokio::test]
async fn a_named_schema_is_one_object() {
    for path in [
        "/api/v4/sql/schema/public",
        "/api/v4/sql/schema?schema=public",
    ] {
        let (status, schema) = schema(Some("demo"), path).await;
        assert_eq!(status, 200, "{path}");
        assert_eq!(schema["name"], "public");
        let albums = table(&schema, "albums");
        let tags = albums["columns"]
            .as_array()
            .unwrap()
            .iter()
            .find(|column| column["name"] == "tags");
        assert_eq!(
            tags.unwrap(),
            &json!({"name": "tags", "_typname": "text", "_is_array": true, "is_nullable": true})
        );
        let constraints = albums["constraints"].as_array().unwrap();
        assert!(
            constraints.contains(&json!({
                "name": "albums_pkey", "constraint": "primary", "columns": ["id"]
            })),
            "{constraints:?}"
        );
        assert!(
            constraints.contains(&json!({
                "name": "albums_artist_id_fkey", "constraint": "foreign", "columns": ["artist_id"],
                "referenced_table": "artists", "referenced_columns": ["id"]
            })),
            "{constraints:?}"
        );
    }
}

#[tokio::test]
async fn without_a_name_all_visible_schemas_come() {
    let (status, schemas) = schema(Some("demo"), "/api/v4/sql/schema").await;
    assert_eq!(status, 200);
    let names: Vec<_> = schemas
        .as_array()
        .unwrap()
        .iter()
        .map(|schema| &schema["name"])
        .collect();
    assert!(names.contains(&&json!("public")), "{names:?}");
    assert!(
        !names
            .iter()
            .any(|name| name.as_str().unwrap().starts_with("pg_"))
    );
}

#[tokio::test]
async fn an_unknown_schema_is_not_found() {
    let (status, error) = schema(Some("demo"), "/api/v4/sql/schema/nowhere").await;
    assert_eq!(
        (status, error["errorCode"].as_str()),
        (404, Some("NOT_FOUND"))
    );
}

#[tokio::test]
async fn the_description_shows_what_the_role_may_use() {
    demo()
        .rows(
            "demo",
            "create table if not exists s_private (a int)",
            json!({}),
        )
        .await;
    let (_, own) = schema(Some("demo"), "/api/v4/sql/schema/public").await;
    table(&own, "s_private");
    let (status, seen) = schema(None, "/api/v4/sql/schema/public").await;
    assert_eq!(status, 200);
    table(&seen, "artists");
    let tables = seen["tables"].as_array().unwrap();
    assert!(tables.iter().all(|table| table["name"] != "s_private"));
}

#[tokio::test]
async fn other_constraints_comments_and_foreign_schemas_are_shown() {
    let demo = demo();
    demo.rows("demo", "create schema if not exists s_other", json!({}))
        .await;
    demo.rows(
        "demo",
        "drop table if exists s_other.child, public.s_parent",
        json!({}),
    )
    .await;
    demo.rows(
        "demo",
        "create table public.s_parent (a int primary key, b int unique check (b > 0))",
        json!({}),
    )
    .await;
    demo.rows("demo", "create table s_other.child (a int references public.s_parent, b int references s_other.child(b), unique (b))", json!({})).await;
    demo.rows(
        "demo",
        "comment on table public.s_parent is 'a parent'",
        json!({}),
    )
    .await;
    demo.rows(
        "demo",
        "comment on column public.s_parent.b is 'a number'",
        json!({}),
    )
    .await;
    let (_, public) = schema(Some("demo"), "/api/v4/sql/schema/public").await;
    let parent = table(&public, "s_parent");
    assert_eq!(parent["comment"], "a parent");
    assert_eq!(parent["columns"][1]["comment"], "a number");
    let kinds: Vec<_> = parent["constraints"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["constraint"].as_str().unwrap())
        .collect();
    assert!(
        kinds.contains(&"unique") && kinds.contains(&"check") && kinds.contains(&"primary"),
        "{kinds:?}"
    );
    let (_, other) = schema(Some("demo"), "/api/v4/sql/schema/s_other").await;
    let constraints = table(&other, "child")["constraints"].as_array().unwrap();
    let referenced: Vec<_> = constraints
        .iter()
        .filter_map(|c| c["referenced_table"].as_str())
        .collect();
    assert!(
        referenced.contains(&"public.s_parent") && referenced.contains(&"child"),
        "{referenced:?}"
    );
}

#[tokio::test]
async fn a_schema_that_a_role_may_not_use_is_as_if_it_were_not_there() {
    for q in [
        "create schema if not exists s_hidden",
        "create table if not exists s_hidden.t (a int)",
    ] {
        demo().rows("demo", q, json!({})).await;
    }
    let (status, _) = schema(Some("demo"), "/api/v4/sql/schema/s_hidden").await;
    assert_eq!(status, 200);
    for user in [Some("alice"), None] {
        for path in [
            "/api/v4/sql/schema/s_hidden",
            "/api/v4/sql/schema?schema=s_hidden",
        ] {
            let (status, error) = schema(user, path).await;
            assert_eq!(
                (status, error["errorCode"].as_str()),
                (404, Some("NOT_FOUND")),
                "{user:?} {path}: {error}"
            );
        }
        let (_, all) = schema(user, "/api/v4/sql/schema").await;
        let mut all = all.as_array().unwrap().iter();
        assert!(all.all(|one| one["name"] != "s_hidden"), "{user:?}");
    }
}
