//! Tests errors of messages and calls (API.md, "Calls").

use serde_json::{Value, json};

use crate::methods::defined;
use crate::rpc::{call, post, response};
use crate::service::{TextResponse, demo, eventually};

async fn text(body: &str) -> Value {
    let response = post(Some("demo"), body.to_owned()).await;
    assert_eq!(response.status, 200, "{body}");
    response.json()
}

#[tokio::test]
async fn text_that_is_no_json_is_a_parse_error() {
    for body in [
        "",
        " ",
        "nonsense",
        r#"{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]"#,
        r#"[{"jsonrpc": "2.0", "method": "sum", "params": {}, "id": "1"}, {"jsonrpc": "2.0", "method"]"#,
        "{} {}",
        "\u{feff}{}",
    ] {
        let response = text(body).await;
        assert_eq!(response["error"]["code"], -32700, "{body}");
        assert_eq!(response["error"]["message"], "Parse error");
        assert_eq!(response["id"], Value::Null);
        assert!(response.as_object().unwrap().contains_key("id"));
        assert!(response.get("result").is_none());
    }
}

#[tokio::test]
async fn what_is_no_request_is_invalid_and_its_id_is_null() {
    for body in [
        "1",
        "null",
        "\"text\"",
        "true",
        "{}",
        r#"{"jsonrpc":"2.0","method":1,"params":"bar"}"#,
        r#"{"jsonrpc":"2.0","id":"1"}"#,
        r#"{"jsonrpc":"2.0","method":null,"id":"1"}"#,
        r#"{"jsonrpc":"2.0","method":["x"],"id":"1"}"#,
        r#"{"method":"e_x","id":"1"}"#,
        r#"{"jsonrpc":"1.0","method":"e_x","id":"1"}"#,
        r#"{"jsonrpc":2.0,"method":"e_x","id":"1"}"#,
        r#"{"jsonrpc":null,"method":"e_x","id":"1"}"#,
        r#"{"jsonrpc":"2.0","method":"e_x","id":{}}"#,
        r#"{"jsonrpc":"2.0","method":"e_x","id":[1]}"#,
        r#"{"jsonrpc":"2.0","method":"e_x","id":true}"#,
        r#"{"jsonrpc":"2.0","method":"e_x","params":"bar","id":"1"}"#,
        r#"{"jsonrpc":"2.0","method":"e_x","params":7,"id":"1"}"#,
        r#"{"jsonrpc":"2.0","method":"e_x","params":false,"id":"1"}"#,
        r#"{"jsonrpc":"2.0","jsonrpc":"2.0","method":"e_x","id":"1"}"#,
    ] {
        let response = text(body).await;
        assert_eq!(response["error"]["code"], -32600, "{body}: {response}");
        assert_eq!(response["error"]["message"], "Invalid Request");
        assert_eq!(response["id"], Value::Null, "{body}");
        assert!(response["error"]["data"]["message"].is_string(), "{body}");
    }
    let deep = format!(
        r#"{{"jsonrpc":"2.0","method":"e_x","params":{{"a":{}1{}}},"id":1}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let response = text(&deep).await;
    assert_eq!(response["error"]["code"], -32600);
    assert_eq!(response["error"]["data"]["limit"], 128);
}

#[tokio::test]
async fn unknown_members_are_ignored() {
    defined(json!({"method": "e_more", "q": "select 1 as n"})).await;
    let response =
        text(r#"{"jsonrpc":"2.0","method":"e_more","id":1,"trace":[1],"jsonRPC":1}"#).await;
    assert_eq!(response["result"]["data"], json!([{"n": 1}]));
}

#[tokio::test]
async fn a_method_that_is_not_there_is_not_found() {
    for name in [
        "e_nowhere",
        "",
        "rpc.discover",
        "a b",
        "é",
        "constructor",
        "select 1",
    ] {
        let reply = response(call(name, json!({}), 1)).await;
        assert_eq!(
            reply,
            json!({"jsonrpc": "2.0", "error": {"code": -32601, "message": "Method not found"}, "id": 1}),
            "{name}"
        );
    }
}

#[tokio::test]
async fn wrong_parameters_are_named() {
    defined(json!([
        {"method": "e_params", "q": "select :n::int as n, :when::date as d"},
        {"method": "e_mood", "q": "select :r as r", "type_hints": {"r": "int4range"}},
        {"method": "e_dated", "q": "select :d::date as d", "type_formats": {"d": "d.m.Y"}},
    ]))
    .await;
    let cases = [
        ("e_params", json!({"n": 1}), "when", json!("params.when")),
        ("e_params", json!({}), "n", json!("params.n")),
        (
            "e_params",
            json!({"n": 1, "when": "2024-01-01", "m": 1}),
            "m",
            json!("params.m"),
        ),
        (
            "e_params",
            json!({"n": "x", "when": "2024-01-01"}),
            "n",
            json!("params.n"),
        ),
        (
            "e_params",
            json!({"n": 99_999_999_999_u64, "when": "2024-01-01"}),
            "n",
            json!("params.n"),
        ),
        (
            "e_params",
            json!({"n": 1.5, "when": "2024-01-01"}),
            "n",
            json!("params.n"),
        ),
        (
            "e_params",
            json!({"n": {"a": 1}, "when": "2024-01-01"}),
            "n",
            json!("params.n"),
        ),
        (
            "e_params",
            json!({"n": 1, "when": "2024-02-30"}),
            "when",
            json!("params.when"),
        ),
        (
            "e_params",
            json!([{"n": 1, "when": "2024-01-01"}, {"n": 1, "when": "never"}]),
            "when",
            json!("params[1].when"),
        ),
        (
            "e_mood",
            json!({"r": {"lower": 5, "upper": 1}}),
            "r",
            json!("params.r"),
        ),
        ("e_mood", json!({"r": {"low": 5}}), "r", json!("params.r")),
        (
            "e_dated",
            json!({"d": "2024-01-01"}),
            "d",
            json!("params.d"),
        ),
        (
            "e_dated",
            json!([{"d": "31.12.2024"}, {"d": "never"}]),
            "d",
            json!("params[1].d"),
        ),
    ];
    for (method, params, parameter, place) in cases {
        let reply = response(call(method, params.clone(), 1)).await;
        let error = &reply["error"];
        assert_eq!(error["code"], -32602, "{params}: {reply}");
        assert_eq!(error["message"], "Invalid params");
        assert_eq!(error["data"]["parameter"], parameter, "{params}: {reply}");
        let found = error["data"]["place"].as_str().unwrap_or_default();
        assert!(
            found.starts_with(place.as_str().unwrap()),
            "{params}: {reply}"
        );
        assert_eq!(reply["id"], 1);
    }
    for params in [
        json!([1, 2]),
        json!(["a"]),
        json!([[1]]),
        json!([null]),
        json!([{"n": 1}, 2]),
    ] {
        let reply = response(call("e_params", params.clone(), 1)).await;
        assert_eq!(reply["error"]["code"], -32602, "{params}: {reply}");
        assert!(reply["error"]["data"]["message"].is_string());
    }
}

#[tokio::test]
async fn an_error_at_run_time_says_what_postgresql_says_and_no_sql() {
    demo()
        .rows("demo", "create table e_prices (price int constraint e_price_check check (price > 0), name text not null unique)", json!({}))
        .await;
    defined(json!([
        {"method": "e_divide", "q": "select 1 / :n::int as secretly_named"},
        {"method": "e_price", "q": "insert into e_prices values (:price, :name)"},
        {"method": "e_table", "q": "select * from e_no_such_table"},
        {"method": "e_raise", "q": "do $$ begin raise exception 'mine' using errcode = 'TG001', hint = 'a hint', detail = 'a detail'; end $$"},
        {"method": "e_hint", "q": "select :a as a", "type_hints": {"a": "no_such_type"}},
    ]))
    .await;
    let divided = response(call("e_divide", json!({"n": 0}), 1)).await;
    assert_eq!(
        divided,
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Internal error",
            "data": {"sqlstate": "22012", "message": "division by zero"}}})
    );
    let checked = response(call("e_price", json!({"price": 0, "name": "a"}), 1)).await;
    let data = &checked["error"]["data"];
    assert_eq!(
        (&data["sqlstate"], &data["constraint"], &data["table"]),
        (&json!("23514"), &json!("e_price_check"), &json!("e_prices"))
    );
    assert!(data["detail"].is_string());
    let null = response(call("e_price", json!({"price": 1, "name": null}), 1)).await;
    let data = &null["error"]["data"];
    assert_eq!(
        (&data["sqlstate"], &data["column"]),
        (&json!("23502"), &json!("name"))
    );
    let raised = response(call("e_raise", json!({}), 1)).await;
    assert_eq!(
        raised["error"]["data"],
        json!({"sqlstate": "TG001", "message": "mine", "detail": "a detail", "hint": "a hint"})
    );
    for (method, params) in [("e_table", json!({})), ("e_hint", json!({"a": 1}))] {
        let reply = response(call(method, params, 1)).await;
        assert_eq!(reply["error"]["code"], -32603, "{reply}");
        assert_eq!(reply["error"]["message"], "Internal error");
        assert!(reply["error"]["data"]["message"].is_string(), "{reply}");
        assert!(!reply.to_string().contains("select"), "{reply}");
    }
}

