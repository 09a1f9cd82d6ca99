//! Tests dry runs and the files that are generated from them: `/call/dry`, `/interfaces`,
//! `/openrpc.json` (API.md, "Methods").

use reqwest::Method;
use serde_json::{Value, json};

use crate::methods::{defined, patch};
use crate::rpc::call;
use crate::service::{TextResponse, demo};

async fn dry(message: Value) -> TextResponse {
    let body = Some(message.to_string());
    demo()
        .ask(Method::POST, "/api/v4/call/dry", Some("demo"), body)
        .await
}

async fn interfaces() -> String {
    let response = demo()
        .ask(Method::GET, "/api/v4/interfaces", Some("alice"), None)
        .await;
    assert_eq!(response.status, 200);
    assert_eq!(response.header("content-type"), "text/plain; charset=utf-8");
    response.text
}

/// The line of the interfaces that describes a method.
async fn line(method: &str) -> String {
    let text = interfaces().await;
    let starts = [format!("    {method}("), format!("    \"{method}\"(")];
    let found = text
        .lines()
        .find(|line| starts.iter().any(|start| line.starts_with(start)));
    found
        .unwrap_or_else(|| panic!("{text}"))
        .trim_start()
        .to_owned()
}

#[tokio::test]
async fn a_dry_run_needs_no_values_runs_nothing_and_keeps_the_types() {
    demo()
        .rows(
            "demo",
            "create table i_written (id int primary key, name text)",
            json!({}),
        )
        .await;
    defined(json!({"method": "i_write", "q": "insert into i_written values (:id, :name) returning id, name"})).await;
    let response = dry(json!({"jsonrpc": "2.0", "method": "i_write", "id": "d"})).await;
    assert_eq!(
        response.text,
        r#"{"jsonrpc":"2.0","id":"d","result":{"schema":{"id":{"type":"int4","array":false},"name":{"type":"text","array":false}},"data":[],"params":{"id":{"type":"int4","array":false},"name":{"type":"text","array":false}}}}"#
    );
    let rows = demo()
        .rows(
            "demo",
            "select count(*)::int as n from i_written",
            json!({}),
        )
        .await;
    assert_eq!(rows["data"], json!([{"n": 0}]));
    let shown = demo()
        .ask(Method::GET, "/api/v4/methods/i_write", Some("demo"), None)
        .await
        .json();
    assert_eq!(
        shown["input_schema"]["name"],
        json!({"type": "text", "array": false, "nullable": false})
    );
    assert_eq!(
        shown["output_schema"]["id"],
        json!({"type": "int4", "array": false, "nullable": false})
    );
    assert_eq!(shown["output_schema"]["name"]["nullable"], true);
}

#[tokio::test]
async fn a_dry_run_takes_batches_notifications_and_values() {
    defined(json!([
        {"method": "i_batch", "q": "select :a::int as a"},
        {"method": "i_silent", "q": "select :b::date as b"},
        {"method": "i_broken", "q": "select * from i_no_table"},
    ]))
    .await;
    let responses = dry(json!([
        call("i_batch", json!({"a": "not looked at"}), 1),
        {"jsonrpc": "2.0", "method": "i_silent"},
        call("i_broken", json!({}), 2),
        call("i_nowhere", json!({}), 3),
    ]))
    .await
    .json();
    assert_eq!(
        responses[0]["result"]["params"],
        json!({"a": {"type": "int4", "array": false}})
    );
    assert_eq!(responses[1]["error"]["data"]["sqlstate"], "42P01");
    assert_eq!(responses[2]["error"]["code"], -32601);
    assert_eq!(responses.as_array().unwrap().len(), 3);
    assert_eq!(
        line("i_silent").await,
        "i_silent(params: { b: string; }): Promise<{ b: string | null; }[]>;"
    );
    let silent = dry(json!({"jsonrpc": "2.0", "method": "i_silent"})).await;
    assert_eq!((silent.status, &*silent.text), (204, ""));
}

