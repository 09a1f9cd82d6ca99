//! A fixture: sends GraphQL documents to the demo.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::service::{TIMEOUT, TextResponse, demo, eventually};

pub(crate) const PUBLIC: &str = "/api/graphql/schema/public";

/// Sends a document as a user (anonymously if `None`), and returns the response's body.
pub(crate) async fn ask(user: Option<&str>, query: &str, variables: Value) -> Value {
    let body = json!({"query": query, "variables": variables}).to_string();
    let response = demo().ask(Method::POST, PUBLIC, user, Some(body)).await;
    assert_eq!(response.status, 200, "{query}: {response:?}");
    response.json()
}

/// The data of a document that has no errors.
pub(crate) async fn data(user: &str, query: &str, variables: Value) -> Value {
    let mut response = ask(Some(user), query, variables).await;
    assert_eq!(response.get("errors"), None, "{query}: {response}");
    response["data"].take()
}

/// Whether a document has returned nothing: neither data nor any of its root fields.
pub(crate) fn has_no_data(data: &Value) -> bool {
    let lost = |fields: &serde_json::Map<String, Value>| fields.values().all(Value::is_null);
    data.as_object().map_or(data.is_null(), lost)
}

/// The first error of a document.
pub(crate) async fn error(user: &str, query: &str, variables: Value) -> Value {
    let mut response = ask(Some(user), query, variables).await;
    assert!(has_no_data(&response["data"]), "{query}: {response}");
    assert!(response["errors"].is_array(), "{query}: {response}");
    response["errors"][0].take()
}

/// The code of the first error of a document.
pub(crate) async fn code(user: &str, query: &str, variables: Value) -> String {
    let error = error(user, query, variables).await;
    error["extensions"]["code"].as_str().unwrap().to_owned()
}

/// The response to a document. Waits until the schema has everything that the document names,
/// because another client defined it.
pub(crate) async fn settled(user: Option<&str>, query: &str) -> Value {
    let began = Instant::now();
    loop {
        let response = ask(user, query, json!({})).await;
        if response["errors"][0]["extensions"]["code"] != "GRAPHQL_VALIDATION_FAILED" {
            return response;
        }
        assert!(began.elapsed() < TIMEOUT, "{query}: {response}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Runs statements as the cluster's administrator.
pub(crate) async fn run(statements: &str) {
    let admin = demo().admin().await;
    admin.batch_execute(statements).await.unwrap();
}

/// The response to a document with a deadline of four seconds.
pub(crate) async fn ask_with_deadline(user: &str, query: &str) -> Value {
    let request = demo()
        .request(Method::POST, PUBLIC)
        .bearer_auth(demo().cached_token(user).await)
        .header("prefer", "wait=4")
        .json(&json!({"query": query}));
    let response = TextResponse::of(request).await;
    assert_eq!(response.status, 200, "{query}: {response:?}");
    response.json()
}

/// Waits until the owner's schema has a type whose table another client created.
pub(crate) async fn wait_for_type(name: &str) {
    let query = "query($t: String!) { __type(name: $t) { name } }";
    eventually(name, || async {
        data("demo", query, json!({"t": name})).await["__type"].is_object()
    })
    .await;
}