#[tokio::test]
async fn a_deadline_is_an_internal_error_that_may_be_tried_again() {
    defined(json!({"method": "e_sleep", "q": "select pg_sleep(30)"})).await;
    let token = demo().cached_token("demo").await;
    let request = demo()
        .request(reqwest::Method::POST, "/api/v4/call")
        .bearer_auth(token);
    let request = request
        .header("prefer", "wait=1")
        .json(&call("e_sleep", json!({}), 1));
    let response = TextResponse::of(request).await;
    assert_eq!(response.status, 200);
    let error = &response.json()["error"];
    assert_eq!(
        (&error["code"], &error["data"]["retryable"]),
        (&json!(-32603), &json!(true))
    );
}

#[tokio::test]
async fn a_caller_that_leaves_ends_its_call() {
    let admin = demo().admin().await;
    let q = "select pg_sleep(120) as the_caller_left";
    defined(json!({"method": "e_left", "q": q})).await;
    let token = demo().cached_token("demo").await;
    let running = || async {
        let count = "select count(*) from pg_stat_activity where state = 'active' and query = $1";
        let row = admin.query_one(count, &[&q]).await.unwrap();
        row.get::<_, i64>(0)
    };
    for message in [
        call("e_left", json!({}), 1),
        json!([call("e_left", json!({}), 1)]),
        json!({"jsonrpc": "2.0", "method": "e_left"}),
    ] {
        let request = demo()
            .request(reqwest::Method::POST, "/api/v4/call")
            .bearer_auth(&token)
            .json(&message);
        let asking = tokio::spawn(request.send());
        eventually("it runs", || async { running().await == 1 }).await;
        asking.abort();
        eventually("it has ended", || async { running().await == 0 }).await;
    }
}

#[tokio::test]
async fn what_fails_before_the_message_is_read_has_the_rest_form() {
    for path in ["/api/v4/call", "/api/v4/rpc"] {
        let bad = demo()
            .request(reqwest::Method::POST, path)
            .bearer_auth("nonsense")
            .json(&call("e_x", json!({}), 1));
        let response = TextResponse::of(bad).await;
        assert_eq!(
            response.error(),
            (401, "INVALID_TOKEN".to_owned()),
            "{path}"
        );
        let large = format!("\"{}\"", "x".repeat(11 << 20));
        let response = demo()
            .ask(reqwest::Method::POST, path, Some("demo"), Some(large))
            .await;
        assert_eq!(
            response.error(),
            (413, "PAYLOAD_TOO_LARGE".to_owned()),
            "{path}"
        );
    }
}