#[tokio::test]
async fn the_interface_has_a_line_per_method() {
    demo()
        .rows("demo", "create table i_typed (id int primary key, tags text[] not null, doc jsonb, during daterange, at point not null)", json!({}))
        .await;
    defined(json!([
        {"method": "i_typed", "q": "select id, tags, doc, during, at from i_typed where id = :id and tags = :tags"},
        {"method": "i_outer", "q": "select t.id from albums a left join i_typed t on t.id = a.id"},
        {"method": "i_raw", "q": "select :anything"},
        {"method": "i-quoted.name", "q": "select 1 as \"a b\""},
    ]))
    .await;
    dry(json!([
        call("i_typed", json!({}), 1),
        call("i_outer", json!({}), 2),
        call("i-quoted.name", json!({}), 3)
    ]))
    .await;
    let text = interfaces().await;
    assert!(text.starts_with("export interface Api {\n"), "{text}");
    // Other tests define methods at the same time. Between two changes the bytes are the same.
    let (mut last, mut again) = (text.clone(), interfaces().await);
    for _ in 0..20 {
        if last == again {
            break;
        }
        last = std::mem::replace(&mut again, interfaces().await);
    }
    assert_eq!(last, again, "the same bytes again");
    assert_eq!(
        line("i_typed").await,
        "i_typed(params: { id: number; tags: string[]; }): Promise<{ id: number; tags: string[]; doc: unknown; during: Range<string> | null; at: Point; }[]>;"
    );
    assert_eq!(
        line("i_outer").await,
        "i_outer(params: Record<string, never>): Promise<{ id: number | null; }[]>;"
    );
    assert_eq!(
        line("i_raw").await,
        "i_raw(params: Record<string, unknown>): Promise<Record<string, unknown>[]>;"
    );
    assert!(
        line("i-quoted.name")
            .await
            .starts_with("\"i-quoted.name\"(")
    );
    assert!(text.contains("\nexport type Range<T> = "), "{text}");
}

#[tokio::test]
async fn another_statement_or_other_hints_need_another_dry_run() {
    defined(json!({"method": "i_stale", "q": "select :a::int as a"})).await;
    let unknown = "i_stale(params: Record<string, unknown>): Promise<Record<string, unknown>[]>;";
    for change in [
        json!({"q": "select :a::text as a"}),
        json!({"type_hints": {"a": "date"}}),
    ] {
        dry(call("i_stale", json!({}), 1)).await;
        assert_ne!(line("i_stale").await, unknown);
        assert_eq!(
            patch("demo", "i_stale", json!({"output_format": "json"}))
                .await
                .status,
            303
        );
        assert_ne!(line("i_stale").await, unknown, "it says nothing of types");
        assert_eq!(patch("demo", "i_stale", change.clone()).await.status, 303);
        assert_eq!(line("i_stale").await, unknown, "{change}");
    }
    let shown = demo()
        .ask(Method::GET, "/api/v4/methods/i_stale", Some("demo"), None)
        .await
        .json();
    assert_eq!(
        (&shown["input_schema"], &shown["output_schema"]),
        (&Value::Null, &Value::Null)
    );
}

#[tokio::test]
async fn the_openrpc_document_says_the_same() {
    defined(json!({"method": "i_open", "q": "select id, title from albums where id = :id"})).await;
    dry(call("i_open", json!({}), 1)).await;
    let response = demo()
        .ask(Method::GET, "/api/v4/openrpc.json", Some("alice"), None)
        .await;
    assert_eq!(
        response.header("content-type"),
        "application/json; charset=utf-8"
    );
    let document = response.json();
    assert_eq!(document["openrpc"], "1.3.2");
    let methods = document["methods"].as_array().unwrap();
    let method = methods
        .iter()
        .find(|method| method["name"] == "i_open")
        .unwrap();
    assert_eq!(method["params"][0]["name"], "id");
    assert!(method["result"]["schema"].is_object());
}
