//! Tests of single calls: their results, parameters and errors.

use tidegate_rpc::{Error, Limits, Output, OutputBuffer, Payload, Reply};
use tidegate_sql::{DatabaseName, QueryOptions};
use tidegate_values::OutputFormat;
use tidegate_values::datetime::Zone;

use crate::fixture::{Fixture, fixture, principal};

fn call(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params},"id":1}}"#)
}

fn result(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

fn error(code: i32, message: &str, data: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":"{message}","data":{data}}},"id":1}}"#
    )
}

fn invalid(data: &str) -> String {
    error(-32602, "Invalid params", data)
}

fn internal(data: &str) -> String {
    error(-32603, "Internal error", data)
}

#[tokio::test]
async fn a_call_runs_as_its_caller_in_a_transaction_of_its_own() {
    let fixture = fixture().await;
    fixture
        .response(&call("echo", r#"{"a":1,"b":[2.50]}"#))
        .await;
    assert_eq!(
        fixture.executor.ran(),
        ["music/alice: select echo $1, $2 (1,[2.50])"]
    );
}

#[tokio::test]
async fn methods_of_another_tenant_are_not_found() {
    let mut fixture = fixture().await;
    fixture.who = principal("films");
    let reply = fixture.response(&call("date", "{}")).await;
    assert!(
        reply.contains(r#""code":-32601,"message":"Method not found"}"#),
        "{reply}"
    );
    assert!(fixture.executor.ran().is_empty());
}

#[tokio::test]
async fn several_sets_are_one_statement_and_one_result() {
    let fixture = fixture().await;
    let reply = fixture
        .response(&call("echo", r#"[{"a":1,"b":"x"},{"b":null,"a":2}]"#))
        .await;
    assert_eq!(
        reply,
        result(
            r#"{"schema":{"a":{"type":"json","array":false},"b":{"type":"json","array":false}},"data":[{"a":1,"b":"x"},{"a":2,"b":null}]}"#
        )
    );
    assert_eq!(
        fixture.executor.ran(),
        [r#"music/alice: select echo $1, $2 (1,"x")(2,null)"#]
    );
}

#[tokio::test]
async fn the_rows_written_are_summed_over_the_sets() {
    let reply = fixture()
        .await
        .response(&call("insert", r#"[{"a":1},{"a":2},{"a":3}]"#))
        .await;
    assert_eq!(
        reply,
        result(r#"{"schema":{},"data":[],"affected_rows":3}"#)
    );
}

#[tokio::test]
async fn csv_and_ndjson_are_a_string() {
    let fixture = fixture().await;
    let schema = r#"{"s":{"type":"text","array":false}}"#;
    assert_eq!(
        fixture.response(&call("csv", "{}")).await,
        result(&format!(
            r#"{{"schema":{schema},"data":"s\r\n\"say \"\"hü\"\",\n\\\"\r\n"}}"#
        ))
    );
    assert_eq!(
        fixture.response(&call("ndjson", "{}")).await,
        result(&format!(
            r#"{{"schema":{schema},"data":"{{\"s\":\"say \\\"hü\\\",\\n\\\\\"}}\n"}}"#
        ))
    );
    let written = fixture.response(&call("insert_csv", r#"{"a":1}"#)).await;
    let written: serde_json::Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["result"]["affected_rows"], 1);
    assert!(written["result"]["data"].is_string());
}

#[tokio::test]
async fn a_parameter_that_is_missing_extra_or_given_twice_is_named() {
    let fixture = fixture().await;
    for (params, expected) in [
        (
            r#"{"a":1}"#,
            r#"{"message":"`params` has no value for the placeholder `:b`","parameter":"b","place":"params.b"}"#,
        ),
        (
            r#"[{"a":1,"b":2},{"a":1}]"#,
            r#"{"message":"`params[1]` has no value for the placeholder `:b`","parameter":"b","place":"params[1].b"}"#,
        ),
        (
            r#"{"a":1,"b":2,"c":3}"#,
            r#"{"message":"`params.c` names no placeholder of the statement","parameter":"c","place":"params.c"}"#,
        ),
        (
            r#"{"a":1,"b":2,"b":3}"#,
            r#"{"message":"`params.b`: given twice","parameter":"b","place":"params.b"}"#,
        ),
        (
            "[1,2]",
            r#"{"message":"`params[0]`: a number, expected an object","place":"params[0]"}"#,
        ),
        (
            r#"[{"a":1,"b":2},"x"]"#,
            r#"{"message":"`params[1]`: a string, expected an object","place":"params[1]"}"#,
        ),
        (
            "[]",
            r#"{"message":"`params`: an empty array, expected one object or more","place":"params"}"#,
        ),
    ] {
        assert_eq!(
            fixture.response(&call("echo", params)).await,
            invalid(expected)
        );
    }
    assert!(fixture.executor.ran().is_empty());
}

#[tokio::test]
async fn a_value_that_postgresql_cannot_read_is_a_wrong_parameter() {
    let reply = fixture()
        .await
        .response(&call("unreadable", r#"[{"a":1},{"a":"x"}]"#))
        .await;
    assert_eq!(
        reply,
        invalid(
            r#"{"sqlstate":"22P02","message":"what PostgreSQL said","detail":"more","constraint":"albums_price_check","parameter":"a","place":"params[1].a"}"#
        )
    );
}

#[tokio::test]
async fn a_value_that_we_cannot_convert_is_a_wrong_parameter() {
    let fixture = fixture().await;
    assert_eq!(
        fixture.response(&call("invalid", r#"{"a":[1,{}]}"#)).await,
        invalid(
            r#"{"message":"`params.a[1]` is not a int4: an object","parameter":"a","place":"params.a[1]"}"#
        )
    );
}

#[tokio::test]
async fn an_error_at_run_time_says_what_postgresql_says_and_nothing_of_the_half_result() {
    let reply = fixture().await.response(&call("divide", "{}")).await;
    assert_eq!(
        reply,
        internal(
            r#"{"sqlstate":"22012","message":"what PostgreSQL said","detail":"more","constraint":"albums_price_check"}"#
        )
    );
}

#[tokio::test]
async fn what_may_work_later_is_retryable() {
    let fixture = fixture().await;
    for (method, message) in [
        ("deadline", "the statement did not end before its deadline"),
        ("pool", "no connection became free in time"),
        ("unavailable", "PostgreSQL is unavailable"),
    ] {
        let data = format!(r#"{{"message":"{message}","retryable":true}}"#);
        assert_eq!(fixture.response(&call(method, "{}")).await, internal(&data));
    }
    let reply = fixture.response(&call("conflict", "{}")).await;
    assert!(reply.contains(r#""sqlstate":"40001""#) && reply.contains(r#""retryable":true"#));
}

#[tokio::test]
async fn errors_of_the_definition_are_reported_as_such() {
    let fixture = fixture().await;
    for (method, params, named) in [
        ("unknownhint", "{}", "type_hints.a"),
        ("unformatted", "{}", "type_formats.d"),
        ("misformatted", r#"{"a":1}"#, "type_formats.a"),
        ("letters", "{}", "type_formats.nowhere"),
        ("nodatabase", "{}", "the database is not there"),
    ] {
        let reply = fixture.response(&call(method, params)).await;
        assert!(
            reply.contains(r#""code":-32603,"message":"Internal error""#),
            "{reply}"
        );
        assert!(reply.contains(named), "{reply}");
    }
}

#[tokio::test]
async fn an_internal_error_is_logged_and_not_shown() {
    let fixture = fixture().await;
    let (response, outcome) = fixture.outcome(&call("internal", "{}")).await;
    assert_eq!(
        response,
        r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"},"id":1}"#
    );
    assert!(matches!(
        outcome.errors[..],
        [Error::Statement(tidegate_sql::Error::Internal(_))]
    ));
    let (_, outcome) = fixture
        .outcome(r#"{"jsonrpc":"2.0","method":"unavailable"}"#)
        .await;
    assert!(matches!(
        outcome.errors[..],
        [Error::Statement(tidegate_sql::Error::Unavailable { .. })]
    ));
    let (_, outcome) = fixture.outcome(&call("divide", "{}")).await;
    assert!(matches!(outcome.errors[..], [Error::Statement(_)]));
}

#[tokio::test]
async fn a_result_beyond_the_limit_is_an_error() {
    let fixture = fixture().await;
    let message = call("echo", &format!(r#"{{"a":"{}","b":1}}"#, "x".repeat(200)));
    let payload = Payload::parse(message.as_bytes(), Limits::default()).unwrap();
    let mut out = OutputBuffer::new(200);
    fixture
        .dispatcher
        .dispatch(&fixture.context(), &payload, &mut out)
        .await;
    assert_eq!(
        out.into_bytes(),
        internal(r#"{"message":"the result is larger than 200 bytes"}"#)
    );
}

#[tokio::test]
async fn formatted_values_are_in_the_zone_of_the_call() {
    let fixture = fixture().await;
    let zone = Zone::named("Europe/Berlin").unwrap();
    let message = call("moment", "{}");
    let payload = Payload::parse(message.as_bytes(), Limits::default()).unwrap();
    for (timezone, time) in [(None, "00:00"), (Some(&zone), "01:00")] {
        let context = tidegate_rpc::Context {
            timezone,
            ..fixture.context()
        };
        let mut out = OutputBuffer::new(1_000);
        fixture
            .dispatcher
            .dispatch(&context, &payload, &mut out)
            .await;
        let expected = format!(r#""data":[{{"t":"{time}"}}]}}}}"#);
        assert!(out.bytes().ends_with(expected.as_bytes()), "{out:?}");
    }
}

async fn prepare(
    fixture: &Fixture,
    message: &str,
    format: Option<OutputFormat>,
) -> Result<tidegate_rpc::BoundCall, Option<Reply>> {
    let payload = Payload::parse(message.as_bytes(), Limits::default()).unwrap();
    let call = &payload.calls()[0];
    fixture
        .dispatcher
        .bind(&fixture.context(), call, format)
        .await
        .map_err(|error| Reply::failed(call, &error))
}

#[tokio::test]
async fn a_call_can_be_prepared_for_a_response_without_the_envelope() {
    let fixture = fixture().await;
    let message = call("echo", r#"{"a":1,"b":2}"#);
    let prepared = prepare(&fixture, &message, Some(OutputFormat::Csv))
        .await
        .unwrap();
    assert_eq!(prepared.format, OutputFormat::Csv);
    let mut sink = tidegate_sql::Buffer::new(prepared.writer, 1_000);
    let executor: &dyn tidegate_sql::Executor = &fixture.executor;
    let who = principal("music");
    let options = QueryOptions::default();
    let query = executor.query(&who, &prepared.statement, &options, &mut sink);
    let completion = query.await.unwrap();
    assert_eq!(sink.finish(completion).unwrap(), "a,b\r\n1,2\r\n");

    let refused = prepare(&fixture, &call("echo", "{}"), None)
        .await
        .unwrap_err()
        .unwrap();
    assert!(
        refused
            .as_bytes()
            .starts_with(br#"{"jsonrpc":"2.0","error":{"code":-32602,"#)
    );
    let silent = prepare(&fixture, r#"{"jsonrpc":"2.0","method":"x"}"#, None).await;
    assert_eq!(silent.unwrap_err(), None);
}

#[tokio::test]
async fn a_method_that_was_dropped_is_not_found_by_the_next_call() {
    let fixture = fixture().await;
    fixture.response(&call("date", "{}")).await;
    let owner = tidegate_methods::Caller {
        user: "owner",
        owner: true,
    };
    let tenant = DatabaseName::new("music");
    fixture
        .registry
        .remove(&tenant, owner, &["date"])
        .await
        .unwrap();
    let reply = fixture.response(&call("date", "{}")).await;
    assert!(reply.contains("-32601"), "{reply}");
}

#[test]
fn the_work_may_move_between_threads() {
    fn is_send<T: Send>(_: T) {}
    fn check(fixture: &Fixture, payload: &Payload<'_>, out: &mut OutputBuffer) {
        let context = fixture.context();
        is_send(fixture.dispatcher.dispatch(&context, payload, &mut *out));
        is_send(fixture.dispatcher.dry_run(&context, payload, out));
    }
    let _ = check;
}
