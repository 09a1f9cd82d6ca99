//! Tests `/api/v4/call` and `/api/v4/rpc`: single calls, parameter sets and formats (API.md,
//! "Methods").

use reqwest::Method;
use serde_json::{Value, json};

use crate::methods::defined;
use crate::service::{TextResponse, demo};

/// Posts JSON to `/api/v4/call` as a user (anonymously if `None`).
pub(crate) async fn post(user: Option<&str>, body: String) -> TextResponse {
    demo()
        .ask(Method::POST, "/api/v4/call", user, Some(body))
        .await
}

/// The response to a message of the owner, whose status is always 200.
pub(crate) async fn response(message: Value) -> Value {
    let reply = post(Some("demo"), message.to_string()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[expect(clippy::needless_pass_by_value, reason = "a literal stands here")]
pub(crate) fn call(method: &str, params: Value, id: u32) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params, "id": id})
}

async fn accepting(accept: &str, message: Value) -> TextResponse {
    let token = demo().cached_token("demo").await;
    let request = demo()
        .request(Method::POST, "/api/v4/call")
        .bearer_auth(token);
    TextResponse::of(request.header("accept", accept).json(&message)).await
}

#[tokio::test]
async fn a_call_answers_schema_and_data_in_the_envelope() {
    defined(json!({"method": "r_add", "q": "select :a::int + :b::int as sum"})).await;
    let expected = r#"{"jsonrpc":"2.0","id":1,"result":{"schema":{"sum":{"type":"int4","array":false}},"data":[{"sum":3}]}}"#;
    let body = call("r_add", json!({"a": 1, "b": 2}), 1).to_string();
    for path in [
        "/api/v4/call",
        "/api/v4/call/",
        "/api/v4/rpc",
        "/api/v4/rpc/",
    ] {
        let response = demo()
            .ask(Method::POST, path, Some("alice"), Some(body.clone()))
            .await;
        assert_eq!(
            (response.status, &*response.text),
            (200, expected),
            "{path}"
        );
        assert_eq!(
            response.header("content-type"),
            "application/json; charset=utf-8"
        );
    }
    let token = demo().cached_token("demo").await;
    for kind in ["application/json-rpc", "application/json; charset=utf-8"] {
        let request = demo()
            .request(Method::POST, "/api/v4/call")
            .bearer_auth(&token);
        let request = request.header("content-type", kind).body(body.clone());
        assert_eq!(TextResponse::of(request).await.text, expected, "{kind}");
    }
    let request = demo()
        .request(Method::POST, "/api/v4/call")
        .bearer_auth(&token);
    let request = request.header("content-type", "text/plain").body(body);
    assert_eq!(
        TextResponse::of(request).await.error(),
        (415, "UNSUPPORTED_MEDIA_TYPE".to_owned())
    );
}

