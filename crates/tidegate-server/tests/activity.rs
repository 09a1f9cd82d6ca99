//! Tests of `GET /api/v4/activity`, the recent requests for the owner.

use serde_json::{Value, json};

use crate::fixture::Api;

#[tokio::test]
async fn the_owner_sees_counts_and_failed_statements_without_values() {
    let api = Api::start().await;
    let owner = json!({"access_token": api.token("demo").await});
    let refused = json!({"q": "copy secrets from 'a file'"});
    assert_eq!(api.sql(&refused).await.status, 403);
    let unknown = json!({"query": "{ nowhere(a: \"secret\") { id } }"});
    api.post("/api/graphql/schema/public", &unknown).await;
    let response = api.get_as("/api/v4/activity", &owner).await;
    assert_eq!(response.status, 200, "{}", response.text());
    assert!(!response.text().contains("a file") && !response.text().contains("\\\"secret"));
    let shown = response.json();
    let sum = |shown: &Value, name: &str| -> u64 {
        let counts = shown[name].as_array().unwrap();
        assert_eq!(counts.len(), 300);
        counts.iter().map(|count| count.as_u64().unwrap()).sum()
    };
    assert_eq!(
        (sum(&shown, "requests"), sum(&shown, "errors")),
        (2, 2),
        "{shown}"
    );
    let copy = &shown["statements"][1];
    assert_eq!(copy["statement"], "copy secrets from ?");
    assert_eq!(copy["error"], "STATEMENT_NOT_ALLOWED");
    assert_eq!(copy["role"], "demo/guest");
    assert_eq!(copy["route"], "/api/v4/sql");
    assert_eq!(shown["feed"], json!(null));
    let again = api.get_as("/api/v4/activity", &owner).await.json();
    assert_eq!(
        sum(&again, "requests"),
        2,
        "reading the counts is not counted"
    );
}

#[tokio::test]
async fn only_the_owner_sees_them() {
    let api = Api::start().await;
    let alice = json!({"access_token": api.token("alice").await});
    let response = api.get_as("/api/v4/activity", &alice).await;
    assert_eq!(response.error().0, 403);
    assert_eq!(api.get("/api/v4/activity").await.error().0, 401);
}
