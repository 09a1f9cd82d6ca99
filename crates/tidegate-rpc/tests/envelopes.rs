//! Tests of invalid request objects, and of messages beyond the limits.

use tidegate_rpc::{Limits, Payload};

use crate::fixture::fixture;

fn refusal(message: &str) -> String {
    let reply = Payload::parse(message.as_bytes(), Limits::default()).unwrap_err();
    String::from_utf8(reply.as_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn an_id_of_every_kind_comes_back_as_it_was_written() {
    let fixture = fixture().await;
    for id in [
        r#""""#,
        r#""a \u00e9 \" \\ ü""#,
        r#""\ud800""#,
        "null",
        "0",
        "-0",
        "1.50",
        "1e400",
        "123456789012345678901234567890.000000000000000000001",
    ] {
        let message = format!(r#"{{"id":{id},"method":"date","jsonrpc":"2.0"}}"#);
        let reply = fixture.response(&message).await;
        let expected = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"schema":{{"d":{{"type":"date","array":false}}}},"data":[{{"d":"02.01.2000"}}]}}}}"#
        );
        assert_eq!(reply, expected);
        let message = format!(r#"{{"id":{id},"method":"unknown","jsonrpc":"2.0"}}"#);
        let reply = fixture.response(&message).await;
        assert!(reply.ends_with(&format!(r#","id":{id}}}"#)), "{reply}");
    }
}

#[test]
fn a_wrong_type_of_every_member_is_an_invalid_request() {
    for (message, named) in [
        ("null", "object"),
        ("1", "object"),
        (r#""text""#, "object"),
        ("{}", "jsonrpc"),
        (r#"{"method":"echo","id":1}"#, "jsonrpc"),
        (r#"{"jsonrpc":2.0,"method":"echo","id":1}"#, "jsonrpc"),
        (r#"{"jsonrpc":"1.0","method":"echo","id":1}"#, "jsonrpc"),
        (r#"{"jsonrpc":null,"method":"echo","id":1}"#, "jsonrpc"),
        (r#"{"jsonrpc":"2.0","id":1}"#, "method"),
        (r#"{"jsonrpc":"2.0","method":null,"id":1}"#, "method"),
        (r#"{"jsonrpc":"2.0","method":["echo"],"id":1}"#, "method"),
        (r#"{"jsonrpc":"2.0","method":"echo","id":true}"#, "id"),
        (r#"{"jsonrpc":"2.0","method":"echo","id":{}}"#, "id"),
        (r#"{"jsonrpc":"2.0","method":"echo","id":[1]}"#, "id"),
        (
            r#"{"jsonrpc":"2.0","method":"echo","params":"bar","id":1}"#,
            "params",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"echo","params":5,"id":1}"#,
            "params",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"echo","params":false,"id":1}"#,
            "params",
        ),
        (
            r#"{"jsonrpc":"2.0","method":"a","method":"b","id":1}"#,
            "twice",
        ),
    ] {
        let response = refusal(message);
        let expected = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request","#;
        assert!(response.starts_with(expected), "{message}: {response}");
        assert!(
            response.ends_with(r#","id":null}"#),
            "{message}: {response}"
        );
        assert!(response.contains(named), "{message}: {response}");
    }
}

#[tokio::test]
async fn unknown_members_are_ignored_and_escaped_names_are_names() {
    let reply = fixture()
        .await
        .response(r#"{"x":1,"\ud800":2,"x":3,"json\u0072pc":"2\u002e0","m\u0065thod":"d\u0061te","id":1}"#)
        .await;
    assert!(reply.contains("02.01.2000"), "{reply}");
}

#[tokio::test]
async fn empty_parameters_null_and_absence_are_the_same() {
    let fixture = fixture().await;
    let absent = fixture
        .response(r#"{"jsonrpc":"2.0","method":"date","id":1}"#)
        .await;
    for params in ["{}", "null", " { } "] {
        let message = format!(r#"{{"jsonrpc":"2.0","method":"date","params":{params},"id":1}}"#);
        assert_eq!(fixture.response(&message).await, absent, "{params}");
    }
}

#[test]
fn bytes_that_are_no_text_are_no_json() {
    let reply = Payload::parse(b"{\"jsonrpc\":\"\xff\"}", Limits::default()).unwrap_err();
    assert!(
        reply
            .as_bytes()
            .starts_with(br#"{"jsonrpc":"2.0","error":{"code":-32700,"#)
    );
}

#[test]
fn nesting_has_a_limit() {
    let nested = |levels| {
        let value = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"jsonrpc":"2.0","method":"echo","id":1,"params":{{"a":{value}}}}}"#)
    };
    assert!(Payload::parse(nested(126).as_bytes(), Limits::default()).is_ok());
    assert!(refusal(&nested(127)).contains(r#""limit":128"#));
    assert!(refusal(&nested(100_000)).contains(r#""limit":128"#));
    let brackets = format!(
        r#"{{"jsonrpc":"2.0","method":"{}\"{}"}}"#,
        "[".repeat(99),
        "{".repeat(99)
    );
    assert!(Payload::parse(brackets.as_bytes(), Limits::default()).is_ok());
}

#[test]
fn more_than_a_thousand_calls_are_refused_with_the_limit() {
    let batch = |calls: usize| {
        let call = r#"{"jsonrpc":"2.0","method":"date","id":1}"#;
        format!("[{}]", vec![call; calls].join(","))
    };
    assert!(Payload::parse(batch(1_000).as_bytes(), Limits::default()).is_ok());
    for calls in [1_001, 10_000] {
        assert_eq!(
            refusal(&batch(calls)),
            r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request","data":{"message":"more than 1000 calls in one message","limit":1000}},"id":null}"#
        );
    }
}

#[test]
fn the_parameter_sets_of_all_calls_are_counted() {
    let call = |sets: usize| {
        let sets = vec!["{}"; sets].join(",");
        format!(r#"{{"jsonrpc":"2.0","method":"date","params":[{sets}],"id":1}}"#)
    };
    assert!(Payload::parse(call(100_000).as_bytes(), Limits::default()).is_ok());
    let expected = r#"{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid Request","data":{"message":"more than 100000 parameter sets in one message","limit":100000}},"id":null}"#;
    assert_eq!(refusal(&call(100_001)), expected);
    assert_eq!(
        refusal(&format!("[{},{}]", call(60_000), call(40_001))),
        expected
    );
}

#[tokio::test]
async fn a_thousand_calls_are_answered_in_order() {
    let fixture = fixture().await;
    let calls = (0..1_000).map(|id| {
        format!(r#"{{"jsonrpc":"2.0","method":"echo","params":{{"a":{id},"b":0}},"id":{id}}}"#)
    });
    let message = format!("[{}]", calls.collect::<Vec<_>>().join(","));
    let reply: Vec<serde_json::Value> =
        serde_json::from_str(&fixture.response(&message).await).unwrap();
    assert_eq!(reply.len(), 1_000);
    for (id, reply) in reply.iter().enumerate() {
        assert_eq!(reply["id"], id);
        assert_eq!(reply["result"]["data"][0]["a"], id);
    }
}
