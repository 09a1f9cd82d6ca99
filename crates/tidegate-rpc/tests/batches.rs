//! Tests of batches, each of which is one transaction and is sent as one pipeline.

use tidegate_methods::{Caller, Definition, Limits};
use tidegate_rpc::{Error, Limits as RpcLimits, OutputBuffer, Payload};
use tidegate_sql::Author;

use crate::executor::Scripted;
use crate::fixture::{OWNER, fixture, tenant, with};

const DIVIDED: &str = r#"{"code":-32603,"message":"Internal error","data":{"sqlstate":"22012","message":"what PostgreSQL said","detail":"more","constraint":"albums_price_check"}}"#;

fn call(method: &str, params: &str, id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":{id}}}"#)
}

fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

fn batch(calls: &[String]) -> String {
    format!("[{}]", calls.join(","))
}

fn rolled_back(id: u32) -> String {
    error(
        r#"{"code":-32603,"message":"Internal error","data":{"rolledBack":true}}"#,
        id,
    )
}

fn rolled_back_because(cause: &str, id: u32) -> String {
    error(
        &format!(
            r#"{{"code":-32603,"message":"Internal error","data":{{"rolledBack":true,"cause":{cause}}}}}"#
        ),
        id,
    )
}

fn error(error: &str, id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","error":{error},"id":{id}}}"#)
}

