//! Tests of dry runs, in which statements are described and not run.

use crate::fixture::{fixture, tenant};

fn call(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","id":1}}"#)
}

fn result(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

#[tokio::test]
async fn a_dry_run_needs_no_values_and_runs_nothing() {
    let fixture = fixture().await;
    assert_eq!(
        fixture.dry(&call("hinted")).await,
        result(
            r#"{"schema":{"a":{"type":"json","array":false},"b":{"type":"json","array":false}},"data":[],"params":{"a":{"type":"int4","array":false},"b":{"type":"varchar","array":true}}}"#
        )
    );
    assert_eq!(
        fixture.executor.ran(),
        ["music/alice: describe select echo $1, $2"]
    );
    assert_eq!(
        fixture.dry(&call("insert_csv")).await,
        result(r#"{"schema":{},"data":[],"params":{"a":{"type":"int4","array":false}}}"#)
    );
}

#[tokio::test]
async fn the_signature_is_kept_with_what_cannot_be_null() {
    let fixture = fixture().await;
    let before = fixture.registry.lookup(&tenant(), "origin").await.unwrap();
    assert!(before.unwrap().signature().is_none());
    fixture.dry(&call("origin")).await;
    let ran = fixture.executor.ran();
    assert_eq!(ran[0], "music/alice: describe select origin");
    assert!(ran[1].starts_with(r#"Catalog("music"): "#), "{ran:?}");
    let method = fixture.registry.lookup(&tenant(), "origin").await.unwrap();
    let method = method.unwrap();
    let columns = &method.signature().unwrap().columns;
    let columns: Vec<_> = columns
        .iter()
        .map(|column| (&*column.name, column.nullable))
        .collect();
    assert_eq!(columns, [("id", false), ("name", true)]);
}

#[tokio::test]
async fn each_call_of_a_batch_stands_alone() {
    let fixture = fixture().await;
    let message = format!(
        r#"[{},{},{{"jsonrpc":"2.0","method":"hinted"}},{}]"#,
        call("date"),
        call("syntax"),
        call("unknown")
    );
    assert_eq!(
        fixture.dry(&message).await,
        format!(
            "[{},{},{}]",
            result(r#"{"schema":{"d":{"type":"date","array":false}},"data":[],"params":{}}"#),
            r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error","data":{"sqlstate":"42601","message":"what PostgreSQL said","detail":"more","constraint":"albums_price_check"}},"id":1}"#,
            r#"{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not found"},"id":1}"#
        )
    );
    let hinted = fixture.registry.lookup(&tenant(), "hinted").await.unwrap();
    assert!(hinted.unwrap().signature().is_some());
}

#[tokio::test]
async fn notifications_are_described_in_silence() {
    let fixture = fixture().await;
    assert_eq!(
        fixture.dry(r#"{"jsonrpc":"2.0","method":"date"}"#).await,
        ""
    );
    assert_eq!(
        fixture.dry(r#"[{"jsonrpc":"2.0","method":"date"}]"#).await,
        ""
    );
    let date = fixture.registry.lookup(&tenant(), "date").await.unwrap();
    assert!(date.unwrap().signature().is_some());
}

#[tokio::test]
async fn a_format_that_fits_nothing_is_named() {
    let response = fixture().await.dry(&call("letters")).await;
    assert!(response.contains(r#""code":-32603"#), "{response}");
    assert!(response.contains("type_formats.nowhere"), "{response}");
}

#[tokio::test]
async fn positional_parameters_are_refused_here_too() {
    let message = r#"{"jsonrpc":"2.0","method":"date","params":[1],"id":1}"#;
    assert!(fixture().await.dry(message).await.contains("-32602"));
}
