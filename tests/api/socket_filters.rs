//! Tests that conditions which cannot be evaluated outside of PostgreSQL are refused (API.md,
//! "Sockets and change events").

use serde_json::{Value, json};

use crate::service::demo;
use crate::socket_client::{Socket, socket};

async fn write(q: &str) {
    demo().rows("demo", q, json!({})).await;
}

/// Subscribes with a condition. Returns the response.
async fn filtered(socket: &mut Socket, id: &str, condition: &Value) -> Value {
    let message = json!({"type": "subscription", "id": id, "schema": "public",
        "rel": "ev_unsupported", "where": condition});
    socket.ask(message).await
}

#[tokio::test]
async fn what_only_postgresql_can_judge_is_refused_by_class_of_operator() {
    write("create collation if not exists ev_any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)").await;
    write("create collation if not exists ev_natural (provider = icu, locale = 'de')").await;
    write(
        "create table ev_unsupported (id int8 primary key, bytes text collate \"C\", \
         natural_order text collate ev_natural, any_case text collate ev_any_case, \
         tags text[], doc jsonb, span int4range, at timestamptz, word tsvector)",
    )
    .await;
    let mut socket = socket("demo").await;
    let refused = [
        // These conditions compare the order of text under a collation other than by bytes.
        json!({"natural_order": {"lt": "m"}}),
        json!({"natural_order": {"lte": "m"}}),
        json!({"natural_order": {"gt": "m"}}),
        json!({"natural_order": {"gte": "m"}}),
        json!("natural_order > 'm'"),
        json!("natural_order BETWEEN 'a' AND 'm'"),
        // These conditions match characters beyond ASCII without regard to case.
        json!({"bytes": {"ilike": "\u{e9}%"}}),
        json!("bytes ILIKE '\u{e9}%'"),
        // These conditions are regular expressions.
        json!({"bytes": {"regex": "^a"}}),
        json!({"bytes": {"iregex": "^a"}}),
        // These columns have collations under which different texts are equal.
        json!({"any_case": {"eq": "a"}}),
        json!({"any_case": {"neq": "a"}}),
        json!({"any_case": {"in": ["a", "b"]}}),
        json!({"any_case": {"nin": ["a"]}}),
        json!({"any_case": {"like": "a%"}}),
        json!("any_case = 'a'"),
        // These columns have types that are not scalars.
        json!({"tags": {"eq": ["a"]}}),
        json!({"tags": {"isNull": true}}),
        json!({"doc": {"eq": {"a": 1}}}),
        json!({"span": {"eq": "[1,2)"}}),
        // This value is a time in words, which PostgreSQL reads with its own clock.
        json!({"at": {"gt": "yesterday"}}),
        // This condition is nested.
        json!({"OR": [{"id": {"eq": 1}}, {"not": {"bytes": {"regex": "a"}}}]}),
    ];
    for condition in refused {
        let response = filtered(&mut socket, "x", &condition).await;
        assert_eq!(response["type"], "error", "{condition}: {response}");
        assert_eq!(
            response["error"], "unsupported_filter",
            "{condition}: {response}"
        );
        assert_eq!(response["id"], "x", "{condition}: {response}");
    }
    // These similar conditions can be evaluated.
    let taken = [
        json!({"bytes": {"lt": "m"}}),
        json!("bytes BETWEEN 'a' AND 'm'"),
        json!({"natural_order": {"eq": "m"}}),
        json!({"natural_order": {"in": ["m", "n"]}}),
        json!({"natural_order": {"like": "m%"}}),
        json!({"bytes": {"ilike": "a%"}}),
        json!({"at": {"gt": "2020-01-01T00:00:00Z"}}),
        json!({"AND": [{"id": {"nin": [1]}}, {"not": {"id": {"eq": 2}}}]}),
    ];
    for (id, condition) in taken.iter().enumerate() {
        let id = format!("t{id}");
        let response = filtered(&mut socket, &id, condition).await;
        assert_eq!(
            response,
            json!({"type": "subscription_ack", "id": id}),
            "{condition}"
        );
    }
}
