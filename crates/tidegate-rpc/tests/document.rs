//! The examples of the JSON-RPC 2.0 specification (section 7), with methods of named parameters.
//! The specification allows a server to reject positional parameters; here they are errors with the
//! code `-32602`.

use crate::fixture::fixture;

const INVALID: &str =
    r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request","data":{"message":"#;
const ROLLED_BACK: &str = r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error","data":{"rolledBack":true}},"id":"#;

#[tokio::test]
async fn a_call_with_positional_parameters() {
    let reply = fixture()
        .await
        .response(r#"{"jsonrpc": "2.0", "method": "echo", "params": [42, 23], "id": 1}"#)
        .await;
    assert!(
        reply.starts_with(r#"{"jsonrpc":"2.0","error":{"code":-32602,"message":"Invalid params","#)
    );
    assert!(reply.contains("params[0]"), "{reply}");
    assert!(reply.ends_with(r#","id":1}"#));
}

#[tokio::test]
async fn a_call_with_named_parameters_in_any_order() {
    let fixture = fixture().await;
    let message = r#"{"jsonrpc": "2.0", "method": "echo", "params": {"b": 23, "a": 42}, "id": 3}"#;
    let expected = r#"{"jsonrpc":"2.0","id":3,"result":{"schema":{"a":{"type":"json","array":false},"b":{"type":"json","array":false}},"data":[{"a":42,"b":23}]}}"#;
    assert_eq!(fixture.response(message).await, expected);
    let message = r#"{"jsonrpc": "2.0", "method": "echo", "params": {"a": 42, "b": 23}, "id": 3}"#;
    assert_eq!(fixture.response(message).await, expected);
}

#[tokio::test]
async fn a_notification_runs_and_has_no_response() {
    let fixture = fixture().await;
    let message = r#"{"jsonrpc": "2.0", "method": "insert", "params": {"a": 1}}"#;
    assert_eq!(fixture.response(message).await, "");
    assert_eq!(fixture.executor.ran(), ["music/alice: insert $1 (1)"]);
    assert_eq!(
        fixture
            .response(r#"{"jsonrpc": "2.0", "method": "foobar"}"#)
            .await,
        ""
    );
    assert_eq!(
        fixture
            .response(r#"{"jsonrpc": "2.0", "method": "divide"}"#)
            .await,
        ""
    );
}

#[tokio::test]
async fn a_method_that_there_is_not() {
    let reply = fixture()
        .await
        .response(r#"{"jsonrpc": "2.0", "method": "foobar", "id": "1"}"#)
        .await;
    assert_eq!(
        reply,
        r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":"1"}"#
    );
}

#[tokio::test]
async fn text_that_is_no_json() {
    let fixture = fixture().await;
    for message in [
        r#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#,
        r#"[
  {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
  {"jsonrpc": "2.0", "method"
]"#,
        "",
        "{",
        "nul",
        "[1,]",
        "{} {}",
    ] {
        let reply = fixture.response(message).await;
        let expected = r#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error","#;
        assert!(reply.starts_with(expected), "{message}: {reply}");
        assert!(reply.ends_with(r#","id":null}"#), "{message}: {reply}");
    }
}

#[tokio::test]
async fn a_request_object_with_a_wrong_member() {
    let reply = fixture()
        .await
        .response(r#"{"jsonrpc": "2.0", "method": 1, "params": "bar"}"#)
        .await;
    assert!(reply.starts_with(INVALID), "{reply}");
    assert!(reply.ends_with(r#""id":null}"#));
}

#[tokio::test]
async fn an_empty_array() {
    let reply = fixture().await.response("[]").await;
    assert!(reply.starts_with(INVALID), "{reply}");
    assert!(reply.ends_with(r#""id":null}"#));
}

#[tokio::test]
async fn a_batch_of_one_that_is_no_request_object() {
    let reply = fixture().await.response("[1]").await;
    assert!(reply.starts_with(&format!("[{INVALID}")), "{reply}");
    assert_eq!(reply.matches(r#""id":null}"#).count(), 1);
    assert!(reply.ends_with(r#""id":null}]"#));
}

#[tokio::test]
async fn a_batch_of_three_that_are_no_request_objects() {
    let reply = fixture().await.response("[1,2,3]").await;
    assert!(reply.starts_with(&format!("[{INVALID}")), "{reply}");
    assert_eq!(reply.matches(INVALID).count(), 3);
    assert_eq!(reply.matches(r#""id":null}"#).count(), 3);
}

#[tokio::test]
async fn a_batch_of_everything_runs_nothing() {
    let fixture = fixture().await;
    let message = r#"[
        {"jsonrpc": "2.0", "method": "echo", "params": {"a":1,"b":2}, "id": "1"},
        {"jsonrpc": "2.0", "method": "insert", "params": {"a":7}},
        {"jsonrpc": "2.0", "method": "echo", "params": {"a":42,"b":23}, "id": "2"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
        {"jsonrpc": "2.0", "method": "nothing", "id": "9"}
    ]"#;
    let reply = fixture.response(message).await;
    let starts = reply.starts_with(&format!(
        "[{ROLLED_BACK}\"1\"}},{ROLLED_BACK}\"2\"}},{INVALID}"
    ));
    assert!(starts, "{reply}");
    let ends = reply.ends_with(&format!(
        "\"id\":null}},{ROLLED_BACK}\"5\"}},{ROLLED_BACK}\"9\"}}]"
    ));
    assert!(ends, "{reply}");
    assert!(fixture.executor.ran().is_empty());
}

#[tokio::test]
async fn a_batch_of_notifications() {
    let fixture = fixture().await;
    let message = r#"[
        {"jsonrpc": "2.0", "method": "insert", "params": {"a":1}},
        {"jsonrpc": "2.0", "method": "insert", "params": {"a":7}}
    ]"#;
    assert_eq!(fixture.response(message).await, "");
    assert_eq!(
        fixture.executor.ran(),
        [
            "music/alice: pipeline",
            "insert $1 (1)",
            "insert $1 (7)",
            "commit"
        ]
    );
}