#[tokio::test]
async fn an_id_comes_back_as_it_was_sent() {
    defined(json!({"method": "r_id", "q": "select 1 as n"})).await;
    for id in [
        r#""one""#,
        r#""""#,
        r#""\u00e9\"\\""#,
        "0",
        "-7",
        "1.50",
        "1e3",
        "123456789012345678901234567890",
        "null",
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","method":"r_id","id":{id}}}"#);
        let response = post(Some("demo"), body).await;
        let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#);
        assert!(response.text.starts_with(&start), "{id}: {}", response.text);
        let body = format!(r#"{{"jsonrpc":"2.0","method":"r_nothing","id":{id}}}"#);
        let response = post(Some("demo"), body).await;
        let end = format!(r#""message":"Method not found"}},"id":{id}}}"#);
        assert!(response.text.ends_with(&end), "{id}: {}", response.text);
    }
}

#[tokio::test]
async fn a_notification_is_run_and_answered_204() {
    demo()
        .rows("demo", "create table r_notified (n int)", json!({}))
        .await;
    defined(json!({"method": "r_notify", "q": "insert into r_notified values (:n)"})).await;
    for body in [
        r#"{"jsonrpc":"2.0","method":"r_notify","params":{"n":1}}"#,
        r#"[{"jsonrpc":"2.0","method":"r_notify","params":{"n":2}}]"#,
        // Notifications get no response.
        r#"{"jsonrpc":"2.0","method":"r_notify","params":{"n":"x"}}"#,
        r#"{"jsonrpc":"2.0","method":"r_nowhere"}"#,
    ] {
        let response = post(Some("demo"), body.to_owned()).await;
        assert_eq!((response.status, &*response.text), (204, ""), "{body}");
    }
    let rows = demo()
        .rows("demo", "select n from r_notified order by n", json!({}))
        .await;
    assert_eq!(rows["data"], json!([{"n": 1}, {"n": 2}]));
}

#[tokio::test]
async fn params_may_be_absent_or_empty() {
    defined(json!({"method": "r_none", "q": "select 1 as n"})).await;
    for body in [
        r#"{"jsonrpc":"2.0","method":"r_none","id":1}"#,
        r#"{"jsonrpc":"2.0","method":"r_none","params":{},"id":1}"#,
    ] {
        let response = post(Some("demo"), body.to_owned()).await.json();
        assert_eq!(response["result"]["data"], json!([{"n": 1}]), "{body}");
    }
}

#[tokio::test]
async fn a_write_tells_how_many_rows_it_wrote() {
    demo()
        .rows("demo", "create table r_written (n int)", json!({}))
        .await;
    defined(json!([
        {"method": "r_write", "q": "insert into r_written values (:n)"},
        {"method": "r_returning", "q": "update r_written set n = n + 10 returning n"},
    ]))
    .await;
    let written = response(call("r_write", json!({"n": 1}), 1)).await;
    assert_eq!(
        written["result"],
        json!({"schema": {}, "data": [], "affected_rows": 1})
    );
    let returned = response(call("r_returning", json!({}), 2)).await;
    assert_eq!(returned["result"]["data"], json!([{"n": 11}]));
    assert_eq!(returned["result"]["affected_rows"], 1);
}

#[tokio::test]
async fn several_parameter_sets_are_one_call() {
    demo()
        .rows(
            "demo",
            "create table r_sets (n int check (n < 1000))",
            json!({}),
        )
        .await;
    defined(json!([
        {"method": "r_set", "q": "insert into r_sets values (:n) returning n"},
        {"method": "r_square", "q": "select :n::int * :n::int as square"},
    ]))
    .await;
    let sets: Vec<Value> = (0..200).map(|n| json!({"n": n})).collect();
    let written = response(call("r_set", json!(sets), 1)).await;
    assert_eq!(written["result"]["affected_rows"], 200);
    assert_eq!(written["result"]["data"], json!(sets));
    let squares = response(call("r_square", json!([{"n": 2}, {"n": 3}]), 2)).await;
    assert_eq!(
        squares["result"]["data"],
        json!([{"square": 4}, {"square": 9}])
    );

    let none = response(call("r_set", json!([]), 3)).await;
    assert_eq!(none["error"]["code"], -32602, "no set at all");

    let failed = response(call("r_set", json!([{"n": 500}, {"n": 5000}]), 4)).await;
    assert_eq!(failed["error"]["data"]["sqlstate"], "23514");
    let rows = demo()
        .rows("demo", "select count(*)::int as n from r_sets", json!({}))
        .await;
    assert_eq!(rows["data"], json!([{"n": 200}]), "one transaction");
    let wrong = response(call("r_set", json!([{"n": 1}, {"n": 2, "m": 3}]), 5)).await;
    assert_eq!(wrong["error"]["code"], -32602);
    assert_eq!(wrong["error"]["data"]["place"], "params[1].m");
}

#[tokio::test]
async fn the_sets_of_a_call_share_a_transaction_and_a_prepared_statement() {
    let q = "select :n::int as n, txid_current()::text as tx, \
             (select count(*)::int from pg_prepared_statements \
              where position('r_prepared_once' in statement) > 0) as prepared";
    defined(json!({"method": "r_once", "q": q})).await;
    let sets: Vec<Value> = (0..50).map(|n| json!({"n": n})).collect();
    for _ in 0..3 {
        let reply = response(call("r_once", json!(sets), 1)).await;
        let rows = reply["result"]["data"].as_array().unwrap();
        assert_eq!(rows.len(), 50);
        for (n, row) in rows.iter().enumerate() {
            assert_eq!(row["n"], n);
            assert_eq!(row["tx"], rows[0]["tx"], "one transaction");
            assert_eq!(row["prepared"], 1, "prepared once");
        }
    }
}

#[tokio::test]
async fn data_of_csv_and_ndjson_is_a_string() {
    defined(json!([
        {"method": "r_csv", "q": "select 1 as a, 'x,\"y' as b", "output_format": "csv"},
        {"method": "r_ndjson", "q": "select g as a from generate_series(1, 2) g", "output_format": "ndjson"},
    ]))
    .await;
    let csv = response(call("r_csv", json!({}), 1)).await;
    assert_eq!(csv["result"]["data"], "a,b\r\n1,\"x,\"\"y\"\r\n");
    assert_eq!(csv["result"]["schema"]["a"]["type"], "int4");
    let ndjson = response(call("r_ndjson", json!({}), 1)).await;
    assert_eq!(ndjson["result"]["data"], "{\"a\":1}\n{\"a\":2}\n");
}

#[tokio::test]
async fn a_call_alone_streams_what_accept_prefers_to_json() {
    defined(json!([
        {"method": "r_rows", "q": "select g as n from generate_series(1, :to::int) g"},
        {"method": "r_late", "q": "select 1 / (50000 - g) as n from generate_series(1, 60000) g"},
    ]))
    .await;
    let csv = accepting("text/csv", call("r_rows", json!({"to": 2}), 1)).await;
    assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(csv.text, "n\r\n1\r\n2\r\n");
    let many = accepting(
        "application/x-ndjson",
        call("r_rows", json!({"to": 100_000}), 1),
    )
    .await;
    assert_eq!(many.header("content-type"), "application/x-ndjson");
    assert_eq!(many.header("content-length"), "", "it streams");
    assert_eq!(many.text.lines().count(), 100_000);

    // Errors before the first row are reported as JSON-RPC responses.
    for (message, code) in [
        (call("r_rows", json!({}), 1), -32602),
        (call("r_rows", json!({"to": "x"}), 1), -32602),
        (call("r_nowhere", json!({}), 1), -32601),
    ] {
        let response = accepting("text/csv", message).await;
        assert_eq!(
            response.header("content-type"),
            "application/json; charset=utf-8"
        );
        assert_eq!(
            (response.status, &response.json()["error"]["code"]),
            (200, &json!(code))
        );
    }
    // After the first byte, an error closes the connection abnormally.
    let token = demo().cached_token("demo").await;
    let request = demo()
        .request(Method::POST, "/api/v4/call")
        .bearer_auth(token);
    let request = request
        .header("accept", "text/csv")
        .json(&call("r_late", json!({}), 1));
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.bytes().await.is_err(), "a part is no whole");

    // A notification has no response. A batch always has envelopes, and so does a call that prefers
    // JSON.
    let silent = json!({"jsonrpc": "2.0", "method": "r_rows", "params": {"to": 1}});
    assert_eq!(accepting("text/csv", silent).await.status, 204);
    let batch = accepting("text/csv", json!([call("r_rows", json!({"to": 1}), 1)])).await;
    assert_eq!(batch.json()[0]["result"]["data"], json!([{"n": 1}]));
    for accept in [
        "*/*",
        "application/json, text/csv;q=0.5",
        "application/json-rpc",
        "image/png",
    ] {
        let response = accepting(accept, call("r_rows", json!({"to": 1}), 1)).await;
        assert_eq!(
            response.json()["result"]["data"],
            json!([{"n": 1}]),
            "{accept}"
        );
    }
}

#[tokio::test]
async fn hints_formats_and_the_zone_of_the_caller_count() {
    defined(json!({
        "method": "r_formats",
        "q": "select :d as d, :tags as tags, timestamptz '2024-01-31 23:30Z' as at",
        "type_hints": {"d": "date", "tags": "varchar[]"},
        "type_formats": {"d": "d.m.Y", "at": "d.m.Y H:i"},
    }))
    .await;
    let message = call(
        "r_formats",
        json!({"d": "29.02.2024", "tags": ["a", null]}),
        1,
    );
    let utc = response(message.clone()).await;
    assert_eq!(
        utc["result"]["data"],
        json!([{"d": "29.02.2024", "tags": ["a", null], "at": "31.01.2024 23:30"}])
    );
    assert_eq!(
        utc["result"]["schema"]["tags"],
        json!({"type": "varchar", "array": true})
    );
    let token = demo().cached_token("demo").await;
    let request = demo()
        .request(Method::POST, "/api/v4/call")
        .bearer_auth(token);
    let request = request
        .header("prefer", "timezone=Europe/Berlin")
        .json(&message);
    let berlin = TextResponse::of(request).await;
    assert_eq!(
        berlin.header("preference-applied"),
        "timezone=Europe/Berlin"
    );
    assert_eq!(berlin.json()["result"]["data"][0]["at"], "01.02.2024 00:30");
}

#[tokio::test]
async fn a_call_runs_with_the_callers_rights() {
    defined(json!([
        {"method": "r_me", "q": "select current_user::text as me"},
        {"method": "r_denied", "q": "insert into artists (name) values ('x')"},
    ]))
    .await;
    for (user, role) in [
        (Some("demo"), "demo"),
        (Some("alice"), "demo/alice"),
        (None, "demo/guest"),
    ] {
        for path in ["/api/v4/call", "/api/v4/rpc"] {
            let body = call("r_me", json!({}), 1).to_string();
            let response = demo().ask(Method::POST, path, user, Some(body)).await;
            assert_eq!(response.json()["result"]["data"][0]["me"], role, "{path}");
        }
    }
    for user in [Some("alice"), None] {
        let denied = post(user, call("r_denied", json!({}), 1).to_string()).await;
        assert_eq!(denied.status, 200);
        let error = &denied.json()["error"];
        assert_eq!(
            (&error["code"], &error["data"]["sqlstate"]),
            (&json!(-32603), &json!("42501"))
        );
    }
    let nowhere = demo()
        .request(Method::POST, "/api/v4/call")
        .header("tidegate-database", "nowhere");
    let response = TextResponse::of(nowhere.json(&call("r_me", json!({}), 1))).await;
    assert_eq!(response.error(), (401, "MISSING_TOKEN".to_owned()));
}