#[tokio::test]
async fn a_batch_is_one_transaction_with_responses_in_order() {
    let fixture = fixture().await;
    let message = batch(&[
        call("insert", r#"[{"a":1},{"a":2}]"#, 7),
        notification("insert", r#"{"a":3}"#),
        call("date", "{}", 5),
    ]);
    assert_eq!(
        fixture.response(&message).await,
        r#"[{"jsonrpc":"2.0","id":7,"result":{"schema":{},"data":[],"affected_rows":2}},{"jsonrpc":"2.0","id":5,"result":{"schema":{"d":{"type":"date","array":false}},"data":[{"d":"02.01.2000"}]}}]"#
    );
    assert_eq!(
        fixture.executor.ran(),
        [
            "music/alice: pipeline",
            "insert $1 (1)(2)",
            "insert $1 (3)",
            "select date",
            "commit"
        ]
    );
}

#[tokio::test]
async fn a_batch_of_one_has_an_array_of_one() {
    let fixture = fixture().await;
    let reply = fixture
        .response(&batch(&[call("insert", r#"{"a":1}"#, 1)]))
        .await;
    assert_eq!(
        reply,
        r#"[{"jsonrpc":"2.0","id":1,"result":{"schema":{},"data":[],"affected_rows":1}}]"#
    );
    let reply = fixture.response(&batch(&[call("divide", "{}", 1)])).await;
    assert_eq!(reply, format!("[{}]", error(DIVIDED, 1)));
}

#[tokio::test]
async fn nothing_of_the_first_attempt_is_in_the_response_of_the_second() {
    let fixture = fixture().await;
    let message = batch(&[
        call("insert", r#"{"a":1}"#, 1),
        call("conflict_once", "{}", 2),
    ]);
    assert_eq!(
        fixture.response(&message).await,
        r#"[{"jsonrpc":"2.0","id":1,"result":{"schema":{},"data":[],"affected_rows":1}},{"jsonrpc":"2.0","id":2,"result":{"schema":{"s":{"type":"text","array":false}},"data":[{"s":"a row"}]}}]"#
    );
    assert_eq!(
        fixture.executor.ran(),
        [
            "music/alice: pipeline",
            "insert $1 (1)",
            "select conflict",
            "rollback",
            "music/alice: pipeline",
            "insert $1 (1)",
            "select conflict",
            "commit"
        ]
    );
}

#[tokio::test]
async fn a_failure_in_the_middle_undoes_everything() {
    let fixture = fixture().await;
    let message = batch(&[
        call("insert", r#"{"a":1}"#, 1),
        call("divide", "{}", 2),
        notification("insert", r#"{"a":2}"#),
        call("insert", r#"{"a":3}"#, 3),
    ]);
    let expected = batch(&[rolled_back(1), error(DIVIDED, 2), rolled_back(3)]);
    assert_eq!(fixture.response(&message).await, expected);
    assert_eq!(
        fixture.executor.ran(),
        [
            "music/alice: pipeline",
            "insert $1 (1)",
            "select refuse 22012",
            "rollback"
        ]
    );
}

#[tokio::test]
async fn a_notification_that_fails_is_the_cause_of_the_others() {
    let fixture = fixture().await;
    let message = batch(&[
        call("insert", r#"{"a":1}"#, 1),
        notification("divide", "{}"),
        call("insert", r#"{"a":3}"#, 3),
    ]);
    let expected = batch(&[
        rolled_back_because(DIVIDED, 1),
        rolled_back_because(DIVIDED, 3),
    ]);
    assert_eq!(fixture.response(&message).await, expected);
    let silent = batch(&[
        notification("insert", r#"{"a":1}"#),
        notification("divide", "{}"),
    ]);
    fixture.executor.ran();
    assert_eq!(fixture.response(&silent).await, "");
    assert_eq!(fixture.executor.ran().last().unwrap(), "rollback");
}

#[tokio::test]
async fn errors_found_before_the_transaction_are_reported_for_every_call() {
    let fixture = fixture().await;
    let message = batch(&[
        call("unknown", "{}", 1),
        call("insert", r#"{"a":1}"#, 2),
        call("insert", "[1]", 3),
        call("insert", "{}", 4),
    ]);
    let expected = batch(&[
        error(r#"{"code":-32601,"message":"Method not found"}"#, 1),
        rolled_back(2),
        error(
            r#"{"code":-32602,"message":"Invalid params","data":{"message":"`params[0]`: a number, expected an object","place":"params[0]"}}"#,
            3,
        ),
        error(
            r#"{"code":-32602,"message":"Invalid params","data":{"message":"`params` has no value for the placeholder `:a`","parameter":"a","place":"params.a"}}"#,
            4,
        ),
    ]);
    assert_eq!(fixture.response(&message).await, expected);
    assert!(fixture.executor.ran().is_empty());
}

#[tokio::test]
async fn a_deadline_in_a_batch_is_reported_by_the_call_that_exceeded_it() {
    let fixture = fixture().await;
    let message = batch(&[call("insert", r#"{"a":1}"#, 1), call("deadline", "{}", 2)]);
    let deadline = r#"{"code":-32603,"message":"Internal error","data":{"message":"the statement did not end before its deadline","retryable":true}}"#;
    let expected = batch(&[rolled_back(1), error(deadline, 2)]);
    assert_eq!(fixture.response(&message).await, expected);
    assert_eq!(fixture.executor.ran().last().unwrap(), "rollback");
}

#[tokio::test]
async fn a_transaction_that_does_not_begin_fails_every_call() {
    let fixture = with(Scripted::full()).await;
    let message = batch(&[
        call("insert", r#"{"a":1}"#, 1),
        notification("insert", r#"{"a":2}"#),
        call("insert", r#"{"a":3}"#, 2),
    ]);
    let full = r#"{"code":-32603,"message":"Internal error","data":{"message":"no connection became free in time","retryable":true}}"#;
    assert_eq!(
        fixture.response(&message).await,
        batch(&[error(full, 1), error(full, 2)])
    );
}

#[tokio::test]
async fn a_commit_that_postgresql_refuses_is_the_cause_for_all() {
    let fixture = fixture().await;
    let message = batch(&[call("insert", r#"{"a":1}"#, 1), call("deferred", "{}", 2)]);
    let refused = DIVIDED.replace("22012", "23503");
    let expected = batch(&[
        rolled_back_because(&refused, 1),
        rolled_back_because(&refused, 2),
    ]);
    assert_eq!(fixture.response(&message).await, expected);
}

#[tokio::test]
async fn a_commit_without_a_response_claims_nothing() {
    let fixture = fixture().await;
    let (response, outcome) = fixture.outcome(&batch(&[call("lost", "{}", 1)])).await;
    let doubt = r#"{"code":-32603,"message":"Internal error","data":{"message":"it is not known whether the batch was committed"}}"#;
    assert_eq!(response, batch(&[error(doubt, 1)]));
    assert!(matches!(outcome.errors[..], [Error::InDoubt(_)]));
}

#[tokio::test]
async fn equal_ids_are_no_concern_of_the_server() {
    let fixture = fixture().await;
    let message = batch(&[
        call("insert", r#"{"a":1}"#, 1),
        call("insert", r#"{"a":2}"#, 1),
    ]);
    assert_eq!(
        fixture
            .response(&message)
            .await
            .matches(r#""id":1"#)
            .count(),
        2
    );
}

#[tokio::test]
async fn a_batch_that_others_stood_in_the_way_of_is_run_once_more() {
    let fixture = fixture().await;
    let message = batch(&[call("date", "{}", 1), call("conflict", "{}", 2)]);
    let reply = fixture.response(&message).await;
    assert!(reply.contains(r#""sqlstate":"40001""#), "{reply}");
    assert!(reply.contains(r#""retryable":true"#), "{reply}");
    let once = [
        "music/alice: pipeline",
        "select date",
        "select refuse 40001",
        "rollback",
    ];
    assert_eq!(fixture.executor.ran(), [once, once].concat());
}

#[tokio::test]
async fn a_batch_is_the_owners_when_all_its_methods_are() {
    let fixture = fixture().await;
    let definitions =
        r#"[{"method":"hers","q":"select echo :a"},{"method":"own_code","q":"select echo(:a)"}]"#;
    let definitions = Definition::parse(definitions.as_bytes(), Limits::default()).unwrap();
    let (hers, own_code) = (definitions[0].clone(), definitions[1].clone());
    let anna = Caller {
        user: "anna",
        owner: false,
    };
    let registry = &fixture.registry;
    registry.create(&tenant(), anna, vec![hers]).await.unwrap();
    registry
        .create(&tenant(), OWNER, vec![own_code])
        .await
        .unwrap();
    let mine = || call("date", "{}", 1);
    let hers = || call("hers", r#"{"a":1}"#, 2);
    // The author is the owner, even if the method calls a function of the database's own. The
    // executor decides whether such a function may be called on shared connections.
    let own_code = || call("own_code", r#"{"a":1}"#, 2);
    for (message, author) in [
        (mine(), Author::Owner),
        (hers(), Author::Caller),
        (own_code(), Author::Owner),
        (batch(&[mine(), mine()]), Author::Owner),
        (batch(&[mine(), hers()]), Author::Caller),
        (batch(&[hers(), mine()]), Author::Caller),
        (batch(&[own_code(), mine()]), Author::Owner),
    ] {
        fixture.response(&message).await;
        assert_eq!(fixture.executor.author(), author, "{message}");
    }
}

#[tokio::test]
async fn a_batch_that_is_too_large_has_no_partial_response() {
    let fixture = fixture().await;
    let message = batch(&[
        call("insert", r#"{"a":1}"#, 1),
        call("echo", r#"{"a":"long","b":"longer"}"#, 2),
    ]);
    let payload = Payload::parse(message.as_bytes(), RpcLimits::default()).unwrap();
    let mut out = OutputBuffer::new(100);
    let context = fixture.context();
    fixture
        .dispatcher
        .dispatch(&context, &payload, &mut out)
        .await;
    let response = String::from_utf8(out.into_bytes().to_vec()).unwrap();
    assert!(
        response.starts_with(&format!("[{}", rolled_back(1))),
        "{response}"
    );
    assert!(response.contains("larger than 100 bytes"), "{response}");
    assert_eq!(fixture.executor.ran().last().unwrap(), "rollback");
}
